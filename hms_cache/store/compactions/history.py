"""The end of compactions: cleaned, failed, refused, aborted; rows of COMPLETED_COMPACTIONS and their retention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    true,
    union_all,
)

from hms_cache.batches import batches
from hms_cache.config.quantities import whole_milliseconds
from hms_cache.store.compactions.queue import code_of_type
from hms_cache.store.engine.text_conditions import one_of_texts, same_text
from hms_cache.store.schema import (
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPLETED_TXN_COMPONENTS,
    NEXT_COMPACTION_QUEUE_ID,
    TXN_COMPONENTS,
    TXNS,
)
from hms_cache.store.transactions.codes import (
    ABORTED,
    COMPACTION_STATE_NAMES,
    COMPACTION_TYPE_CODES,
    COMPACTION_TYPES,
    DID_NOT_INITIATE,
    FAILED,
    INITIATED,
    READY_FOR_CLEANING,
    REFUSED,
    SUCCEEDED,
    TXN_ABORTED,
)
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.database_values import allocate_id, now_ms, read_now_ms
from hms_cache.store.transactions.names import plain_database, plain_table
from hms_cache.store.transactions.queued_drops import NO_WRITE_ID
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AbortCompactionRequest,
    AbortCompactionResponseElement,
    AbortCompactResponse,
    CompactionInfoStruct,
    CompactionType,
    GetLatestCommittedCompactionInfoRequest,
    GetLatestCommittedCompactionInfoResponse,
    MetaException,
)

Q = COMPACTION_QUEUE.c
H = COMPLETED_COMPACTIONS.c
DONE = COMPLETED_TXN_COMPONENTS.c
C = TXN_COMPONENTS.c

_IN_A_STATEMENT = 1000
"""Ids or names in one statement, whose parameters are limited."""

_ABORTED_BY_USER = "Compaction Aborted by Abort Comapction request."
"""Hive's own spelling; tools may search for it."""

#: Columns of the history that are copied from the queue; their names differ only in the prefix.
_COPIED = tuple(
    column.name.removeprefix("CC_") for column in H if column.name not in ("CC_STATE", "CC_END", "CC_ERROR_MESSAGE")
)


def mark_cleaned(connection: Connection, entry: CompactionInfoStruct) -> None:
    """The old files have been deleted: moves the entry to the history, and deletes rows of the writes that it
    compacted.

    Aborted transactions up to its write id have no files any more, so their components are deleted, and later their
    rows. It is no error if the entry is cleaned already (a client may repeat a call whose reply was lost). Raises
    MetaException for an unknown entry.
    """
    database, table, partition = plain_database(entry.dbname), plain_table(entry.tablename), entry.partitionname
    is_abort_cleanup = entry.type == CompactionType.ABORT_TXN_CLEANUP
    highest = entry.highestWriteId
    if not is_abort_cleanup:
        moved = _move(connection, entry.id, SUCCEEDED, None)
        if moved is None:
            _check_is_cleaned(connection, entry.id)
            return
        if moved.CQ_HIGHEST_WRITE_ID == NO_WRITE_ID:
            highest = NO_WRITE_ID  # the cleaner may not know: it may have read the entry before the change
        _delete_completed_components(connection, database, table, partition, highest)
    _delete_aborted_components(connection, database, table, partition, highest)
    condition: ColumnElement[bool] = Q.CQ_ID == entry.id
    if not is_abort_cleanup:
        # The compaction has also removed the files of aborted transactions: entries that would do so again may be
        # deleted.
        retries = and_(
            Q.CQ_DATABASE == database,
            Q.CQ_TABLE == table,
            Q.CQ_TYPE == COMPACTION_TYPE_CODES[CompactionType.ABORT_TXN_CLEANUP],
            true() if partition is None else same_text(Q.CQ_PARTITION, partition),
        )
        condition = or_(condition, retries)
    connection.execute(delete(COMPACTION_QUEUE).where(condition))


