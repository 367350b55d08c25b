"""`get_valid_write_ids`: the write ids of tables that a snapshot of transactions may see.

Source of the rules: Hive 4.0 `GetValidWriteIdsForTableFunction`. A write id is invalid if its transaction is open or
aborted in the snapshot, or younger than the snapshot. If its transaction is not recorded any more, it has been
committed and compacted, and the write id is valid.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache

from sqlalchemy import ColumnElement, Connection, Executable, and_, bindparam, func, or_, select, union_all

from hms_cache.batches import batches
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.store.engine.bulk_writes import IDS_IN_A_STATEMENT, in_ids
from hms_cache.store.schema import DBS, NEXT_WRITE_ID, TBLS, TXN_TO_WRITE_ID, TXNS
from hms_cache.store.transactions.codes import TXN_ABORTED, TXN_OPEN
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.names import split_full_table_name
from hms_cache.store.transactions.snapshots import open_txns_response, read_snapshot
from hms_cache.thrift_gen.hive_metastore.ttypes import GetValidWriteIdsRequest, GetValidWriteIdsResponse, MetaException
from hms_cache.txn import IdListFormatError, ValidTxnList, ValidWriteIdList

W = TXN_TO_WRITE_ID.c
N = NEXT_WRITE_ID.c

TableKey = tuple[str, str]

_MAX_TABLES_IN_SQL = 2_000
"""Tables per round of statements; a query names two or three, a prewarm thousands."""

_MAX_DATABASES_IN_SQL = 100
"""Databases of these tables: each needs a condition of its own, which costs more than a name in a list."""

_MAX_TABLES_BY_LATEST = 20
"""Tables of a round whose latest write ids are read, each by a separate part of a statement."""

_LATEST = 16
"""More than the usual number of concurrent writers of one table."""

_MAX_TXNS_IN_SQL = 500
"""Invalid transactions that a statement lists as parameters."""

_TXNS_AT_ONCE = IDS_IN_A_STATEMENT
"""Invalid transactions per statement, if there are more."""

_MAX_TXNS_BY_ID = 10 * _TXNS_AT_ONCE
"""With more invalid transactions than this, one statement reads the write ids of all transactions from the lowest on,
which are filtered in memory."""

_DENSE = 4
"""The same is done if at least one in this many transactions is invalid."""


def get_valid_write_ids(
    connection: Connection, context: TxnContext, request: GetValidWriteIdsRequest
) -> GetValidWriteIdsResponse:
    """The lists of the named tables, in the order of the request. A table without write ids has the mark 0 and no ids.

    All statements of `connection` must show one snapshot. The reply contains each table's id if the protocol has a
    field for it. Raises MetaException for an invalid list, a name without a database, or an unknown write id.
    """
    tables = [split_full_table_name(name) for name in request.fullTableNames]
    snapshot = _snapshot_of(connection, context, request, tables)
    lists = valid_write_ids_of(connection, tables, snapshot)
    answer = []
    ids = table_ids_of(connection, tables)
    for name, table in zip(request.fullTableNames, tables, strict=True):
        element = lists[table].to_thrift()
        element.fullTableName = name
        element.tableId = ids.get(table)
        answer.append(element)
    return GetValidWriteIdsResponse(tblValidWriteIds=answer)


def _snapshot_of(
    connection: Connection, context: TxnContext, request: GetValidWriteIdsRequest, tables: Sequence[TableKey]
) -> ValidTxnList:
    if request.validTxnList:
        try:
            return ValidTxnList.parse(request.validTxnList)
        except IdListFormatError as error:
            raise MetaException(f"Invalid list of transactions: {error}") from error
    owner = 0
    if request.writeId and request.writeId > 0 and tables:
        database, table = tables[0]
        found = connection.execute(
            select(W.T2W_TXNID).where(
                W.T2W_DATABASE == database, W.T2W_TABLE == table, W.T2W_WRITEID == request.writeId
            )
        ).scalar()
        if found is None:
            raise MetaException(f"invalid write id {request.writeId} for table {database}.{table}")
        owner = int(found)
    return current_snapshot(connection, context, owner)


def current_snapshot(connection: Connection, context: TxnContext, current_txn_id: int = 0) -> ValidTxnList:
    """The current transactions as `current_txn_id` sees them (0: without a transaction's own writes)."""
    snapshot = read_snapshot(connection, context.transactions.open_timeout_ms)
    return ValidTxnList.from_open_txns(open_txns_response(snapshot), current_txn_id)


def valid_write_ids_of(
    connection: Connection, tables: Sequence[TableKey], snapshot: ValidTxnList
) -> dict[TableKey, ValidWriteIdList]:
    """The list of each table (database, table; lower case) in a snapshot. Three or four statements for up to 2,000
    tables, and one more per 10,000 open or aborted transactions, at most ten."""
    lists: dict[TableKey, ValidWriteIdList] = {}
    for batch in _batches(tables):
        highest = _highest_seen(connection, batch, snapshot)
        allocated = _allocated(connection, [table for table in batch if table not in highest])
        owned = _invalid_owned(connection, batch, snapshot)
        for table in batch:
            high_watermark, seen = highest.get(table) or (allocated.get(table, 0), 0)
            rows = [(write_id, txn_id) for write_id, txn_id in owned[table] if write_id <= high_watermark]
            lists[table] = _list_of(table, high_watermark, seen, rows, snapshot)
    return lists


def _list_of(
    table: TableKey, high_watermark: int, seen: int | None, rows: Sequence[tuple[int, int]], snapshot: ValidTxnList
) -> ValidWriteIdList:
    """`seen`: the number of recorded write ids up to the snapshot's mark; None: some of them are valid. `rows`: invalid
    write ids and their transactions, ascending."""
    name = f"{table[0]}.{table[1]}"
    # Compaction uses it; it may be above the mark if that is lowered below.
    min_open = next((write_id for write_id, txn_id in rows if not snapshot.is_aborted(txn_id)), None)
    invalid_seen = sum(txn_id <= snapshot.high_watermark for _, txn_id in rows)
    if rows and seen == invalid_seen:
        # No recorded write is valid (HIVE-22122): all valid data is below the lowest invalid id.
        high_watermark, rows = rows[0][0], rows[:1]
    found = ValidWriteIdList.of(
        name,
        high_watermark,
        [write_id for write_id, txn_id in rows if not snapshot.is_aborted(txn_id)],
        [write_id for write_id, txn_id in rows if snapshot.is_aborted(txn_id)],
    )
    return found if min_open is None else replace(found, min_open=min_open)


def _highest_seen(
    connection: Connection, tables: Sequence[TableKey], snapshot: ValidTxnList
) -> dict[TableKey, tuple[int, int | None]]:
    """The highest write id of transactions up to the mark, and the number of these write ids (None: some of them are
    valid).

    Usually a table's latest write ids are sufficient. While a transaction stays open, all write ids since then are
    kept, and a table that is written all the time has 100,000 of them.
    """
    if len(tables) > _MAX_TABLES_BY_LATEST:
        return _highest_of_all(connection, tables, snapshot.high_watermark)
    found: dict[TableKey, tuple[int, int | None]] = {}
    undecided: list[TableKey] = []
    latest = _latest(connection, tables)
    if not latest.keys() <= set(tables):
        # Some of the latest rows belong to other names that the database considers equal.
        return _highest_of_all(connection, tables, snapshot.high_watermark)
    for table in tables:
        rows = latest[table]
        seen = [(write_id, txn_id) for write_id, txn_id in rows if txn_id <= snapshot.high_watermark]
        if any(snapshot.is_valid(txn_id) for _, txn_id in seen):
            found[table] = seen[0][0], None
        elif len(rows) == _LATEST:
            undecided.append(table)
        elif seen:
            found[table] = seen[0][0], len(seen)
    if undecided:
        found.update(_highest_of_all(connection, undecided, snapshot.high_watermark))
    return found


def _latest(connection: Connection, tables: Sequence[TableKey]) -> dict[TableKey, list[tuple[int, int]]]:
    """The latest `_LATEST` write ids of each table, descending, with their transactions."""
    parameters: dict[str, str] = {}
    for number, (database, table) in enumerate(tables):
        parameters[f"database{number}"], parameters[f"table{number}"] = database, table
    latest: dict[TableKey, list[tuple[int, int]]] = defaultdict(list)
    for database, table, write_id, txn_id in connection.execute(_latest_of(len(tables)), parameters):
        latest[database, table].append((write_id, txn_id))
    for rows in latest.values():
        rows.sort(reverse=True)
    return latest


@lru_cache(maxsize=_MAX_TABLES_BY_LATEST)
def _latest_of(tables: int) -> Executable:
    of_each = [
        select(W.T2W_DATABASE, W.T2W_TABLE, W.T2W_WRITEID, W.T2W_TXNID)
        .where(W.T2W_DATABASE == bindparam(f"database{number}"), W.T2W_TABLE == bindparam(f"table{number}"))
        .order_by(W.T2W_WRITEID.desc())
        .limit(_LATEST)
        .subquery(f"latest{number}")
        for number in range(tables)
    ]
    return union_all(*map(select, of_each)) if tables > 1 else select(of_each[0])


def _highest_of_all(
    connection: Connection, tables: Sequence[TableKey], txn_high_watermark: int
) -> dict[TableKey, tuple[int, int | None]]:
    rows = connection.execute(
        select(W.T2W_DATABASE, W.T2W_TABLE, func.max(W.T2W_WRITEID), func.count())
        .where(W.T2W_TXNID <= txn_high_watermark, _are_named(W.T2W_DATABASE, W.T2W_TABLE, tables))
        .group_by(W.T2W_DATABASE, W.T2W_TABLE)
    )
    return {(row[0], row[1]): (int(row[2]), int(row[3])) for row in rows}


def _allocated(connection: Connection, tables: Sequence[TableKey]) -> dict[TableKey, int]:
    if not tables:
        return {}
    are_named = _are_named(N.NWI_DATABASE, N.NWI_TABLE, tables)
    rows = connection.execute(select(N.NWI_DATABASE, N.NWI_TABLE, N.NWI_NEXT).where(are_named))
    return {(row.NWI_DATABASE, row.NWI_TABLE): row.NWI_NEXT - 1 for row in rows}


def _invalid_owned(
    connection: Connection, tables: Sequence[TableKey], snapshot: ValidTxnList
) -> dict[TableKey, list[tuple[int, int]]]:
    """Write ids of transactions that are invalid in the snapshot, ascending, with these transactions."""
    invalid = [txn_id for txn_id in sorted(set(snapshot.invalid_ids)) if txn_id <= snapshot.high_watermark]
    of_named = select(W.T2W_DATABASE, W.T2W_TABLE, W.T2W_WRITEID, W.T2W_TXNID).where(
        _are_named(W.T2W_DATABASE, W.T2W_TABLE, tables)
    )
    younger = of_named.where(W.T2W_TXNID > snapshot.high_watermark)
    found: set[tuple[str, str, int, int]] = set()
    if len(invalid) <= _MAX_TXNS_IN_SQL:
        # Not with OR: some databases would not use the tables' index.
        query = union_all(younger, of_named.where(W.T2W_TXNID.in_(invalid))) if invalid else younger
        found.update(connection.execute(query).tuples())
    elif len(invalid) > _MAX_TXNS_BY_ID or invalid[-1] - invalid[0] < _DENSE * len(invalid):
        found.update(connection.execute(of_named.where(W.T2W_TXNID >= invalid[0])).tuples())
    else:
        # A table that is written all the time may have a million write ids since the lowest of them.
        found.update(connection.execute(younger).tuples())
        of_listed = of_named.where(in_ids(W.T2W_TXNID, "owners"))
        for some in batches(invalid, _TXNS_AT_ONCE):
            found.update(connection.execute(of_listed, {"owners": some}).tuples())
    owned: dict[TableKey, list[tuple[int, int]]] = defaultdict(list)
    for database, table, write_id, txn_id in sorted(found):
        if not snapshot.is_valid(txn_id):
            owned[database, table].append((write_id, txn_id))
    return owned


def _batches(tables: Iterable[TableKey]) -> Iterator[list[TableKey]]:
    """Each table once, in groups for one statement."""
    batch: list[TableKey] = []
    databases: set[str] = set()
    for table in sorted(set(tables)):
        is_full = len(batch) == _MAX_TABLES_IN_SQL
        if is_full or (len(databases) == _MAX_DATABASES_IN_SQL and table[0] not in databases):
            yield batch
            batch, databases = [], set()
        batch.append(table)
        databases.add(table[0])
    if batch:
        yield batch


def _are_named(
    database_column: ColumnElement[str], table_column: ColumnElement[str], tables: Sequence[TableKey]
) -> ColumnElement[bool]:
    """Not a list of pairs: with OR, databases look up each one by the key."""
    by_database: dict[str, list[str]] = defaultdict(list)
    for database, table in tables:
        by_database[database].append(table)
    return or_(*(and_(database_column == database, table_column.in_(names)) for database, names in by_database.items()))


class WriteIdState(StrEnum):
    """State of the transaction to which a write id belongs."""

    OPEN = "open"
    ABORTED = "aborted"
    COMMITTED = "committed"


def write_id_states(connection: Connection, table: TableKey, write_ids: Collection[int]) -> dict[int, WriteIdState]:
    """The state of each of these write ids of a table (database, table; lower-case), by the transaction tables alone.

    An id without an owner was committed long ago, or was never given out by this database (0, a copied table).
    """
    rows = connection.execute(
        select(W.T2W_WRITEID, TXNS.c.TXN_STATE)
        .join_from(TXN_TO_WRITE_ID, TXNS, W.T2W_TXNID == TXNS.c.TXN_ID)
        .where(W.T2W_DATABASE == table[0], W.T2W_TABLE == table[1], W.T2W_WRITEID.in_(list(write_ids)))
    )
    known = {TXN_OPEN: WriteIdState.OPEN, TXN_ABORTED: WriteIdState.ABORTED}
    states = dict.fromkeys(write_ids, WriteIdState.COMMITTED)
    states.update({row.T2W_WRITEID: known.get(row.TXN_STATE, WriteIdState.COMMITTED) for row in rows})
    return states


def table_ids_of(connection: Connection, tables: Sequence[TableKey]) -> dict[TableKey, int]:
    """TBL_ID of each table of the default catalog that exists."""
    ids: dict[TableKey, int] = {}
    for batch in _batches(tables):
        rows = connection.execute(
            select(DBS.c.NAME, TBLS.c.TBL_NAME, TBLS.c.TBL_ID)
            .join_from(TBLS, DBS, TBLS.c.DB_ID == DBS.c.DB_ID)
            .where(DBS.c.CTLG_NAME == DEFAULT_CATALOG, _are_named(DBS.c.NAME, TBLS.c.TBL_NAME, batch))
        )
        ids.update({(row.NAME, row.TBL_NAME): row.TBL_ID for row in rows})
    return ids
