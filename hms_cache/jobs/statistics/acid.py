"""Hive's layout of transactional tables: the directories of a table or partition that are visible to a snapshot.

Facts: `AcidUtils.getAcidState`, `ParsedBase`, `ParsedDelta` (Hive 4.0.1). A directory ``base_N`` holds all rows up to
write id N, ``delta_X_Y`` the rows added by the write ids X to Y, ``delete_delta_X_Y`` the rows they deleted. ``_S`` is
the number of a statement, ``_vT`` the transaction of the compaction that created it, which must be committed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from hms_cache.thrift_gen.hive_metastore.ttypes import Table
from hms_cache.txn import RangeAnswer, ValidTxnList, ValidWriteIdList
from hms_cache.values import frozen

COMPACTED = "_metadata_acid"
"""A file in the bases created by a compaction of Hive 3.1; other bases are from INSERT OVERWRITE."""

_NAME = re.compile(r"(base|delta|delete_delta)_(\d+)(?:_(\d+))?(?:_(\d+))?(?:_v(\d+))?")

_PROPERTIES = "transactional_properties"


class Snapshot(NamedTuple):
    """The state of a table visible to a transaction. Serialized to Spark's workers."""

    transactions: str
    """A `ValidTxnList`."""

    write_ids: str
    """A `ValidWriteIdList`."""

    is_full: bool
    """Whether rows may be deleted; then each file has Hive's columns in addition to those of the table."""


def is_insert_only(table: Table) -> bool:
    """Whether the transactional table is insert-only: its files are those of an ordinary table."""
    return (table.parameters or {}).get(_PROPERTIES, "").lower() == "insert_only"


class AcidDirectory(NamedTuple):
    """The parsed name of a directory. For a base, `first` is 0."""

    name: str
    kind: str
    first: int
    last: int
    statement: int = -1
    visible_from: int = 0

    @classmethod
    def parse(cls, name: str) -> AcidDirectory | None:
        """Returns None for any other name."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        kind, first, last, statement, visible_from = found.groups()
        if kind == "base":
            return cls(name, kind, 0, int(first), visible_from=int(visible_from or 0)) if last is None else None
        if last is None:
            return None
        numbers = (int(first), int(last), int(statement or -1), int(visible_from or 0))
        return cls(name, kind, *numbers)


@frozen
class AcidState:
    """Directories to read."""

    rows: tuple[str, ...]
    """The base and the deltas that contain rows."""

    deletes: tuple[str, ...]
    has_base: bool
    hidden: tuple[int, ...]
    """Write ids whose rows are in deltas of several ids and are not visible to the snapshot."""


def state_of(names: Iterable[str], snapshot: Snapshot, compacted: Collection[str] = ()) -> AcidState:
    """The directories with these names that the snapshot sees; names in any other form are ignored.

    :param compacted: bases that contain the file `COMPACTED`.
    """
    transactions, write_ids = ValidTxnList.parse(snapshot.transactions), ValidWriteIdList.parse(snapshot.write_ids)
    parsed = [found for found in map(AcidDirectory.parse, names) if found is not None]
    visible = [one for one in parsed if not one.visible_from or transactions.is_valid(one.visible_from)]

    def is_usable(base: AcidDirectory) -> bool:
        if base.visible_from or base.name in compacted:
            return write_ids.is_valid_base(base.last)
        return write_ids.is_valid(base.last)

    bases = [one for one in visible if one.kind == "base" and is_usable(one)]
    base = max(bases, key=lambda one: (one.last, one.visible_from), default=None)
    chosen = _current_deltas([one for one in visible if one.kind != "base"], base.last if base else 0, write_ids)
    rows = [base.name] if base else []
    rows += [one.name for one in chosen if one.kind == "delta"]
    deletes = [one.name for one in chosen if one.kind == "delete_delta"]
    mixed = [number for one in chosen if one.first < one.last for number in range(one.first, one.last + 1)]
    hidden = tuple(sorted({number for number in mixed if not write_ids.is_valid(number)}))
    return AcidState(tuple(rows), tuple(deletes), base is not None, hidden)


def _current_deltas(deltas: Iterable[AcidDirectory], after: int, write_ids: ValidWriteIdList) -> list[AcidDirectory]:
    """The deltas that are not superseded: with the same start, the widest range; a compacted one before single ones."""
    having = [one for one in deltas if write_ids.is_range_valid(one.first, one.last) is not RangeAnswer.NONE]
    having.sort(key=lambda one: (one.first, -one.last, one.statement, one.kind, one.name))
    chosen: list[AcidDirectory] = []
    statement, before = -1, None
    for one in having:
        is_alike = before is not None and one[2:5] == before[2:5] and one.kind != before.kind
        if one.last > after:
            if write_ids.is_range_valid(after + 1, one.last) is RangeAnswer.NONE:
                continue
            after, statement = one.last, one.statement
        elif not (one.last == after and statement >= 0) and not is_alike:
            continue
        chosen.append(one)
        before = one
    return chosen