def _check_is_cleaned(connection: Connection, compaction_id: int) -> None:
    """Raises MetaException unless the history contains it as succeeded."""
    is_cleaned = (H.CC_ID == compaction_id) & (H.CC_STATE == SUCCEEDED)
    if connection.execute(select(H.CC_ID).where(is_cleaned).limit(1)).first() is None:
        raise _unknown_entry_error(compaction_id)


def _unknown_entry_error(compaction_id: int | None) -> MetaException:
    return MetaException(f"No record with CQ_ID={compaction_id} found in COMPACTION_QUEUE")


def _delete_completed_components(
    connection: Connection, database: str, table: str, partition: str | None, highest_write_id: int | None
) -> None:
    condition = and_(DONE.CTC_DATABASE == database, DONE.CTC_TABLE == table)
    if partition is not None:
        condition = and_(condition, same_text(DONE.CTC_PARTITION, partition))
    if highest_write_id:
        condition = and_(condition, DONE.CTC_WRITEID <= highest_write_id)
    connection.execute(delete(COMPLETED_TXN_COMPONENTS).where(condition))


def _delete_aborted_components(
    connection: Connection, database: str, table: str, partition: str | None, highest_write_id: int | None
) -> None:
    if not highest_write_id:
        # No files are known to be deleted: without its component, an aborted write id would later count as committed.
        return
    condition = and_(
        C.TC_DATABASE == database,
        C.TC_TABLE == table,
        C.TC_TXNID.in_(select(TXNS.c.TXN_ID).where(TXNS.c.TXN_STATE == TXN_ABORTED)),
        C.TC_WRITEID <= highest_write_id,
    )
    if partition is not None:
        condition = and_(condition, same_text(C.TC_PARTITION, partition))
    connection.execute(delete(TXN_COMPONENTS).where(condition))


def mark_failed(connection: Connection, entry: CompactionInfoStruct) -> None:
    """Moves a failed compaction to the history, as not initiated if it was never queued or the entry says so."""
    was_begun = entry.id and entry.state != DID_NOT_INITIATE
    state = FAILED if was_begun else DID_NOT_INITIATE
    _finish(connection, entry, state)


def mark_refused(connection: Connection, entry: CompactionInfoStruct) -> None:
    """The worker found nothing to compact: moves the entry to the history."""
    _finish(connection, entry, REFUSED)


def _finish(connection: Connection, entry: CompactionInfoStruct, state: str) -> None:
    if _move(connection, entry.id, state, entry.errorMessage):
        connection.execute(delete(COMPACTION_QUEUE).where(Q.CQ_ID == entry.id))
        return
    if entry.id:
        raise _unknown_entry_error(entry.id)
    # It failed before it was queued. Hive purges entries without a start from the history as old ones.
    now = now_ms()
    connection.execute(
        insert(COMPLETED_COMPACTIONS).values(
            CC_ID=allocate_id(connection, NEXT_COMPACTION_QUEUE_ID.c.NCQ_NEXT),
            CC_DATABASE=plain_database(entry.dbname),
            CC_TABLE=plain_table(entry.tablename),
            CC_PARTITION=entry.partitionname,
            CC_STATE=state,
            CC_TYPE=code_of_type(entry.type),
            CC_WORKER_ID=entry.workerId,
            CC_START=now,
            CC_END=now,
            CC_RUN_AS=entry.runas,
            CC_HIGHEST_WRITE_ID=entry.highestWriteId,
            CC_POOL_NAME=entry.poolname,
            CC_ERROR_MESSAGE=entry.errorMessage,
            CC_ENQUEUE_TIME=entry.enqueueTime,
        )
    )


def _move(connection: Connection, compaction_id: int, state: str, error_message: str | None) -> Row[Any] | None:
    """Moves an entry of the queue to the history. Returns its id and highest write id; None if it does not exist."""
    is_it = Q.CQ_ID == compaction_id
    entry = connection.execute(select(Q.CQ_ID, Q.CQ_HIGHEST_WRITE_ID).where(is_it).with_for_update()).first()
    if entry is not None:
        _copy(connection, is_it, state, error_message)
    return entry


