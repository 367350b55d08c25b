"""Rows of HMS_CACHE_MEMBERS: join, renewal, revocation. Each function is one statement or one transaction.

`hms_cache.lease` explains them; docs/model/Lease.tla is the definition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnClause,
    Connection,
    CursorResult,
    Delete,
    Update,
    bindparam,
    delete,
    exists,
    insert,
    inspect,
    literal_column,
    select,
    text,
    update,
)
from sqlalchemy.exc import DBAPIError

from hms_cache.notifications.event_log import History
from hms_cache.store.engine.active_node import beginning_next_tenure
from hms_cache.store.engine.database import Database, session_now
from hms_cache.store.engine.direct_statements import Direct, DirectQuery, Statement, execute_directly
from hms_cache.store.engine.log_sessions import head_of, history_of
from hms_cache.store.engine.log_writes import begin_event_ids
from hms_cache.store.engine.read_plans import PlannedQuery
from hms_cache.store.installation.init import exclusive_schema
from hms_cache.store.schema import NOTIFICATION_SEQUENCE
from hms_cache.store.schema.members import HMS_CACHE_MEMBERS, OWN_METADATA

_M = HMS_CACHE_MEMBERS.c
_ROW = (_M.MEMBER_ID, _M.ADDRESS, _M.EPOCH, _M.LEASE_MS, _M.REVOKED, _M.FENCED)

_OWN: Final = (
    select(_M.MEMBER_ID)
    .where(_M.MEMBER_ID == bindparam("member"), _M.EPOCH == bindparam("epoch"), _M.FENCED == 0)
    .with_for_update()
)
_ALL: Final = select(*_ROW).order_by(_M.MEMBER_ID)
_ANY: Final = exists(select(_M.MEMBER_ID))
_BEGIN: Final[Statement] = Direct(text("START TRANSACTION")), {}
_COMMIT: Final[Statement] = Direct(text("COMMIT")), {}
_OWN_DIRECTLY, _ALL_DIRECTLY = DirectQuery(_OWN), DirectQuery(_ALL)


class MemberRow(NamedTuple):
    """One member as stored in the database."""

    member: str
    address: str
    """Host and port at which the other members reach it."""
    epoch: int
    lease_ms: int
    """Duration of its lease from each renewal. 0: it has no lease, and no member waits for it."""
    is_revoked: bool
    """Its lease is not renewed any more in this epoch; the rest of it may still be valid."""
    is_fenced: bool
    """Its writes must not commit in this epoch."""


class MembersRead(NamedTuple):
    """All members in one snapshot, and the history in which they were read (None: there was no row)."""

    rows: tuple[MemberRow, ...]
    history: History | None


class MemberPresence(NamedTuple):
    """Whether the database has members, as read by a server that is none."""

    has_table: bool
    """Whether any server of this database has ever used leases."""
    has_members: bool
    history: History
    """The history in which this was read: a replica may lack a member that has just joined."""


class UnderLock(NamedTuple):
    """What a write reads under the lock that all writers share."""

    is_own: bool
    """Whether the own row exists and is not fenced. It stays locked, so that it cannot be fenced meanwhile."""
    rows: tuple[MemberRow, ...]
    """All members."""
    history: History
    """The history in which this was read."""


class JoinResult(NamedTuple):
    """The end of the log when the row was written, under the lock that every writer needs."""

    position: int
    history: History
    rows: tuple[MemberRow, ...]
    """All members, including the new one."""
    may_lease: bool
    """Whether the member may hold a lease in this epoch."""
    was_there: bool
    """Whether the row of its last epoch still existed."""


def create_table(database: Database) -> None:
    """Creates HMS_CACHE_MEMBERS if it does not exist. Servers that start at the same time do so one after the other.

    :raises DatabaseUnavailable: the database does not answer.
    """
    if has_table(database):
        return
    with database.writing() as connection, exclusive_schema(database, connection):
        OWN_METADATA.create_all(connection)
        connection.commit()


def has_table(database: Database) -> bool:
    """Whether any server of this database has ever used leases.

    :raises DatabaseUnavailable: the database does not answer.
    """
    with database.checking() as connection:
        return inspect(connection).has_table(HMS_CACHE_MEMBERS.name)


def read_presence(database: Database, *, is_table_known: bool = False) -> MemberPresence:
    """Whether any member exists, with or without a lease. One statement if the table is known to exist.

    :raises DatabaseUnavailable: the database does not answer.
    """
    history = database.file_history() if database.is_sqlite else None
    try:
        with database.checking() as connection:
            if not is_table_known and not inspect(connection).has_table(HMS_CACHE_MEMBERS.name):
                return MemberPresence(False, False, history or session_now(database, connection))
            if history is not None:
                return MemberPresence(True, bool(connection.execute(select(_ANY)).scalar_one()), history)
            is_any, text = connection.execute(select(_ANY, _history_column(database, connection))).one()
            return MemberPresence(True, bool(is_any), history_of(connection.info, connection.dialect.name, text))
    except DBAPIError:
        if not is_table_known:
            raise
        # Perhaps the table was dropped, manually or by restoring an older dump, and a member has created it again.
        return read_presence(database)


def join(database: Database, row: MemberRow, *, last_epoch: int = 0, may_be_first: bool = True) -> JoinResult:
    """Writes the member's row under the lock of NOTIFICATION_SEQUENCE: writers that take the lock later see it.

    `last_epoch`: its previous epoch as a member; 0: none.

    `may_be_first`: writers that do not announce are known to have seen this member's earlier row. Otherwise, or without
    such a row, it gets a lease only if another member has one.

    :raises DatabaseUnavailable: the database does not answer.
    :raises RetryableConflict: a conflict with another transaction.
    """
    with database.writing() as connection:
        locked = select(NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID).with_for_update()
        next_event_id = connection.execute(locked).scalar()
        if next_event_id is None:
            # The first write would create it, and waits for this transaction.
            next_event_id = 1
            begin_event_ids(connection, next_event_id)
        history = session_now(database, connection)
        found = read(connection)
        was_there = any(one.member == row.member and one.epoch == last_epoch for one in found)
        others = tuple(one for one in found if one.member != row.member)
        connection.execute(delete(HMS_CACHE_MEMBERS).where(_M.MEMBER_ID == row.member))
        if not (may_be_first and was_there) and not any(other.lease_ms for other in others):
            row = row._replace(lease_ms=0)
        connection.execute(
            insert(HMS_CACHE_MEMBERS).values(
                MEMBER_ID=row.member, ADDRESS=row.address, EPOCH=row.epoch, LEASE_MS=row.lease_ms, REVOKED=0, FENCED=0
            )
        )
        if following := beginning_next_tenure(connection):
            execute_directly(connection, following)
        connection.commit()
    return JoinResult(next_event_id - 1, history, (*others, row), row.lease_ms > 0, was_there)


def read(connection: Connection) -> tuple[MemberRow, ...]:
    """All members, as this connection's statement sees them."""
    return tuple(map(_row, connection.execute(_ALL)))


