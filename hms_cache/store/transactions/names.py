"""Names as the transaction tables hold them: lower case, without a catalog; keys of partition names in lower case."""

from __future__ import annotations

from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException


def plain_database(name: str) -> str:
    """The stored form of a database name; Hive 3 and later put `@catalog#` before it."""
    if name.startswith("@") and "#" in name:
        name = name.partition("#")[2]
    return name.strip().lower()


def plain_table(name: str) -> str:
    """The stored form of a table name."""
    return name.strip().lower()


def plain_partition(name: str) -> str:
    """The stored form of a partition name `k=v/k2=v2`: only the keys are lower-cased, as in Hive."""
    pieces = []
    for piece in name.split("/"):
        key, equals, value = piece.partition("=")
        pieces.append(f"{key.lower()}{equals}{value}")
    return "/".join(pieces)


def split_full_table_name(full_name: str) -> tuple[str, str]:
    """Database and table of `db.table` (or `catalog.db.table`), in stored form.

    Raises MetaException for a name without a database, as Hive does not know which one would be meant.
    """
    parts = full_name.rsplit(".", 2)
    if len(parts) < 2 or not parts[-1] or not parts[-2]:
        raise MetaException(f"Invalid table name: {full_name}; <database>.<table> expected")
    return plain_database(parts[-2]), plain_table(parts[-1])
