"""Allocates and seeds write ids of tables, and sets those of replicated tables.

Source of the rules: Hive 4.0 `AllocateTableWriteIdsFunction`, `GetValidWriteIdsForTableFunction` (with HIVE-22122),
`ReplTableWriteIdStateFunction`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Update,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from hms_cache.batches import batches
from hms_cache.input_limits import exceeded, input_limits
from hms_cache.store.engine.dialects import allocate_from_counter
from hms_cache.store.engine.direct_statements import (
    Direct,
    DirectQuery,
    DirectRows,
    Statement,
    execute_directly,
    row_count,
    supports_direct_statements,
)
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.log_writes import ALLOCATE_FOR_LAST_ROW
from hms_cache.store.engine.shared_packets import execute_parts
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.schema import NEXT_WRITE_ID, TXN_TO_WRITE_ID, TXNS
from hms_cache.store.transactions.abort_reasons import ABORTED_AS_REPLICATED_WRITE_ID
from hms_cache.store.transactions.aborting import abort_open_txns
from hms_cache.store.transactions.codes import TXN_OPEN
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.names import plain_database, plain_table
from hms_cache.store.transactions.opening import open_txns
from hms_cache.store.transactions.replicated_txns import target_txn_ids
from hms_cache.store.write_ids.seeding import check_seeded_id
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AllocateTableWriteIdsRequest,
    AllocateTableWriteIdsResponse,
    MaxAllocatedTableWriteIdRequest,
    MetaException,
    OpenTxnRequest,
    ReplTblWriteIdStateRequest,
    SeedTableWriteIdsRequest,
    TxnToWriteId,
    TxnType,
)
from hms_cache.txn import IdListFormatError, ValidWriteIdList

T = TXNS.c
W = TXN_TO_WRITE_ID.c
N = NEXT_WRITE_ID.c


def allocate_table_write_ids(
    transaction: WriteTransaction, context: TxnContext, request: AllocateTableWriteIdsRequest
) -> AllocateTableWriteIdsResponse:
    """Allocates a write id of the table for each transaction: ascending with the transaction ids, without gaps.

    Transactions that have one keep it, unless `reallocate` is set. With a replication policy the ids are the source's.
    Appends ALLOC_WRITE_ID_EVENT. Raises MetaException if one of the transactions is not open or is read-only.
    """
    connection = transaction.connection
    database, table = plain_database(request.dbName), plain_table(request.tableName)
    first_source_id = 0
    if request.replPolicy:
        pairs = sorted(request.srcTxnToWriteIdList or (), key=lambda pair: pair.writeId)
        targets = target_txn_ids(connection, request.replPolicy, [pair.txnId for pair in pairs])
        if len(targets) != len(pairs) or not pairs:
            # The transactions have ended here: a repeated event.
            return AllocateTableWriteIdsResponse(txnToWriteIds=[])
        txn_ids, first_source_id = sorted(targets.values()), pairs[0].writeId
        check_seeded_id("write id of the source", first_source_id)
    else:
        txn_ids = sorted(set(request.txnIds or ()))
    if not txn_ids:
        raise MetaException(f"Write ID allocation on {database}.{table} needs at least one transaction")
    if len(txn_ids) == 1 and not request.replPolicy and not request.reallocate:
        only = _give_to_one(transaction, database, table, txn_ids[0])
        if only is not None:
            event = context.messages.build_allocate_write_ids(database, table, [(txn_ids[0], only)])
            transaction.append_event(event)
            return AllocateTableWriteIdsResponse(txnToWriteIds=[TxnToWriteId(txnId=txn_ids[0], writeId=only)])
    reallocates = bool(request.reallocate)
    return _allocate(transaction, context, database, table, txn_ids, first_source_id, reallocates=reallocates)


def _allocate(
    transaction: WriteTransaction,
    context: TxnContext,
    database: str,
    table: str,
    txn_ids: Sequence[int],
    first_source_id: int = 0,
    *,
    reallocates: bool = False,
) -> AllocateTableWriteIdsResponse:
    """Like `allocate_table_write_ids`, for any number of transactions, with or without existing write ids."""
    connection = transaction.connection
    known = _known_write_ids(connection, database, table, txn_ids)
    if reallocates and known:
        own = (W.T2W_DATABASE == database) & (W.T2W_TABLE == table) & W.T2W_TXNID.in_(txn_ids)
        connection.execute(delete(TXN_TO_WRITE_ID).where(own))
        known = {}
    missing = [txn_id for txn_id in txn_ids if txn_id not in known]
    if missing:
        first = _allocate_range(connection, database, table, len(missing), first_source_id)
        allocated = dict(zip(missing, range(first, first + len(missing)), strict=True))
        _insert(connection, database, table, allocated)
        transaction.append_event(context.messages.build_allocate_write_ids(database, table, list(allocated.items())))
        known |= allocated
    return AllocateTableWriteIdsResponse(
        txnToWriteIds=[TxnToWriteId(txnId=txn_id, writeId=known[txn_id]) for txn_id in txn_ids]
    )


def is_for_one_writer(request: AllocateTableWriteIdsRequest) -> bool:
    """Whether one transaction of this metastore asks for a write id: several such requests can be combined."""
    return not request.replPolicy and not request.reallocate and len(request.txnIds or ()) == 1


def allocate_for_one_each(
    transaction: WriteTransaction, context: TxnContext, requests: Sequence[AllocateTableWriteIdsRequest]
) -> list[AllocateTableWriteIdsResponse | MetaException]:
    """Like `allocate_table_write_ids` for requests of one writer each (`is_for_one_writer`); rows are written together.

    Counters are locked in the order of the tables' names, so that two servers do not deadlock. A request whose
    transaction is not open gets its exception as its answer.
    """
    connection = transaction.connection
    if supports_direct_statements(connection):
        [answers] = execute_parts(transaction, [Allocations(transaction, context, requests)])
        return list(answers)
    requested = [_writer_of(request) for request in requests]
    given = _allocate_for_each(connection, sorted(set(requested)))
    _insert_rows(connection, [(*writer, write_id) for writer, write_id in given.items()])
    return _answer_each(transaction, context, requested, given)


_Writer = tuple[str, str, int]
"""Database, table, transaction."""


def _writer_of(request: AllocateTableWriteIdsRequest) -> _Writer:
    return plain_database(request.dbName), plain_table(request.tableName), (request.txnIds or [0])[0]


def _answer_each(
    transaction: WriteTransaction, context: TxnContext, requested: Sequence[_Writer], given: Mapping[_Writer, int]
) -> list[AllocateTableWriteIdsResponse | MetaException]:
    """The answers, with events for allocated ids. Requests without an allocated id are carried out here, one by one."""
    for (database, table, txn_id), write_id in given.items():
        transaction.append_event(context.messages.build_allocate_write_ids(database, table, [(txn_id, write_id)]))
    answers: list[AllocateTableWriteIdsResponse | MetaException] = []
    for writer in requested:
        database, table, txn_id = writer
        if writer in given:
            pairs = [TxnToWriteId(txnId=txn_id, writeId=given[writer])]
            answers.append(AllocateTableWriteIdsResponse(txnToWriteIds=pairs))
            continue
        try:
            answers.append(_allocate(transaction, context, database, table, [txn_id]))
        except MetaException as error:
            answers.append(error)
    return answers


class Allocations:
    """Like `allocate_for_one_each`, in packets shared with other calls (`shared_packets`)."""

    further_events = 0

    def __init__(
        self, transaction: WriteTransaction, context: TxnContext, requests: Sequence[AllocateTableWriteIdsRequest]
    ) -> None:
        self._transaction = transaction
        self._context = context
        self._requested = [_writer_of(request) for request in requests]
        self._writers = sorted(set(self._requested))
        self._answers: list[AllocateTableWriteIdsResponse | MetaException] = []

    def locking(self) -> Sequence[Statement]:
        """Locks the tables' counters, in the order of their names. After that it reads which transactions may write and
        which have a write id: concurrent calls for the same transaction are visible then."""
        tables = sorted({(database, table) for database, table, _ in self._writers})
        txn_ids = sorted({txn_id for _, _, txn_id in self._writers})
        return (
            (_locking_counters_on_mysql(len(tables)), _names(tables)),
            (_MAY_WRITE, {"txn_ids": txn_ids}),
            (_having_write_ids(len(self._writers)), _values_of(self._writers)),
        )

    def writing(self, found: Sequence[Any]) -> Sequence[Statement]:
        """Updates the counters and inserts rows. Requests that are not served in this way are carried out here, one by
        one."""
        counters, may_write, have = found
        given, allocated = _given(self._writers, counters, {row[0] for row in may_write}, {tuple(row) for row in have})
        self._answers = _answer_each(self._transaction, self._context, self._requested, given)
        statements: list[Statement] = []
        for count, tables in allocated.items():
            statements.append((_moving_counters_on_mysql(len(tables)), {"count": count, **_names(tables)}))
        if given:
            statements.append((_INSERT_ON_MYSQL, _rows([(*writer, write_id) for writer, write_id in given.items()])))
        return statements

    def outcomes(self, written: Sequence[Any]) -> list[AllocateTableWriteIdsResponse | MetaException]:
        """The result of `allocate_for_one_each`."""
        return self._answers


_FEW_TABLES = 3
"""Up to this many tables, one statement per table is no slower than three for all."""


def _allocate_for_each(connection: Connection, writers: Sequence[_Writer]) -> dict[_Writer, int]:
    """Write ids for those that are open, may write and have none; not for the first write id of a table.

    The rows of the tables stay locked, in the order of their names. The transactions get ascending ids of a table.
    """
    tables = sorted({(database, table) for database, table, _ in writers})
    if len(tables) <= _FEW_TABLES or connection.dialect.name == "sqlite":
        found = {writer: _allocate_for_one(connection, *writer) for writer in writers}
        return {writer: write_id for writer, write_id in found.items() if write_id is not None}
    counters = connection.execute(_locking_counters(len(tables)), _names(tables)).all()
    # After the locks: concurrent calls for the same transaction have committed, and their rows are visible.
    may_write = set(connection.execute(_MAY_WRITING, {"txn_ids": sorted({one[2] for one in writers})}).scalars())
    have = {tuple(row) for row in connection.execute(_writers_with_ids(len(writers)), _values_of(writers))}
    given, allocated = _given(writers, counters, may_write, have)
    for count, names in allocated.items():
        connection.execute(_moving_counters(len(names)), {"count": count, **_names(names)})
    return given


def _given(
    writers: Sequence[_Writer], counters: Iterable[Any], may_write: Collection[int], have: Collection[tuple[Any, ...]]
) -> tuple[dict[_Writer, int], dict[int, list[tuple[str, str]]]]:
    """The allocated ids, and the tables by the number of ids taken from their counters."""
    following = {(row.NWI_DATABASE, row.NWI_TABLE): int(row.NWI_NEXT) for row in counters}
    given: dict[_Writer, int] = {}
    for writer in writers:
        database, table, txn_id = writer
        if (database, table) in following and txn_id in may_write and writer not in have:
            given[writer] = following[database, table]
            following[database, table] += 1
    allocated: dict[int, list[tuple[str, str]]] = {}
    for name, count in Counter((database, table) for database, table, _ in given).items():
        allocated.setdefault(count, []).append(name)
    return given, allocated


_MAX_TABLES = 1024
"""Number of cached statements: one for each number of tables."""


@lru_cache(_MAX_TABLES)
def _of_tables(count: int) -> ColumnElement[bool]:
    """Not a list of pairs: with OR, databases look up each one by the key."""
    return or_(
        *(
            (N.NWI_DATABASE == bindparam(f"database_{number}")) & (N.NWI_TABLE == bindparam(f"table_{number}"))
            for number in range(count)
        )
    )


def _names(tables: Sequence[tuple[str, str]]) -> dict[str, str]:
    given: dict[str, str] = {}
    for number, (database, table) in enumerate(tables):
        given[f"database_{number}"], given[f"table_{number}"] = database, table
    return given


@lru_cache(_MAX_TABLES)
def _locking_counters(count: int) -> Select[Any]:
    columns = (N.NWI_DATABASE, N.NWI_TABLE, N.NWI_NEXT)
    return select(*columns).where(_of_tables(count)).order_by(N.NWI_DATABASE, N.NWI_TABLE).with_for_update()


@lru_cache(_MAX_TABLES)
def _locking_counters_on_mysql(count: int) -> DirectQuery:
    return DirectQuery(_locking_counters(count))


@lru_cache(_MAX_TABLES)
def _moving_counters(count: int) -> Update:
    return update(NEXT_WRITE_ID).where(_of_tables(count)).values(NWI_NEXT=N.NWI_NEXT + bindparam("count"))


@lru_cache(_MAX_TABLES)
def _moving_counters_on_mysql(count: int) -> Direct:
    return Direct(_moving_counters(count))


@lru_cache(_MAX_TABLES)
def _writers_with_ids(count: int) -> Select[Any]:
    """Which of this many writers have write ids. Not by transaction alone, for which there is no index."""
    are_requested = (
        and_(
            W.T2W_DATABASE == bindparam(f"database_{number}"),
            W.T2W_TABLE == bindparam(f"table_{number}"),
            W.T2W_TXNID == bindparam(f"txn_id_{number}"),
        )
        for number in range(count)
    )
    return select(W.T2W_DATABASE, W.T2W_TABLE, W.T2W_TXNID).where(or_(*are_requested))


@lru_cache(_MAX_TABLES)
def _having_write_ids(count: int) -> DirectQuery:
    return DirectQuery(_writers_with_ids(count))


def _values_of(writers: Sequence[_Writer]) -> dict[str, Any]:
    names = _names([(database, table) for database, table, _ in writers])
    return {**names, **{f"txn_id_{number}": txn_id for number, (_, _, txn_id) in enumerate(writers)}}


_MAY_WRITING = select(T.TXN_ID).where(
    T.TXN_ID.in_(bindparam("txn_ids", expanding=True)),
    T.TXN_STATE == TXN_OPEN,
    func.coalesce(T.TXN_TYPE, int(TxnType.DEFAULT)) != int(TxnType.READ_ONLY),
)
_MAY_WRITE = DirectQuery(_MAY_WRITING)

_IS_OWN = (N.NWI_DATABASE == bindparam("database")) & (N.NWI_TABLE == bindparam("table"))

_IS_OWN_FOR_NEW_WRITER = and_(
    _IS_OWN,
    select(T.TXN_ID)
    .where(
        T.TXN_ID == bindparam("txn_id"),
        T.TXN_STATE == TXN_OPEN,
        func.coalesce(T.TXN_TYPE, int(TxnType.DEFAULT)) != int(TxnType.READ_ONLY),
    )
    .exists(),
    ~select(W.T2W_WRITEID)
    .where(
        W.T2W_DATABASE == bindparam("database"), W.T2W_TABLE == bindparam("table"), W.T2W_TXNID == bindparam("txn_id")
    )
    .exists(),
)


def _allocate_for_one(connection: Connection, database: str, table: str, txn_id: int) -> int | None:
    """Allocates a write id for a transaction that is open, may write and has none; otherwise returns None without
    allocating.

    Also None for the first write id of a table. The table's row stays locked.
    """
    own = {"database": database, "table": table, "txn_id": txn_id}
    return allocate_from_counter(connection, N.NWI_NEXT, 1, _IS_OWN_FOR_NEW_WRITER, own)


def _give_to_one(transaction: WriteTransaction, database: str, table: str, txn_id: int) -> int | None:
    """Like `_allocate_for_one`, and stores the write id as the transaction's."""
    connection = transaction.connection
    if not supports_direct_statements(connection):
        only = _allocate_for_one(connection, database, table, txn_id)
        if only is not None:
            _insert(connection, database, table, {txn_id: only})
        return only
    own = {"database": database, "table": table, "txn_id": txn_id}
    try:
        allocated, _ = transaction.execute_and_allocate_event_ids(
            [(_ALLOCATE, own), (_RECORD_ALLOCATED, own)], 1, ALLOCATE_FOR_LAST_ROW
        )
    except IntegrityError as error:
        raise _given_twice([(database, table)]) from error
    return allocated.last_id if allocated.rows else None