def read_if_exists(connection: Connection) -> tuple[MemberRow, ...]:
    """Like `read`; empty if no server of this database has ever used leases."""
    return read(connection) if inspect(connection).has_table(HMS_CACHE_MEMBERS.name) else ()


def read_with_history(database: Database) -> MembersRead:
    """All members and their history, read by one statement that sees the latest commit: a renewal.

    :raises DatabaseUnavailable: the database does not answer.
    """
    try:
        return _read_with_history(database)
    except DBAPIError:
        if not has_table(database):
            return MembersRead((), None)  # the table was dropped: there are no members
        return _read_with_history(database)  # a member has created it again meanwhile


def _read_with_history(database: Database) -> MembersRead:
    if database.is_sqlite:
        history = database.file_history()
        with database.checking() as connection:
            return MembersRead(read(connection), history)
    with database.checking() as connection:
        statement = select(*_ROW, _history_column(database, connection)).order_by(_M.MEMBER_ID)
        found = connection.execute(statement).all()
        if not found:
            return MembersRead((), None)
        history = history_of(connection.info, connection.dialect.name, found[0][-1])
        return MembersRead(tuple(_row(one[:-1]) for one in found), history)


def _history_column(database: Database, connection: Connection) -> ColumnClause[Any]:
    """The history as a column of another statement. On MySQL, MariaDB and PostgreSQL."""
    return literal_column(str(list(database.history_text.statement(connection).selected_columns)[1]))


