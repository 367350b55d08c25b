"""Deletes rows of partitions from all tables, for drops of partitions, tables and databases."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, exists, select

from hms_cache.batches import batches
from hms_cache.store.engine.bulk_writes import delete_together, in_ids
from hms_cache.store.rows.storage_descriptor_writes import delete_storage_descriptors
from hms_cache.store.schema import (
    PART_COL_PRIVS,
    PART_COL_STATS,
    PART_PRIVS,
    PARTITION_KEY_VALS,
    PARTITION_PARAMS,
    PARTITIONS,
)

PARTITIONS_AT_ONCE = 5_000
"""Partitions deleted per round: limits memory and statement length. All rounds are one transaction."""

_CHILDREN_OF_PARTITION = (PARTITION_PARAMS.c.PART_ID, PARTITION_KEY_VALS.c.PART_ID)
_RARE_CHILDREN = (PART_COL_STATS.c.PART_ID, PART_PRIVS.c.PART_ID, PART_COL_PRIVS.c.PART_ID)
_HAS_RARE_CHILDREN = select(*(exists().where(in_ids(child)) for child in _RARE_CHILDREN))


def delete_partitions(
    connection: Connection, partitions: Iterable[tuple[int, int | None]], *, table_cd_id: int | None = None
) -> None:
    """Deletes the rows of these (PART_ID, SD_ID) and all rows that refer to them, in a fixed number of statements per
    some thousands.

    `table_cd_id`: the column descriptor of their table, if it is kept.
    """
    pairs = list(partitions)
    for some in batches(pairs, PARTITIONS_AT_ONCE):
        ids = [part_id for part_id, _ in some]
        has = connection.execute(_HAS_RARE_CHILDREN, {"ids": ids}).one()
        rare = (column for number, column in enumerate(_RARE_CHILDREN) if has[number])
        columns = (*_CHILDREN_OF_PARTITION, *rare, PARTITIONS.c.PART_ID)
        delete_together(connection, [(column, ids) for column in columns])
        sd_ids = [sd_id for _, sd_id in some if sd_id is not None]
        delete_storage_descriptors(connection, sd_ids, kept_cd_id=table_cd_id)