_ALLOCATE = Direct(
    update(NEXT_WRITE_ID).values({N.NWI_NEXT: func.last_insert_id(N.NWI_NEXT) + 1}).where(_IS_OWN_FOR_NEW_WRITER)
)
_RECORD_ALLOCATED = Direct(
    insert(TXN_TO_WRITE_ID).from_select(
        ["T2W_TXNID", "T2W_DATABASE", "T2W_TABLE", "T2W_WRITEID"],
        select(
            bindparam("txn_id", type_=W.T2W_TXNID.type),
            bindparam("database", type_=W.T2W_DATABASE.type),
            bindparam("table", type_=W.T2W_TABLE.type),
            func.last_insert_id(),
        ).where(row_count() == 1),
    )
)
"""Executed if `_ALLOCATE` has allocated an id."""


def _known_write_ids(connection: Connection, database: str, table: str, txn_ids: Sequence[int]) -> dict[int, int]:
    """The transactions' write ids of the table. Raises MetaException if one of them must not get any."""
    is_own = (W.T2W_TXNID == T.TXN_ID) & (W.T2W_DATABASE == database) & (W.T2W_TABLE == table)
    rows = connection.execute(
        select(T.TXN_ID, T.TXN_STATE, T.TXN_TYPE, W.T2W_WRITEID)
        .select_from(TXNS.outerjoin(TXN_TO_WRITE_ID, is_own))
        .where(T.TXN_ID.in_(txn_ids))
    ).all()
    states = {row.TXN_ID: "read-only" if row.TXN_TYPE == TxnType.READ_ONLY else row.TXN_STATE for row in rows}
    wrong = [f"{{{txn_id},{states.get(txn_id, '?')}}}" for txn_id in txn_ids if states.get(txn_id) != TXN_OPEN]
    if wrong:
        raise MetaException(
            f"Write ID allocation on {database}.{table} failed for input txns: {', '.join(wrong)}: "
            f"not all input txns in open state or read-only"
        )
    return {row.TXN_ID: row.T2W_WRITEID for row in rows if row.T2W_WRITEID is not None}