def _copy(connection: Connection, are_meant: ColumnElement[bool], state: str, error_message: str | None) -> None:
    """Copies entries from the queue to the history."""
    columns = [Q[f"CQ_{name}"] for name in _COPIED]
    message = Q.CQ_ERROR_MESSAGE if error_message is None else literal(error_message, Q.CQ_ERROR_MESSAGE.type)
    rows = select(*columns, literal(state), now_ms(), message).where(are_meant)
    names = [*(f"CC_{name}" for name in _COPIED), "CC_STATE", "CC_END", "CC_ERROR_MESSAGE"]
    connection.execute(insert(COMPLETED_COMPACTIONS).from_select(names, rows))


def abort_compactions(connection: Connection, request: AbortCompactionRequest) -> AbortCompactResponse:
    """Removes entries that no worker has begun; returns the result per id. Raises MetaException without ids."""
    if not request.compactionIds:
        raise MetaException("Compaction ids missing in request. No compactions to abort")
    ids = sorted(set(request.compactionIds))
    states: dict[int, str] = {}
    for some in batches(ids, _IN_A_STATEMENT):
        for query in (
            select(H.CC_ID, H.CC_STATE).where(H.CC_ID.in_(some)),
            select(Q.CQ_ID, Q.CQ_STATE).where(Q.CQ_ID.in_(some)).with_for_update(),
        ):
            states.update({row[0]: row[1] for row in connection.execute(query)})
    waiting = [compaction_id for compaction_id in ids if states.get(compaction_id) == INITIATED]
    for some in batches(waiting, _IN_A_STATEMENT):
        _copy(connection, Q.CQ_ID.in_(some), ABORTED, _ABORTED_BY_USER)
        connection.execute(delete(COMPACTION_QUEUE).where(Q.CQ_ID.in_(some)))
    return AbortCompactResponse(
        abortedcompacts={compaction_id: _aborted(compaction_id, states.get(compaction_id)) for compaction_id in ids}
    )


def _aborted(compaction_id: int, state: str | None) -> AbortCompactionResponseElement:
    """The result for an entry that was in this state."""
    if state is None:
        return AbortCompactionResponseElement(compaction_id, "Error", "No Such Compaction Id Available")
    if state != INITIATED:
        return AbortCompactionResponseElement(
            compaction_id,
            "Error",
            f"Error while aborting compaction as compaction is in state-{COMPACTION_STATE_NAMES.get(state, state)}",
        )
    return AbortCompactionResponseElement(compaction_id, "Success", "Successfully aborted compaction")


def latest_committed_compactions(
    connection: Connection, request: GetLatestCommittedCompactionInfoRequest
) -> GetLatestCommittedCompactionInfoResponse:
    """The latest compaction of the table, or of each of its partitions, whose result readers see; newest first."""
    database, table = plain_database(request.dbname), plain_table(request.tablename)
    in_history = select(H.CC_ID.label("ID"), H.CC_PARTITION.label("PART"), H.CC_TYPE.label("TYPE")).where(
        H.CC_STATE == SUCCEEDED, H.CC_DATABASE == database, H.CC_TABLE == table
    )
    in_queue = select(Q.CQ_ID, Q.CQ_PARTITION, Q.CQ_TYPE).where(
        Q.CQ_STATE == READY_FOR_CLEANING, Q.CQ_DATABASE == database, Q.CQ_TABLE == table
    )
    found = union_all(in_history, in_queue).subquery("found")
    condition: ColumnElement[bool] = true()
    requested = set(request.partitionnames or ())
    if requested and len(requested) <= _IN_A_STATEMENT:
        condition = and_(condition, one_of_texts(found.c.PART, sorted(requested)))
    if request.lastCompactionId is not None:
        condition = and_(condition, request.lastCompactionId < found.c.ID)
    latest: dict[str | None, Any] = {}
    for row in connection.execute(select(found).where(condition).order_by(found.c.ID.desc())):
        if not requested or row.PART in requested:
            latest.setdefault(row.PART, row)
    return GetLatestCommittedCompactionInfoResponse(
        compactions=[
            CompactionInfoStruct(
                id=row.ID,
                dbname=database,
                tablename=table,
                partitionname=row.PART,
                type=COMPACTION_TYPES[row.TYPE],
            )
            for row in latest.values()
        ]
    )


