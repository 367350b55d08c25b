"""Entries of the compaction queue for soft drops: a cleaner deletes the directory that each names.

A drop of a table or database has to check the entries of its name: those for directories that it deletes, or leaves to
others, must be removed; the others must stay, since nothing else would delete their directories. Source:
`AcidEventListener`, `CompactionCleaner` (Hive 4.0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from sqlalchemy import ColumnElement, Connection, and_, delete, func, select, update

from hms_cache.batches import batches
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.features import SchemaFeatures
from hms_cache.store.schema import COMPACTION_QUEUE
from hms_cache.store.transactions.codes import READY_FOR_CLEANING
from hms_cache.store.transactions.names import plain_database, plain_table

Q = COMPACTION_QUEUE.c

LOCATION = "location"
"""Property of a queue entry: the directory that a cleaner deletes."""

_LOCATION_KEY = f"{len(LOCATION)}:{LOCATION}"
"""In the format of `to_counted_map`."""

_ROWS_IN_A_STATEMENT = 1000

NO_WRITE_ID: Final = -1
"""CQ_HIGHEST_WRITE_ID of an entry whose name another table or partition has taken: then no cleaner, Hive's included,
deletes records of the name's writes. With 0, Hive's would delete those of all committed ones."""


def has_table_drops(features: SchemaFeatures) -> bool:
    """Whether the queue can contain such entries, which is not so in a schema of Hive 3.1."""
    return features.has(Q.CQ_TXN_ID)


def names_a_directory() -> ColumnElement[bool]:
    """A condition: the entry makes a cleaner delete a directory."""
    return func.coalesce(Q.CQ_TBLPROPERTIES, "").contains(_LOCATION_KEY)


def is_table_drop() -> ColumnElement[bool]:
    """A condition: the entry is a soft drop of a table, if `has_table_drops`. A requested compaction may look the same;
    `dropped_tables` checks further."""
    return and_(
        Q.CQ_STATE == READY_FOR_CLEANING,
        func.coalesce(Q.CQ_TXN_ID, 0) > 0,
        Q.CQ_PARTITION.is_(None),
        names_a_directory(),
    )


def is_partition_drop() -> ColumnElement[bool]:
    """Like `is_table_drop`, for a partition."""
    return and_(
        Q.CQ_STATE == READY_FOR_CLEANING,
        func.coalesce(Q.CQ_TXN_ID, 0) > 0,
        Q.CQ_PARTITION.is_not(None),
        names_a_directory(),
    )


def properties_of_dropped_partitions(connection: Connection, database: str, table: str) -> dict[int, dict[str, str]]:
    """Properties of a table's entries that match `is_partition_drop`, by CQ_ID, as far as they can be parsed."""
    if not has_table_drops(features_of(connection)):
        return {}
    is_of_table = (Q.CQ_DATABASE == plain_database(database)) & (Q.CQ_TABLE == plain_table(table))
    found: dict[int, dict[str, str]] = {}
    query = select(Q.CQ_ID, Q.CQ_TBLPROPERTIES).where(is_of_table, is_partition_drop())
    for entry_id, text in connection.execute(query):
        with suppress(ValueError):
            found[entry_id] = from_counted_map(text)
    return found


def store_properties(connection: Connection, entry_id: int, properties: Mapping[str, str]) -> None:
    """Sets the properties of an entry."""
    values = {"CQ_TBLPROPERTIES": to_counted_map(properties)}
    connection.execute(update(COMPACTION_QUEUE).where(Q.CQ_ID == entry_id).values(values))


def dropped_tables(connection: Connection, database: str, table: str | None = None) -> dict[int, str | None]:
    """Entries that match `is_table_drop`, by CQ_ID, of a database or of tables with one name. The value is the
    directory, or None if the entry is not a soft drop."""
    if not has_table_drops(features_of(connection)):
        return {}
    condition = (Q.CQ_DATABASE == plain_database(database)) & is_table_drop()
    if table is not None:
        condition &= Q.CQ_TABLE == plain_table(table)
    found: dict[int, str | None] = {}
    for entry_id, text in connection.execute(select(Q.CQ_ID, Q.CQ_TBLPROPERTIES).where(condition)):
        try:
            found[entry_id] = from_counted_map(text).get(LOCATION)
        except ValueError:
            found[entry_id] = None
    return found


def forget_entries(connection: Connection, entry_ids: Sequence[int]) -> None:
    """Deletes entries from the queue, one statement per 1,000."""
    for some in batches(entry_ids, _ROWS_IN_A_STATEMENT):
        connection.execute(delete(COMPACTION_QUEUE).where(Q.CQ_ID.in_(some)))


def to_counted_map(properties: Mapping[str, str]) -> str:
    """The text format of properties in the queue: `count:length:keylength:value…` (Hive's StringableMap).

    Lengths are counted as in Java: with other lengths a value could be parsed as additional properties.
    """
    pieces = [f"{len(properties)}:"]
    for key, value in properties.items():
        pieces += (f"{_java_length(text)}:{text}" for text in (key or "", value or ""))
    return "".join(pieces)


def from_counted_map(text: str) -> dict[str, str]:
    """Parses the format of `to_counted_map`. Raises ValueError."""
    left = text.encode("utf-16-le", "surrogatepass")

    def take(length: int) -> str:
        nonlocal left
        taken, left = left[: 2 * length], left[2 * length :]
        return taken.decode("utf-16-le", "surrogatepass")

    def number() -> int:
        digits = take(left.decode("utf-16-le", "replace").index(":"))
        take(1)
        return int(digits)

    return {take(number()): take(number()) for _ in range(number())}


def _java_length(text: str) -> int:
    """Length in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
