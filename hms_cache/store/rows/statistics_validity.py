"""Decides whether statistics of transactional tables are valid for a reader's or a writer's snapshot.

Facts: `ObjectStore.isCurrentStatsValidForTheQuery`, `verifyStatsChangeCtx` (Hive 4.0.1). Hive relies on the list only.
Lists of its own writers sometimes omit a write id that was aborted moments before; statistics of that id would then
become valid again. Here the transaction tables decide in addition: statistics of an aborted transaction are valid for
no one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import Connection

from hms_cache.batches import batches
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.store.engine.database import features_of
from hms_cache.store.rows.parameters import COLUMN_STATS_ACCURATE, are_basic_statistics_accurate
from hms_cache.store.schema import TXN_TO_WRITE_ID
from hms_cache.store.write_ids.valid_write_ids import WriteIdState, write_id_states
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from hms_cache.txn.id_lists import IdListFormatError
from hms_cache.txn.valid_write_ids import ValidWriteIdList, parsed_write_ids


def parse_write_ids(text: str) -> ValidWriteIdList:
    """Parses a list that a client sent (cached, since it is used for each partition of a request). Raises
    MetaException."""
    try:
        return parsed_write_ids(text)
    except IdListFormatError as error:
        raise MetaException(str(error)) from error


def are_statistics_valid(
    parameters: Mapping[str, str],
    statistics_write_id: int | None,
    valid_write_ids: str | None,
    *,
    is_complete_writer: bool = False,
    aborted: Collection[int] = (),
) -> bool:
    """Whether statistics stored under a write id may be used by a client with this snapshot or, for a writer of
    complete new statistics, be replaced.

    Statistics without a write id are always valid; otherwise the id must be valid in the snapshot, or for a writer
    aborted in it. `aborted`: write ids that are aborted according to the transaction tables (`aborted_write_ids`);
    their statistics are never valid.
    """
    if statistics_write_id is None or statistics_write_id < 1:
        return True
    if statistics_write_id in aborted:
        return False
    if not is_complete_writer and not are_basic_statistics_accurate(parameters):
        return False
    if valid_write_ids is None:
        return False
    snapshot = parse_write_ids(valid_write_ids)
    return snapshot.is_valid(statistics_write_id) or (is_complete_writer and snapshot.is_aborted(statistics_write_id))


_IDS_IN_A_STATEMENT = 500


def aborted_write_ids(
    connection: Connection, table: Sequence[str | None], write_ids: Iterable[int | None]
) -> frozenset[int]:
    """Those of a table's write ids (catalog, database, name as stored) that are aborted according to the transaction
    tables.

    One statement per 500 different ids; none if there is no id.
    """
    catalog, database, name = table
    requested = sorted({write_id for write_id in write_ids if write_id is not None and write_id > 0})
    if not requested or (catalog or DEFAULT_CATALOG) != DEFAULT_CATALOG:
        return frozenset()
    if not features_of(connection).has(TXN_TO_WRITE_ID):
        return frozenset()
    aborted: set[int] = set()
    for some in batches(requested, _IDS_IN_A_STATEMENT):
        states = write_id_states(connection, (database or "", name or ""), some)
        aborted.update(write_id for write_id, state in states.items() if state is WriteIdState.ABORTED)
    return frozenset(aborted)


def check_statistics_change(
    table_name: str,
    before: Mapping[str, str],
    after: Mapping[str, str],
    write_id: int | None,
    valid_write_ids: str | None,
    *,
    is_column_change: bool,
) -> None:
    """Raises MetaException if a change would alter the claims about a transactional table's statistics outside a
    transaction.

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