def purge_history(connection: Connection, context: TxnContext) -> int:
    """Keeps the newest entries of each kind per table or partition, and deletes old ones that a later success
    supersedes. Returns the number of deleted entries.

    Reads only entries that may be deleted, regardless of the length of the history.
    """
    old = read_now_ms(connection) - whole_milliseconds(context.compactions.history_retention_s)
    return _delete_entries(connection, _needless(connection, old)) + _delete_surplus(connection, context)


def _needless(connection: Connection, old_ms: int) -> list[int]:
    """Ids of old entries that a later success supersedes. A minor compaction does not supersede a major one."""
    later = COMPLETED_COMPACTIONS.alias("later").c
    begun = func.coalesce(func.nullif(H.CC_START, 0), func.nullif(H.CC_END, 0))
    is_of_whole_table = later.CC_PARTITION.is_(None) & H.CC_PARTITION.is_(None)
    is_made_up_for = exists(
        select(literal(1)).where(
            later.CC_DATABASE == H.CC_DATABASE,
            later.CC_TABLE == H.CC_TABLE,
            or_(is_of_whole_table, same_text(later.CC_PARTITION, H.CC_PARTITION)),
            later.CC_STATE == SUCCEEDED,
            later.CC_ID > H.CC_ID,
            or_(H.CC_TYPE == _MINOR, later.CC_TYPE == _MAJOR),
        )
    )
    query = select(H.CC_ID).where(H.CC_STATE != SUCCEEDED, begun < old_ms, is_made_up_for)
    return list(connection.execute(query.order_by(H.CC_ID).limit(_ENTRIES_AT_ONCE)).scalars())


def _delete_surplus(connection: Connection, context: TxnContext) -> int:
    """Deletes all but the newest entries of each kind; returns their number."""
    settings = context.compactions
    others = settings.history_refused
    limits = {
        SUCCEEDED: settings.history_succeeded,
        # Entries that count for the decision about further compactions are kept.
        FAILED: max(settings.history_failed, settings.max_failed),
        DID_NOT_INITIATE: settings.history_did_not_initiate,
        REFUSED: others,
    }
    target = (H.CC_DATABASE, H.CC_TABLE, H.CC_PARTITION)
    # Some databases consider different names equal: exact counting is done here.
    crowded = connection.execute(
        select(*target)
        .group_by(*target, H.CC_STATE)
        .having(func.count() > case(limits, value=H.CC_STATE, else_=others))
        .limit(_ENTRIES_AT_ONCE)
    ).all()
    seen: Counter[tuple[Any, ...]] = Counter()
    deleted = 0
    for some in batches(sorted(set(map(tuple, crowded)), key=repr), _TARGETS_IN_A_STATEMENT):
        are_requested = or_(
            *(and_(*(column == name for column, name in zip(target, one, strict=True))) for one in some)
        )
        rows = connection.execute(
            # From the newest to the oldest.
            select(H.CC_ID, *target, H.CC_STATE).where(are_requested).order_by(H.CC_ID.desc()).limit(_MAX_ENTRIES_READ)
        )
        surplus: list[int] = []
        for entry_id, *key in rows:
            seen[tuple(key)] += 1
            if seen[tuple(key)] > limits.get(key[-1], others):
                surplus.append(entry_id)
        deleted += _delete_entries(connection, surplus)
    return deleted


def _delete_entries(connection: Connection, ids: Sequence[int]) -> int:
    for some in batches(ids, _IN_A_STATEMENT):
        connection.execute(delete(COMPLETED_COMPACTIONS).where(H.CC_ID.in_(some)))
    return len(ids)


_ENTRIES_AT_ONCE = 10_000
"""Entries deleted, or tables and partitions examined, in one step. The rest is left for the next step."""

_TARGETS_IN_A_STATEMENT = 100

_MAX_ENTRIES_READ = 100_000
"""Entries read of these in one step, for a history that was never trimmed before."""

_MAJOR = COMPACTION_TYPE_CODES[CompactionType.MAJOR]
_MINOR = COMPACTION_TYPE_CODES[CompactionType.MINOR]