def _allocate_range(connection: Connection, database: str, table: str, count: int, first_source_id: int) -> int:
    """Allocates `count` write ids and returns the first (`first_source_id` unless that is 0). The table's row stays
    locked."""
    is_own = (N.NWI_DATABASE == database) & (N.NWI_TABLE == table)
    own = {"database": database, "table": table}
    first = allocate_from_counter(connection, N.NWI_NEXT, count, _IS_OWN, own)
    if first is None:
        start = first_source_id or 1
        _begin(connection, database, table, start + count)
        return start
    if first_source_id and first_source_id != first:
        # Writes made here since then differ from the source: their write ids have no meaning any more.
        connection.execute(update(NEXT_WRITE_ID).where(is_own).values(NWI_NEXT=first_source_id + count))
        connection.execute(delete(TXN_TO_WRITE_ID).where(W.T2W_DATABASE == database, W.T2W_TABLE == table))
        return first_source_id
    return first


def _begin(connection: Connection, database: str, table: str, following: int) -> None:
    """Inserts the table's counter; raises RetryableConflict if another transaction has just done so."""
    try:
        connection.execute(insert(NEXT_WRITE_ID).values(NWI_DATABASE=database, NWI_TABLE=table, NWI_NEXT=following))
    except IntegrityError as error:
        raise RetryableConflict(f"the write ids of {database}.{table} were begun at the same moment") from error


