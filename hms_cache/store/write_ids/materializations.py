"""Whether materialized views are up to date with their tables.

Source: Hive 4.0 `GetMaterializationInvalidationInfoFunction`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from sqlalchemy import ColumnElement, Connection, and_, exists, literal, or_, select

from hms_cache.store.schema import COMPACTION_QUEUE, COMPLETED_COMPACTIONS, COMPLETED_TXN_COMPONENTS
from hms_cache.store.transactions.names import split_full_table_name
from hms_cache.store.write_ids.valid_write_ids import valid_write_ids_of
from hms_cache.thrift_gen.hive_metastore.ttypes import CreationMetadata, Materialization, MetaException
from hms_cache.txn import IdListFormatError, ValidTxnList, ValidTxnWriteIdList, ValidWriteIdList

DONE = COMPLETED_TXN_COMPONENTS.c
HISTORY = COMPLETED_COMPACTIONS.c
QUEUE = COMPACTION_QUEUE.c

_MAX_IDS_IN_SQL = 1000
"""Invalid ids per table that one statement lists. With more, the view counts as changed, which only costs a rebuild."""

_MAX_TABLES_IN_SQL = 100
"""SQLite allows at most 1,000 conditions in one expression."""


def materialization_invalidation_info(
    connection: Connection, creation: CreationMetadata, valid_txn_list: str | None
) -> Materialization:
    """Whether the view's tables had rows updated or deleted, or were compacted, since the view was built.

    `valid_txn_list` is the caller's snapshot: changes that it does not see are ignored. A view whose metadata does not
    say what it was built from counts as changed in both ways: a complete rebuild is always correct. So does a view of a
    table whose lowest open write id has changed, as in Hive: writes with the former one may have changed rows, and
    their records may have been deleted (`housekeeping`). Raises MetaException (no tables, invalid list).
    """
    if not creation.tablesUsed:
        raise MetaException("Materialization creation metadata does not contain any table")
    try:
        built_from = ValidTxnWriteIdList.parse(_snapshot_text(creation.validTxnList))
        snapshot = ValidTxnList.parse(valid_txn_list)
    except (IdListFormatError, json.JSONDecodeError) as error:
        raise MetaException(f"Invalid snapshot of a materialized view: {error}") from error
    lists: list[_OfTable] = []
    for full_name in sorted(creation.tablesUsed):
        database, table = split_full_table_name(full_name)
        write_ids = built_from.for_table(f"{database}.{table}")
        if write_ids is None or len(write_ids.invalid) > _MAX_IDS_IN_SQL:
            return Materialization(sourceTablesUpdateDeleteModified=True, sourceTablesCompacted=True)
        lists.append((database, table, write_ids))
    now = valid_write_ids_of(connection, [(database, table) for database, table, _ in lists], snapshot)
    if any(now[database, table].min_open_write_id != built.min_open_write_id for database, table, built in lists):
        return Materialization(sourceTablesUpdateDeleteModified=True, sourceTablesCompacted=True)
    is_modified = is_compacted = False
    for some in _batches(lists):
        found = _changes(connection, some, snapshot)
        is_modified, is_compacted = is_modified or found[0], is_compacted or found[1]
        if is_modified and is_compacted:
            break
    return Materialization(sourceTablesUpdateDeleteModified=is_modified, sourceTablesCompacted=is_compacted)


_OfTable = tuple[str, str, ValidWriteIdList]
"""Database, table, and the write ids from which a view was built."""


def _batches(lists: Sequence[_OfTable]) -> Iterator[list[_OfTable]]:
    """Splits the lists into groups for one statement each."""
    some: list[_OfTable] = []
    ids = 0
    for one in lists:
        some.append(one)
        ids += len(one[2].invalid)
        if len(some) >= _MAX_TABLES_IN_SQL or ids >= _MAX_IDS_IN_SQL:
            yield some
            some, ids = [], 0
    if some:
        yield some


def _changes(connection: Connection, lists: Sequence[_OfTable], snapshot: ValidTxnList) -> tuple[bool, bool]:
    """Whether rows of these tables were changed since, and whether any of them was compacted."""
    modified = or_(*(_newer(DONE.CTC_DATABASE, DONE.CTC_TABLE, DONE.CTC_WRITEID, *entry) for entry in lists))
    compacted = or_(
        *(_newer(HISTORY.CC_DATABASE, HISTORY.CC_TABLE, HISTORY.CC_HIGHEST_WRITE_ID, *entry) for entry in lists)
    )
    queued = or_(*((QUEUE.CQ_DATABASE == database) & (QUEUE.CQ_TABLE == table) for database, table, _ in lists))
    row = connection.execute(
        select(
            exists(select(literal(1)).where(DONE.CTC_UPDATE_DELETE == "Y", modified, _is_seen(snapshot))),
            or_(exists(select(literal(1)).where(compacted)), exists(select(literal(1)).where(queued))),
        )
    ).one()
    return bool(row[0]), bool(row[1])


def _snapshot_text(text: str | None) -> str:
    """The list in a view's metadata: plain text before Hive 4, in a JSON document since."""
    if text is None or not text.lstrip().startswith("{"):
        return text or ""
    try:
        value = json.loads(text).get("validTxnList")
    except (ValueError, RecursionError) as error:
        raise MetaException(f"The view's snapshot cannot be read: {error}") from error
    return value if isinstance(value, str) else ""


def _newer(
    database_column: ColumnElement[str],
    table_column: ColumnElement[str],
    id_column: ColumnElement[int],
    database: str,
    table: str,
    write_ids: ValidWriteIdList,
) -> ColumnElement[bool]:
    """A condition: the row is of the table, with a write id that is not valid in the list."""
    is_newer: ColumnElement[bool] = id_column > write_ids.high_watermark
    if write_ids.invalid:
        is_newer = or_(is_newer, id_column.in_(list(write_ids.invalid)))
    return and_(database_column == database, table_column == table, is_newer)


def _is_seen(snapshot: ValidTxnList) -> ColumnElement[bool]:
    condition = DONE.CTC_TXNID <= snapshot.high_watermark
    invalid = snapshot.invalid_ids
    # Leaving out some ids may only report a change that the caller does not see yet.
    return and_(condition, DONE.CTC_TXNID.not_in(list(invalid[-_MAX_IDS_IN_SQL:]))) if invalid else condition
