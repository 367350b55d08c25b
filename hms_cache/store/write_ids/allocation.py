"""Write ids of tables: handing them out, seeding, and telling which of them a snapshot of transactions may see.

Source of the rules: Hive 4.0 `AllocateTableWriteIdsFunction`, `GetValidWriteIdsForTableFunction` (with HIVE-22122),
`ReplTableWriteIdStateFunction`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
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

from hms_cache.input_limits import exceeded, input_limits
from hms_cache.store.engine.dialects import take_from_counter
from hms_cache.store.engine.direct_statements import (
    Direct,
    DirectRows,
    execute_directly,
    row_count,
    takes_direct_statements,
)
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.log_writes import TAKE_FOR_LAST_ROW
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
    """Give each transaction its write id of the table: ascending with the transaction ids, dense over all of them.

    Transactions that have one keep it, unless `reallocate`. With a replication policy the ids are the source's. Appends
    ALLOC_WRITE_ID_EVENT. Raises MetaException when one of the transactions is not open or read-only.
    """
    connection = transaction.connection
    database, table = plain_database(request.dbName), plain_table(request.tableName)
    first_source_id = 0
    if request.replPolicy:
        pairs = sorted(request.srcTxnToWriteIdList or (), key=lambda pair: pair.writeId)
        targets = target_txn_ids(connection, request.replPolicy, [pair.txnId for pair in pairs])
        if len(targets) != len(pairs) or not pairs:
            # The transactions are over here: a repeated event.
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
    known = _known_write_ids(connection, database, table, txn_ids)
    if request.reallocate and known:
        own = (W.T2W_DATABASE == database) & (W.T2W_TABLE == table) & W.T2W_TXNID.in_(txn_ids)
        connection.execute(delete(TXN_TO_WRITE_ID).where(own))
        known = {}
    missing = [txn_id for txn_id in txn_ids if txn_id not in known]
    if missing:
        first = _take(connection, database, table, len(missing), first_source_id)
        allocated = dict(zip(missing, range(first, first + len(missing)), strict=True))
        _insert(connection, database, table, allocated)
        transaction.append_event(context.messages.build_allocate_write_ids(database, table, list(allocated.items())))
        known |= allocated
    return AllocateTableWriteIdsResponse(
        txnToWriteIds=[TxnToWriteId(txnId=txn_id, writeId=known[txn_id]) for txn_id in txn_ids]
    )


def is_for_one_writer(request: AllocateTableWriteIdsRequest) -> bool:
    """Whether one transaction of our own asks for a write id: several such requests can be answered together."""
    return not request.replPolicy and not request.reallocate and len(request.txnIds or ()) == 1


def allocate_for_one_each(
    transaction: WriteTransaction, context: TxnContext, requests: Sequence[AllocateTableWriteIdsRequest]
) -> list[AllocateTableWriteIdsResponse | MetaException]:
    """As `allocate_table_write_ids` for requests of one writer each (`is_for_one_writer`); rows are written together.

    Counters are locked in the order of the tables' names, so that two servers do not wait for each other. A request
    whose transaction is not open is answered its exception.
    """
    connection = transaction.connection
    asked = [(plain_database(one.dbName), plain_table(one.tableName), (one.txnIds or [0])[0]) for one in requests]
    given = _take_for_each(connection, sorted(set(asked)))
    _insert_rows(connection, [(*key, write_id) for key, write_id in given.items()])
    for (database, table, txn_id), write_id in given.items():
        transaction.append_event(context.messages.build_allocate_write_ids(database, table, [(txn_id, write_id)]))
    answers: list[AllocateTableWriteIdsResponse | MetaException] = []
    for key, request in zip(asked, requests, strict=True):
        if key in given:
            pairs = [TxnToWriteId(txnId=key[2], writeId=given[key])]
            answers.append(AllocateTableWriteIdsResponse(txnToWriteIds=pairs))
            continue
        try:
            answers.append(allocate_table_write_ids(transaction, context, request))
        except MetaException as error:
            answers.append(error)
    return answers


_Writer = tuple[str, str, int]
"""Database, table, transaction."""

_FEW_TABLES = 3
"""Up to so many, a statement for each is no more than the three for all."""


def _take_for_each(connection: Connection, writers: Sequence[_Writer]) -> dict[_Writer, int]:
    """Write ids for those that are open, may write and have none; none for the first write ids of a table.

    Tables' rows stay locked, in the order of their names. Of a table the transactions get ascending ids.
    """
    tables = sorted({(database, table) for database, table, _ in writers})
    if len(tables) <= _FEW_TABLES or connection.dialect.name == "sqlite":
        found = {writer: _take_for_one(connection, *writer) for writer in writers}
        return {writer: write_id for writer, write_id in found.items() if write_id is not None}
    rows = connection.execute(_locking_counters(len(tables)), _names(tables))
    following = {(row.NWI_DATABASE, row.NWI_TABLE): int(row.NWI_NEXT) for row in rows}
    # After the locks: who asked for the same at the same moment has been answered, and is seen.
    may_write, have = _writers(connection, {txn_id for _, _, txn_id in writers})
    given: dict[_Writer, int] = {}
    for writer in writers:
        database, table, txn_id = writer
        if (database, table) in following and txn_id in may_write and writer not in have:
            given[writer] = following[database, table]
            following[database, table] += 1
    taken = Counter((database, table) for database, table, _ in given)
    for count in sorted(set(taken.values())):
        counters = [name for name, number in taken.items() if number == count]
        connection.execute(_moving_counters(len(counters)), {"count": count, **_names(counters)})
    return given


_MOST_TABLES = 1024
"""Statements that are kept: one for each number of tables."""


@lru_cache(_MOST_TABLES)
def _of_tables(count: int) -> ColumnElement[bool]:
    """Not as a list of pairs: databases look for each of these by its key."""
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


@lru_cache(_MOST_TABLES)
def _locking_counters(count: int) -> Select[Any]:
    columns = (N.NWI_DATABASE, N.NWI_TABLE, N.NWI_NEXT)
    return select(*columns).where(_of_tables(count)).order_by(N.NWI_DATABASE, N.NWI_TABLE).with_for_update()


@lru_cache(_MOST_TABLES)
def _moving_counters(count: int) -> Update:
    return update(NEXT_WRITE_ID).where(_of_tables(count)).values(NWI_NEXT=N.NWI_NEXT + bindparam("count"))


def _writers(connection: Connection, txn_ids: Collection[int]) -> tuple[set[int], set[_Writer]]:
    """Which of the transactions may write, and what has write ids already."""
    may_write: set[int] = set()
    have: set[_Writer] = set()
    for row in connection.execute(_WRITERS, {"txn_ids": sorted(txn_ids)}):
        if row.TXN_STATE == TXN_OPEN and row.TXN_TYPE != TxnType.READ_ONLY:
            may_write.add(row.TXN_ID)
        if row.T2W_TABLE is not None:
            have.add((row.T2W_DATABASE, row.T2W_TABLE, row.TXN_ID))
    return may_write, have


_WRITERS = (
    select(T.TXN_ID, T.TXN_STATE, T.TXN_TYPE, W.T2W_DATABASE, W.T2W_TABLE)
    .select_from(TXNS.outerjoin(TXN_TO_WRITE_ID, W.T2W_TXNID == T.TXN_ID))
    .where(T.TXN_ID.in_(bindparam("txn_ids", expanding=True)))
)

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
        W.T2W_DATABASE == bindparam("database"),
        W.T2W_TABLE == bindparam("table"),
        W.T2W_TXNID == bindparam("txn_id"),
    )
    .exists(),
)


def _take_for_one(connection: Connection, database: str, table: str, txn_id: int) -> int | None:
    """A write id for a transaction that is open, may write and has none; None, and none is taken, otherwise.

    None, too, for the first write ids of a table. The table's row stays locked.
    """
    own = {"database": database, "table": table, "txn_id": txn_id}
    return take_from_counter(connection, N.NWI_NEXT, 1, _IS_OWN_FOR_NEW_WRITER, own)


def _give_to_one(transaction: WriteTransaction, database: str, table: str, txn_id: int) -> int | None:
    """As `_take_for_one`, and the write id is noted as the transaction's."""
    connection = transaction.connection
    if not takes_direct_statements(connection):
        only = _take_for_one(connection, database, table, txn_id)
        if only is not None:
            _insert(connection, database, table, {txn_id: only})
        return only
    own = {"database": database, "table": table, "txn_id": txn_id}
    try:
        taken, _ = transaction.execute_and_take_event_ids([(_TAKE, own), (_NOTE_TAKEN, own)], 1, TAKE_FOR_LAST_ROW)
    except IntegrityError as error:
        raise _given_twice([(database, table)]) from error
    return taken.last_id if taken.rows else None


