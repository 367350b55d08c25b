"""Deletes rows that are no longer needed.

*Low-water marks* decide which rows: ids below which no transaction is open, none was open in the snapshot of one that
is still open, and no reader counts a gap as a transaction. Source: Hive 4.0 `CleanTxnToWriteIdTableFunction`,
`MinOpenTxnIdWaterMarkFunction`, `CompactionTxnHandler.cleanEmptyAbortedAndCommittedTxns`. If TXN_TO_WRITE_ID is cleaned
too early, snapshots take uncommitted writes for committed ones (HIVE-25346).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, astuple
from typing import Any, NamedTuple

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    and_,
    case,
    delete,
    func,
    literal,
    or_,
    select,
    union_all,
)

from hms_cache.batches import batches
from hms_cache.clock import stored_s
from hms_cache.config.quantities import whole_seconds
from hms_cache.store.engine.bulk_writes import delete_some
from hms_cache.store.engine.index_walk import is_after
from hms_cache.store.engine.text_conditions import ExactText, same_text
from hms_cache.store.schema import (
    COMPLETED_TXN_COMPONENTS,
    MIN_HISTORY_LEVEL,
    NEXT_WRITE_ID,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
    WRITE_SET,
)
from hms_cache.store.transactions.codes import TXN_ABORTED, TXN_COMMITTED, TXN_OPEN
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.database_values import now_ms
from hms_cache.store.transactions.delta_thresholds import LEAST_KEPT, own_delta_thresholds, writes_kept
from hms_cache.store.transactions.mutexes import Mutex, hold_mutex
from hms_cache.store.transactions.write_notifications import delete_old_write_notifications
from hms_cache.values import frozen

T = TXNS.c
W = TXN_TO_WRITE_ID.c
N = NEXT_WRITE_ID.c
DONE = COMPLETED_TXN_COMPONENTS.c

_BATCH_SIZE = 10_000
"""Rows of one table deleted in one transaction: enough to keep up, and few enough not to block others for long."""


@frozen
class Cleaned:
    """Number of rows deleted by one step, by table."""

    txns: int
    write_ids: int
    write_sets: int
    completed_components: int
    write_notifications: int

    def plus(self, other: Cleaned) -> Cleaned:
        """The sum of both."""
        return Cleaned(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    @property
    def tables_left(self) -> Collection[str]:
        """Tables in which another step may find more rows."""
        return [table for table, rows in asdict(self).items() if rows >= _BATCH_SIZE]

    @property
    def is_complete(self) -> bool:
        """Whether another step would find nothing."""
        return not self.tables_left


def clean(connection: Connection, context: TxnContext, before: Cleaned | None = None) -> Cleaned:
    """Deletes rows below the low-water marks, at most 10,000 per table, in the caller's transaction.

    `before`: the result of the previous step. Tables in which it left nothing are skipped, so that they are not read
    again while another table's rows are deleted in many steps.
    """
    hold_mutex(connection, Mutex.TXN_CLEANER)
    left = None if before is None else before.tables_left
    if left is None:
        _clean_histories(connection, context)
        context.housekeeper.surplus_writes.go_on(connection)
    retention_s = whole_seconds(context.events.retention_s)
    written_before = stored_s(context.clock.epoch_s()) - retention_s
    steps: Mapping[str, Callable[[], int]] = {
        "txns": lambda: _clean_txns(connection, context),
        "write_ids": lambda: _clean_write_ids(connection, context),
        "write_sets": lambda: _clean_write_sets(connection, context),
        "completed_components": lambda: _clean_completed_components(connection, context),
        "write_notifications": lambda: delete_old_write_notifications(connection, written_before, _BATCH_SIZE),
    }
    return Cleaned(**{table: step() if left is None or table in left else 0 for table, step in steps.items()})


def min_open_txn_water_mark(connection: Connection, context: TxnContext) -> int:
    """The lowest id that is open or may be being opened. Above all ids if there is none."""
    is_old = T.TXN_STARTED < now_ms() - context.transactions.open_timeout_ms
    row = connection.execute(
        select(
            # Not `min`: the first open id in order is sufficient.
            select(T.TXN_ID).where(T.TXN_STATE == TXN_OPEN).order_by(T.TXN_ID).limit(1).scalar_subquery(),
            select(T.TXN_ID).where(is_old).order_by(T.TXN_ID.desc()).limit(1).scalar_subquery(),
        )
    ).one()
    low_boundary = int(row[1] or 0)
    return low_boundary + 1 if row[0] is None else min(int(row[0]), low_boundary + 1)


def _clean_txns(connection: Connection, context: TxnContext) -> int:
    """Deletes rows of committed transactions, and of aborted ones whose files a cleaner has removed; never the highest
    id, which keeps the mark."""
    is_old = T.TXN_STARTED < now_ms() - context.transactions.open_timeout_ms
    low_boundary = connection.execute(select(T.TXN_ID).where(is_old).order_by(T.TXN_ID.desc()).limit(1)).scalar()
    if low_boundary is None:
        return 0
    components = TXN_COMPONENTS.c.TC_TXNID
    has_components = select(components).where(components == T.TXN_ID).exists()
    # A committed transaction may have leftover components: Hive leaves them when a reader commits.
    is_over = or_(T.TXN_STATE == TXN_COMMITTED, and_(T.TXN_STATE == TXN_ABORTED, ~has_components))
    rows = connection.execute(
        select(T.TXN_ID, T.TXN_STATE).where(is_over, T.TXN_ID < low_boundary).order_by(T.TXN_ID).limit(_BATCH_SIZE)
    ).all()
    for batch in batches(rows, 1000):
        ids = [row.TXN_ID for row in batch]
        for txn_id in context.histories:
            # There may be more than one step deletes, and a foreign key would then prevent the deletion of the row.
            connection.execute(delete(txn_id.table).where(txn_id.in_(ids)))
        committed = [row.TXN_ID for row in batch if row.TXN_STATE == TXN_COMMITTED]
        connection.execute(delete(TXN_COMPONENTS).where(components.in_(committed)))
        connection.execute(delete(TXNS).where(T.TXN_ID.in_(ids)))
    return len(rows)


def _clean_histories(connection: Connection, context: TxnContext) -> None:
    """Deletes history rows of ended transactions. Servers with one setting write them; servers with another setting end
    the transactions and leave the rows, for which write ids and cleaners would wait for ever."""
    for txn_id in context.histories:
        is_open = select(T.TXN_ID).where(T.TXN_ID == txn_id, T.TXN_STATE == TXN_OPEN).exists()
        over = connection.execute(select(txn_id).distinct().where(~is_open).limit(_BATCH_SIZE)).scalars().all()
        for some in batches(over, 1000):
            connection.execute(delete(txn_id.table).where(txn_id.in_(some)))


def _clean_write_ids(connection: Connection, context: TxnContext) -> int:
    if context.use_min_history_level and _is_any_open_without_history(connection):
        return 0
    is_invalid = T.TXN_STATE.in_([TXN_ABORTED, TXN_OPEN])
    marks = [
        select(func.max(T.TXN_ID) + 1).scalar_subquery(),
        select(T.TXN_ID).where(is_invalid).order_by(T.TXN_ID).limit(1).scalar_subquery(),
        select(func.min(WRITE_SET.c.WS_TXNID)).scalar_subquery(),
    ]
    if any(txn_id.table is MIN_HISTORY_LEVEL for txn_id in context.histories):
        # Even if the setting is off: while it was on, commits recorded only row changes, not all writes.
        marks.append(select(func.min(MIN_HISTORY_LEVEL.c.MHL_MIN_OPEN_TXNID)).scalar_subquery())
    found = [value for value in connection.execute(select(*marks)).one() if value is not None]
    found.append(min_open_txn_water_mark(connection, context))
    mark = min(found)
    deleted = _delete_oldest_write_ids(connection, mark)
    return deleted + _delete_write_ids_without_table(connection, context, mark, _BATCH_SIZE - deleted)


def _is_any_open_without_history(connection: Connection) -> bool:
    """Whether a transaction is open that was opened by a server (Hive's or this program) with `min_history_level` off.

    For it, the transactions that it saw open are not recorded. The write sets of these could tell, but with the setting
    on, commits record row changes only. So no write id is deleted before that transaction has ended.
    """
    noted = MIN_HISTORY_LEVEL.c.MHL_TXNID
    is_noted = select(noted).where(noted == T.TXN_ID).exists()
    return connection.execute(select(T.TXN_ID).where(T.TXN_STATE == TXN_OPEN, ~is_noted).limit(1)).first() is not None


def _delete_oldest_write_ids(connection: Connection, mark: int) -> int:
    """Deletes write ids of transactions below the mark, and returns their number. The rest of a table are always its
    latest write ids.

    Readers (`write_ids.valid_write_ids`) take the highest existing write id for the upper bound of their snapshot, and
    all ids below the lowest invalid one for valid. If a committed transaction's write id were deleted before a lower
    one, it could be above that bound, and its rows would become invisible. So it is kept as long as a lower one is,
    which may belong to an aborted transaction; and deletion in several steps begins with the lowest.

    While a transaction stays open for long, there may be millions of write ids that have to stay. So only tables are
    examined whose lowest write id may be deleted, and of these no more rows than may be deleted.
    """
    left = _BATCH_SIZE
    for _ in range(_PASSES):
        tables = _with_old_write_ids(connection, mark, left)
        if not tables:
            break
        # A range of as many ids as rows may be deleted per table.
        share = left // len(tables)
        for some in batches(tables, _TABLES_AT_ONCE):
            left -= _delete_old_write_ids_of(connection, mark, some, share)
        if left <= 0:
            break
    return _BATCH_SIZE - left


_PASSES = 10
"""Passes over the tables in one step: each divides the remaining number of rows equally among all tables."""

_TABLES_AT_ONCE = 100
"""Tables whose write ids one statement deletes."""


def _with_old_write_ids(connection: Connection, mark: int, most: int) -> Sequence[tuple[str, str, int]]:
    """Database, name and lowest write id of tables whose lowest write id belongs to a transaction below the mark."""

    def of_lowest(column: Column[Any]) -> ColumnElement[int]:
        own = (W.T2W_DATABASE == N.NWI_DATABASE, W.T2W_TABLE == N.NWI_TABLE)
        lowest = select(column).where(*own).order_by(W.T2W_WRITEID).limit(1)
        return lowest.correlate(NEXT_WRITE_ID).scalar_subquery()

    query = select(N.NWI_DATABASE, N.NWI_TABLE, of_lowest(W.T2W_WRITEID)).where(of_lowest(W.T2W_TXNID) < mark)
    return [(database, table, int(lowest)) for database, table, lowest in connection.execute(query.limit(most))]


def _delete_old_write_ids_of(
    connection: Connection, mark: int, tables: Sequence[tuple[str, str, int]], most: int
) -> int:
    """Deletes from each table's lowest write id on, within a range of `most` ids, up to the first one that has to stay.
    Returns the number of rows."""
    is_old = W.T2W_TXNID < mark
    ends = {(database, table): lowest + most for database, table, lowest in tables}

    def up_to_ends() -> ColumnElement[bool]:
        return or_(
            *(
                and_(W.T2W_DATABASE == database, W.T2W_TABLE == table, W.T2W_WRITEID < end)
                for (database, table), end in ends.items()
            )
        )

    kept = connection.execute(
        select(W.T2W_DATABASE, W.T2W_TABLE, func.min(W.T2W_WRITEID))
        .where(~is_old, up_to_ends())
        .group_by(W.T2W_DATABASE, W.T2W_TABLE)
    )
    ends |= {(database, table): int(first) for database, table, first in kept}
    return connection.execute(delete(TXN_TO_WRITE_ID).where(is_old, up_to_ends())).rowcount


_MAX_SEARCHED = 20
"""Names with write ids to examine, each found by one index lookup."""


def _delete_write_ids_without_table(connection: Connection, context: TxnContext, mark: int, most: int) -> int:
    """Deletes write ids of names without a row in NEXT_WRITE_ID, which other queries do not find. Returns their number.

    A metastore that was killed while it dropped a table may have left them: Hive deletes them outside the transaction
    that drops the table. This is not urgent, so each step examines only some names.
    """
    next_id = select(literal(1)).where(N.NWI_DATABASE == W.T2W_DATABASE, N.NWI_TABLE == W.T2W_TABLE)
    columns = (W.T2W_DATABASE, W.T2W_TABLE)
    has_none = ~next_id.correlate(TXN_TO_WRITE_ID).exists()
    query = select(*columns, W.T2W_WRITEID, has_none).order_by(*columns, W.T2W_WRITEID).limit(1)
    left, keeper = most, context.housekeeper
    for _ in range(_MAX_SEARCHED if left > 0 else 0):
        last = keeper.last_with_write_ids
        found = connection.execute(query if last is None else query.where(is_after(connection, columns, last))).first()
        if found is None:
            keeper.last_with_write_ids = None
            break
        database, table, lowest, is_without_table = found
        if is_without_table:
            left -= _delete_old_write_ids_of(connection, mark, [(database, table, int(lowest))], left)
        if left <= 0:
            break  # this name may have more
        keeper.last_with_write_ids = (database, table)
    return most - left


def _clean_write_sets(connection: Connection, context: TxnContext) -> int:
    water_mark = min_open_txn_water_mark(connection, context)
    return delete_some(connection, WRITE_SET, WRITE_SET.c.WS_COMMIT_ID < water_mark, _BATCH_SIZE)


def _clean_completed_components(connection: Connection, context: TxnContext) -> int:
    """For each table or partition, the newest write and the newest row change carry the information of all others,
    except writes that were open when later ones were committed (see `write_ids.materializations`). The initiator of
    compactions also counts them. Writes without a write id, of clients that allocate none, are not counted; they only
    prove that their transactions were committed, and the newest of them are kept. Rows are counted part by part, since
    most of them stay."""
    common = writes_kept(context.compactions.delta_count_threshold)
    has_write_id = DONE.CTC_WRITEID.is_not(None)
    left, walk = _BATCH_SIZE, context.housekeeper.surplus_writes
    with walk.working():
        for are_of_part in walk.part:
            for number, condition in ((DONE.CTC_WRITEID, has_write_id), (DONE.CTC_TXNID, ~has_write_id)):
                often = _written_often(connection, number, condition, are_of_part, common)
                for some in batches(often, _GROUPS_AT_ONCE):
                    if left > 0:
                        surplus = _surplus(connection, number, some)
                        left -= delete_some(connection, COMPLETED_TXN_COMPONENTS, surplus, left)
    return _BATCH_SIZE - left


_GROUPS_INSPECTED = 100_000
"""Tables and partitions of a part that have many completed writes; most of them may keep all."""

_GROUPS_AT_ONCE = 50
"""Tables or partitions in one statement: SQLite allows at most 500 SELECTs in one."""


class _Written(NamedTuple):
    """A table or partition with more writes than are kept."""

    are_its: ColumnElement[bool]
    kept: int
    """Number of writes that are kept, the newest ones."""
    newest: int
    newest_change: int | None
    """The newest write that changed rows."""


def _written_often(
    connection: Connection,
    number: Column[Any],
    are_meant: ColumnElement[bool],
    are_of_part: ColumnElement[bool],
    common: int,
) -> list[_Written]:
    """`number` identifies writes, and is higher for newer ones. `common`: the number kept for tables without a
    threshold of their own."""
    place = (DONE.CTC_DATABASE, DONE.CTC_TABLE, DONE.CTC_PARTITION)
    changed = case((DONE.CTC_UPDATE_DELETE == "Y", number))
    rows = connection.execute(
        select(*place, func.max(number), func.max(changed), writes := func.count(number.distinct()))
        .where(are_meant, are_of_part)
        .group_by(*place, ExactText(DONE.CTC_PARTITION))
        .having(writes > LEAST_KEPT + 1)
        .limit(_GROUPS_INSPECTED)
    ).all()
    # Hive also records writers' locks on whole databases.
    own = own_delta_thresholds(connection, {(row[0], row[1]) for row in rows if row[1] is not None})
    found: list[_Written] = []
    for database, table, partition, newest, newest_change, count in rows:
        threshold = own.get((database, table))
        kept = common if threshold is None else writes_kept(threshold)
        if count > kept + 1:
            of_table = (DONE.CTC_DATABASE == database, DONE.CTC_TABLE == table)
            are_its = and_(*of_table, same_text(DONE.CTC_PARTITION, partition), are_meant)
            found.append(_Written(are_its, kept, newest, newest_change))
    return found


def _surplus(connection: Connection, number: Column[Any], written: Sequence[_Written]) -> ColumnElement[bool]:
    """The writes that may be deleted."""
    of_each = [
        select(literal(place).label("PLACE"), number.label("NUMBER"))
        .where(one.are_its)
        .distinct()
        .order_by(number.desc())
        .offset(one.kept - 1)
        .limit(1)
        .subquery(f"written{place}")
        for place, one in enumerate(written)
    ]
    query = union_all(*map(select, of_each)) if len(of_each) > 1 else select(of_each[0])
    oldest_kept = {int(place): int(oldest) for place, oldest in connection.execute(query)}
    conditions = []
    for place, one in enumerate(written):
        are_surplus = and_(one.are_its, number < min(oldest_kept.get(place, one.newest), one.newest))
        if one.newest_change is not None:
            are_surplus = and_(are_surplus, number != one.newest_change)
        conditions.append(are_surplus)
    return or_(*conditions)
