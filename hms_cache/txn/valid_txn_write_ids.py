"""`ValidTxnWriteIdList`: the write-id lists of all tables that one transaction reads, by table name.

Text form `txnId$list$list...`. The order of the lists means nothing (Hive prints a hash map), so two texts are compared
by reading them.
"""

from collections.abc import Mapping
from dataclasses import field

from hms_cache.input_limits import input_limits
from hms_cache.txn.id_lists import IdListFormatError, parse_number, split_fields
from hms_cache.txn.valid_write_ids import ValidWriteIdList
from hms_cache.values import frozen


@frozen
class ValidTxnWriteIdList:
    """A transaction's id and its list per table (`db.table` as given); a value, never changed."""

    txn_id: int | None
    lists: Mapping[str, ValidWriteIdList] = field(default_factory=dict)
    _by_lower_name: Mapping[str, ValidWriteIdList] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found: dict[str, ValidWriteIdList] = {}
        for name, write_ids in self.lists.items():
            found.setdefault(name.lower(), write_ids)
        object.__setattr__(self, "_by_lower_name", found)

    @classmethod
    def parse(cls, text: str | None, max_ids: int | None = None) -> "ValidTxnWriteIdList":
        """Read the text form; empty or None has neither transaction nor lists. Of a table given twice the last wins.

        `max_ids`: as of one list, for all of them together: each may name a million by a range of a few characters.
        Raises `IdListFormatError` when the transaction id or a list cannot be read.
        """
        if not text:
            return cls(None)
        fields = split_fields(text, "$")
        if not fields:
            raise IdListFormatError(f'no transaction id: "{text[:200]}"')
        txn_id = parse_number(fields[0], "transaction id")
        lists: dict[str, ValidWriteIdList] = {}
        left = input_limits().listed_ids if max_ids is None else max_ids
        for piece in fields[1:]:
            write_ids = ValidWriteIdList.parse(piece, left)
            left = max(0, left - len(write_ids.invalid))
            if write_ids.table_name is not None:
                lists[write_ids.table_name] = write_ids
        return cls(txn_id, lists)

    def to_text(self, ranges: bool = False) -> str:
        """The text form, tables in the order of the mapping. Without a transaction id there is none: ValueError."""
        if self.txn_id is None:
            raise ValueError("a list without a transaction id has no text")
        return "$".join([str(self.txn_id), *(write_ids.to_text(ranges) for write_ids in self.lists.values())])

    def for_table(self, full_table_name: str) -> ValidWriteIdList | None:
        """The list of table `db.table`, upper and lower case alike; None when the transaction has none for it."""
        exact = self.lists.get(full_table_name)
        return self._by_lower_name.get(full_table_name.lower()) if exact is None else exact