_TAKE = Direct(
    update(NEXT_WRITE_ID).values({N.NWI_NEXT: func.last_insert_id(N.NWI_NEXT) + 1}).where(_IS_OWN_FOR_NEW_WRITER)
)
_NOTE_TAKEN = Direct(
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
"""Where `_TAKE` has taken one."""


def _known_write_ids(connection: Connection, database: str, table: str, txn_ids: Sequence[int]) -> dict[int, int]:
    """The write ids that transactions have of the table. Raises MetaException when one of them may get none."""
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


def _take(connection: Connection, database: str, table: str, count: int, first_source_id: int) -> int:
    """The first of `count` write ids (`first_source_id` if that is not 0); the table's row stays locked."""
    is_own = (N.NWI_DATABASE == database) & (N.NWI_TABLE == table)
    own = {"database": database, "table": table}
    first = take_from_counter(connection, N.NWI_NEXT, count, _IS_OWN, own)
    if first is None:
        start = first_source_id or 1
        _begin(connection, database, table, start + count)
        return start
    if first_source_id and first_source_id != first:
        # What was written here since differs from the source: its write ids mean nothing any more.
        connection.execute(update(NEXT_WRITE_ID).where(is_own).values(NWI_NEXT=first_source_id + count))
        connection.execute(delete(TXN_TO_WRITE_ID).where(W.T2W_DATABASE == database, W.T2W_TABLE == table))
        return first_source_id
    return first


def _begin(connection: Connection, database: str, table: str, following: int) -> None:
    """Begin the table's write ids; raises RetryableConflict when another transaction has just done so."""
    try:
        connection.execute(insert(NEXT_WRITE_ID).values(NWI_DATABASE=database, NWI_TABLE=table, NWI_NEXT=following))
    except IntegrityError as error:
        raise RetryableConflict(f"the write ids of {database}.{table} were begun at the same moment") from error


_INSERT = insert(TXN_TO_WRITE_ID)
_INSERT_ON_MYSQL = DirectRows(_INSERT, ["T2W_TXNID", "T2W_DATABASE", "T2W_TABLE", "T2W_WRITEID"])


def _insert(connection: Connection, database: str, table: str, write_ids: dict[int, int]) -> None:
    _insert_rows(connection, [(database, table, txn_id, write_id) for txn_id, write_id in write_ids.items()])


def _insert_rows(connection: Connection, found: Sequence[tuple[str, str, int, int]]) -> None:
    rows = [
        {"T2W_TXNID": txn_id, "T2W_DATABASE": database, "T2W_TABLE": table, "T2W_WRITEID": write_id}
        for database, table, txn_id, write_id in found
    ]
    try:
        if rows and takes_direct_statements(connection):
            execute_directly(connection, [(_INSERT_ON_MYSQL, rows)])
        elif rows:
            connection.execute(_INSERT, rows)
    except IntegrityError as error:
        # Two calls for one transaction at the same moment: the other's ids will be found.
        raise _given_twice((database, table) for database, table, _, _ in found) from error


def _given_twice(tables: Iterable[tuple[str, str]]) -> RetryableConflict:
    names = ", ".join(sorted({f"{database}.{table}" for database, table in tables}))
    return RetryableConflict(f"write ids of {names} were given to the same transaction twice")


def max_allocated_write_id(connection: Connection, request: MaxAllocatedTableWriteIdRequest) -> int:
    """The highest write id ever given out for the table, 0 for none."""
    following = connection.execute(
        select(N.NWI_NEXT).where(
            N.NWI_DATABASE == plain_database(request.dbName), N.NWI_TABLE == plain_table(request.tableName)
        )
    ).scalar()
    return 0 if following is None else int(following) - 1


def seed_write_id(connection: Connection, request: SeedTableWriteIdsRequest) -> None:
    """Begin the write ids of a table that becomes transactional above `seedWriteId`.

    Raises MetaException when the table has write ids already, or for a seed below 0.
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
) -> None:
    """Set a replicated table's write ids as they are at its source; nothing to do when it has any.

    Ids that are open or aborted there become ids of aborted transactions here. Raises MetaException.
    """
    connection = transaction.connection
    database, table = plain_database(request.dbName), plain_table(request.tableName)
    try:
        source = ValidWriteIdList.parse(request.validWriteIdlist)
    except IdListFormatError as error:
        raise MetaException(f"Invalid write-id list: {error}") from error
    is_own = (N.NWI_DATABASE == database) & (N.NWI_TABLE == table)
    if source.is_no_list or connection.execute(select(N.NWI_NEXT).where(is_own).with_for_update()).first():
        return
    check_seeded_id("write id of the source", source.high_watermark)
    invalid = sorted({write_id for write_id in source.invalid if write_id <= source.high_watermark})
    if len(invalid) > (most := input_limits().request_transactions):
        # Each becomes a transaction here.
        told = exceeded("request_transactions")
        raise MetaException(f"the list has {len(invalid)} open or aborted write ids, and may have {most} ({told})")
    for start in range(0, len(invalid), context.transactions.max_open_batch):
        batch = invalid[start : start + context.transactions.max_open_batch]
        opening = OpenTxnRequest(num_txns=len(batch), user=request.user, hostname=request.hostName)
        txn_ids = open_txns(transaction, context, opening)
        _insert(connection, database, table, dict(zip(txn_ids, batch, strict=True)))
        abort_open_txns(transaction, context, txn_ids, ABORTED_AS_REPLICATED_WRITE_ID)
    _begin(connection, database, table, source.high_watermark + 1)