def queries_under_lock(database: Database, connection: Connection, member: str, epoch: int) -> list[PlannedQuery]:
    """Queries to send together, in this order, under the lock. The first one locks the own row until the transaction
    ends. `under_lock` parses the answers.

    The history is read each time: a proxy may move an open connection to another server.
    """
    queries = [PlannedQuery(_OWN_DIRECTLY, {"member": member, "epoch": epoch}), PlannedQuery(_ALL_DIRECTLY, {})]
    if not database.is_sqlite:
        queries.append(PlannedQuery(database.history_text.query(connection), {}))
    return queries


def under_lock(database: Database, connection: Connection, answers: Sequence[Any]) -> UnderLock:
    """Parses the answers to `queries_under_lock`."""
    own, found, *heads = answers
    history = head_of(connection, heads[0][0]).history if heads else database.file_history()
    return UnderLock(bool(own), tuple(map(_row, found)), history)


def revoke(database: Database, member: str, epoch: int) -> None:
    """Marks a member's lease as not to be renewed, in a transaction of its own.

    :raises DatabaseUnavailable: the database does not answer, or the row stays locked.
    :raises RetryableConflict: a conflict with another transaction.
    """
    _change(database, update(HMS_CACHE_MEMBERS).where(_M.MEMBER_ID == member, _M.EPOCH == epoch).values(REVOKED=1))


def fence(database: Database, member: str, epoch: int) -> None:
    """Prevents all writes of a member from committing in this epoch, in a transaction of its own. Waits for a write
    that has locked the row.

    :raises DatabaseUnavailable: the database does not answer, or the row stays locked.
    :raises RetryableConflict: a conflict with another transaction.
    """
    fencing = update(HMS_CACHE_MEMBERS).where(_M.MEMBER_ID == member, _M.EPOCH == epoch).values(FENCED=1)
    _change(database, fencing, excludes_writes=True)


def end_leases(connection: Connection, members: Iterable[tuple[str, int]]) -> None:
    """Records, in the caller's transaction, that these leases have expired for good, so that no member waits for
    them."""
    for member, epoch in members:
        connection.execute(
            update(HMS_CACHE_MEMBERS)
            .where(_M.MEMBER_ID == member, _M.EPOCH == epoch, _M.REVOKED == 1)
            .values(LEASE_MS=0)
        )


def forget(database: Database, member: str, epoch: int) -> None:
    """Deletes the row of a member without a lease. If the member is alive, this fences it: it joins again.

    :raises DatabaseUnavailable: the database does not answer, or the row stays locked.
    :raises RetryableConflict: a conflict with another transaction.
    """
    _change(
        database,
        delete(HMS_CACHE_MEMBERS).where(_M.MEMBER_ID == member, _M.EPOCH == epoch, _M.LEASE_MS == 0),
        excludes_writes=True,
    )


def leave(database: Database, member: str) -> bool:
    """Deletes the row of a member that has given up its lease; returns whether it existed.

    :raises DatabaseUnavailable: the database does not answer.
    :raises RetryableConflict: a conflict with another transaction.
    """
    return _change(database, delete(HMS_CACHE_MEMBERS).where(_M.MEMBER_ID == member))


def _change(database: Database, statement: Update | Delete, *, excludes_writes: bool = False) -> bool:
    """Executes one statement as its own transaction; returns whether it found a row.

    Statement and COMMIT are not sent separately: a server stopped between them would keep the row locked, and with it
    block the write that waits for the row under the lock that all writes share.

    :param excludes_writes: no write on another node of a Galera cluster commits later without having seen it.
    """
    if database.is_sqlite:
        with database.writing() as connection:
            result: CursorResult[Any] = connection.execute(statement)
            connection.commit()
            return result.rowcount > 0
    with database.checking() as connection:
        if excludes_writes and (following := beginning_next_tenure(connection)):
            try:
                _, changed, *_ = execute_directly(connection, [_BEGIN, (Direct(statement), {}), *following, _COMMIT])
            except BaseException:
                connection.invalidate()  # the transaction may still be open
                raise
            return bool(changed.rows)
        alone: CursorResult[Any] = connection.execute(statement)
        return alone.rowcount > 0


def _row(found: Any) -> MemberRow:
    member, address, epoch, lease_ms, revoked, fenced = found
    return MemberRow(member, address, epoch, lease_ms, bool(revoked), bool(fenced))