_INSERT = insert(TXN_TO_WRITE_ID)
_INSERT_ON_MYSQL = DirectRows(_INSERT, ["T2W_TXNID", "T2W_DATABASE", "T2W_TABLE", "T2W_WRITEID"])


def _insert(connection: Connection, database: str, table: str, write_ids: dict[int, int]) -> None:
    _insert_rows(connection, [(database, table, txn_id, write_id) for txn_id, write_id in write_ids.items()])


def _insert_rows(connection: Connection, found: Sequence[tuple[str, str, int, int]]) -> None:
    rows = _rows(found)
    try:
        if rows and supports_direct_statements(connection):
            execute_directly(connection, [(_INSERT_ON_MYSQL, rows)])
        elif rows:
            connection.execute(_INSERT, rows)
    except IntegrityError as error:
        # Two calls for one transaction at the same time: the retry finds the other's ids.
        raise _given_twice((database, table) for database, table, _, _ in found) from error


def _rows(found: Iterable[tuple[str, str, int, int]]) -> list[dict[str, Any]]:
    return [
        {"T2W_TXNID": txn_id, "T2W_DATABASE": database, "T2W_TABLE": table, "T2W_WRITEID": write_id}
        for database, table, txn_id, write_id in found
    ]


def _given_twice(tables: Iterable[tuple[str, str]]) -> RetryableConflict:
    names = ", ".join(sorted({f"{database}.{table}" for database, table in tables}))
    return RetryableConflict(f"write ids of {names} were given to the same transaction twice")


