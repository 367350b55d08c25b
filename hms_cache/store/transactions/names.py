"""Names as stored in the transaction tables: lower case, without a catalog. In partition names only the keys are lower
case."""

from __future__ import annotations

from typing import Final

from hms_cache.metadata.names import normalize_identifier
from hms_cache.metadata.partition_names import make_partition_name
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

MAX_PARTITION_CHARACTERS: Final = 767
"""Length of HL_PARTITION and WS_PARTITION. Hive 4 itself cannot lock a longer name."""


def plain_database(name: str) -> str:
    """The stored form of a database name; Hive 3 and later prefix it with `@catalog#`."""
    if name.startswith("@") and "#" in name:
        name = name.partition("#")[2]
    return normalize_identifier(name)


def plain_table(name: str) -> str:
    """The stored form of a table name."""
    return normalize_identifier(name)


def plain_partition(name: str) -> str:
    """The stored form of a partition name `k=v/k2=v2`: only the keys are converted to lower case, as in Hive."""
    pieces = []
    for piece in name.split("/"):
        key, equals, value = piece.partition("=")
        pieces.append(f"{key.lower()}{equals}{value}")
    return "/".join(pieces)


def partition_escaped_again(name: str) -> str | None:
    """The text that a Hive 4 metastore stores for a partition of a lock, if it differs from the name.

    Hive 4 escapes again what its client has already escaped: `t=10%3A00` becomes `t=10%253A00`. None for a name that
    Hive cannot parse. Source: `TxnUtils.normalizePartitionCase`.
    """
    pairs = [piece.split("=") for piece in name.split("/")]
    if any(len(pair) != 2 for pair in pairs):
        return None
    again = make_partition_name([key for key, _ in pairs], [value for _, value in pairs])
    return None if again == name else again


def split_full_table_name(full_name: str) -> tuple[str, str]:
    """Database and table of `db.table` (or `catalog.db.table`), in stored form.

    Raises MetaException for a name without a database, which would be ambiguous.
    """
    parts = full_name.rsplit(".", 2)
    if len(parts) < 2 or not parts[-1] or not parts[-2]:
        raise MetaException(f"Invalid table name: {full_name}; <database>.<table> expected")
    return plain_database(parts[-2]), plain_table(parts[-1])
