"""Whether statistics of transactional tables fit a reader's or a writer's snapshot.

Facts: `ObjectStore.isCurrentStatsValidForTheQuery`, `verifyStatsChangeCtx` (Hive 4.0.1).
"""

from __future__ import annotations

from collections.abc import Mapping

from hms_cache.store.parameters import COLUMN_STATS_ACCURATE, are_basic_statistics_accurate
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from hms_cache.txn.id_lists import IdListFormatError
from hms_cache.txn.valid_write_ids import ValidWriteIdList


def parse_write_ids(text: str) -> ValidWriteIdList:
    """The list a client sent. Raises MetaException for a text that is none."""
    try:
        return ValidWriteIdList.parse(text)
    except IdListFormatError as error:
        raise MetaException(str(error)) from error


def are_statistics_valid(
    parameters: Mapping[str, str],
    statistics_write_id: int | None,
    valid_write_ids: str | None,
    *,
    is_complete_writer: bool = False,
) -> bool:
    """Whether statistics stored under a write id may be used by (or, for a writer of whole new statistics, replaced by)
    someone with this snapshot.

    Those of no write id always may; else the id must be valid in the snapshot, for a writer also aborted.
    """
    if statistics_write_id is None or statistics_write_id < 1:
        return True
    if not is_complete_writer and not are_basic_statistics_accurate(parameters):
        return False
    if valid_write_ids is None:
        return False
    snapshot = parse_write_ids(valid_write_ids)
    return snapshot.is_valid(statistics_write_id) or (is_complete_writer and snapshot.is_aborted(statistics_write_id))


def check_statistics_change(
    table_name: str,
    before: Mapping[str, str],
    after: Mapping[str, str],
    write_id: int | None,
    valid_write_ids: str | None,
    *,
    is_column_change: bool,
) -> None:
    """Raises MetaException when a transactional table's statistics would change their state outside of a transaction.

    `table_name` is `database.table`.
    """
    if valid_write_ids is not None and write_id is not None and write_id > 0:
        return
    if not are_basic_statistics_accurate(after):
        return
    old, new = before.get(COLUMN_STATS_ACCURATE), after.get(COLUMN_STATS_ACCURATE)
    if (old or "").lower() == (new or "").lower() and not is_column_change:
        return
    raise MetaException(
        f"Cannot change stats state for a transactional table {table_name} without providing the transactional write "
        f"state for verification (new write ID {-1 if write_id is None else write_id}, valid write IDs "
        f"{valid_write_ids}; current state {old}; new state {new}"
    )