def max_allocated_write_id(connection: Connection, request: MaxAllocatedTableWriteIdRequest) -> int:
    """The highest write id ever allocated for the table, 0 for none."""
    following = connection.execute(
        select(N.NWI_NEXT).where(
            N.NWI_DATABASE == plain_database(request.dbName), N.NWI_TABLE == plain_table(request.tableName)
        )
    ).scalar()
    return 0 if following is None else int(following) - 1


def seed_write_id(connection: Connection, request: SeedTableWriteIdsRequest) -> None:
    """Makes the write ids of a table that becomes transactional begin above `seedWriteId`.

    Raises MetaException if the table has write ids already, or for a seed below 0.
    """
    database, table = plain_database(request.dbName), plain_table(request.tableName)
    if request.seedWriteId < 0:
        raise MetaException(f"Invalid write id seed {request.seedWriteId} for {database}.{table}")
    check_seeded_id("write id seed", request.seedWriteId)
    try:
        connection.execute(
            insert(NEXT_WRITE_ID).values(NWI_DATABASE=database, NWI_TABLE=table, NWI_NEXT=request.seedWriteId + 1)
        )
    except IntegrityError as error:
        raise MetaException(f"{database}.{table} has write ids already") from error


def repl_tbl_writeid_state(
    transaction: WriteTransaction, context: TxnContext, request: ReplTblWriteIdStateRequest
) -> bool:
    """Sets a replicated table's write ids as in its source; does nothing if it has any.

    Ids that are open or aborted in the source become ids of aborted transactions here. Returns whether there are any.
    Raises MetaException.
    """
    connection = transaction.connection
    database, table = plain_database(request.dbName), plain_table(request.tableName)
    try:
        source = ValidWriteIdList.parse(request.validWriteIdlist)
    except IdListFormatError as error:
        raise MetaException(f"Invalid write-id list: {error}") from error
    is_own = (N.NWI_DATABASE == database) & (N.NWI_TABLE == table)
    if source.is_no_list or connection.execute(select(N.NWI_NEXT).where(is_own).with_for_update()).first():
        return False
    check_seeded_id("write id of the source", source.high_watermark)
    invalid = sorted({write_id for write_id in source.invalid if write_id <= source.high_watermark})
    if len(invalid) > (most := input_limits().request_transactions):
        # Each becomes a transaction here.
        setting = exceeded("request_transactions")
        raise MetaException(f"the list has {len(invalid)} open or aborted write ids, and may have {most} ({setting})")
    for batch in batches(invalid, context.transactions.max_open_batch):
        opening = OpenTxnRequest(num_txns=len(batch), user=request.user, hostname=request.hostName)
        txn_ids = open_txns(transaction, context, opening)
        _insert(connection, database, table, dict(zip(txn_ids, batch, strict=True)))
        abort_open_txns(transaction, context, txn_ids, ABORTED_AS_REPLICATED_WRITE_ID)
    _begin(connection, database, table, source.high_watermark + 1)
    return bool(invalid)
