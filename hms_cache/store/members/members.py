"""Rows of HMS_CACHE_MEMBERS: joining, renewal, revocation. Each function is one statement or one transaction.

`hms_cache.lease` says what they mean; docs/model/Lease.tla is the rule.
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
    update,
)
from sqlalchemy.exc import DBAPIError

from hms_cache.notifications.event_log import History
from hms_cache.store.engine.database import Database, session_now
from hms_cache.store.engine.direct_statements import DirectQuery
from hms_cache.store.engine.log_sessions import head_of, history_of
from hms_cache.store.engine.log_writes import begin_event_ids
from hms_cache.store.engine.read_plans import Question
from hms_cache.store.installation.init import alone_with_the_schema
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
_OWN_DIRECTLY, _ALL_DIRECTLY = DirectQuery(_OWN), DirectQuery(_ALL)


class MemberRow(NamedTuple):
    """One member as the database has it."""

    member: str
    address: str
    """Host and port, as the other members reach it."""
    epoch: int
    lease_ms: int
    """How long its lease lasts from each renewal; 0: it holds none, and nobody waits for it."""
    is_revoked: bool
    """Its lease is not renewed any more under this epoch; what is left of it may still count."""
    is_fenced: bool
    """Its writes must not commit under this epoch."""


class MembersRead(NamedTuple):
    """All members at one moment, and the history that they were read in; None: there was no row."""

    rows: tuple[MemberRow, ...]
    history: History | None


class Look(NamedTuple):
    """What a server knows that is no member."""

    has_table: bool
    """Whether any server of this database ever read by lease."""
    has_members: bool
    history: History
    """Where this was read: a replica may lack a member that has just joined."""


class UnderLock(NamedTuple):
    """What a write knows under the lock that all writers share."""

    is_own: bool
    """Whether the own row is there, is not fenced and stays locked, so that nobody fences it meanwhile."""
    rows: tuple[MemberRow, ...]
    """All members."""
    history: History
    """Where this was read."""


class JoinResult(NamedTuple):
    """Where the log stood when the row was written, under the lock that every writer needs."""

    position: int
    history: History
    rows: tuple[MemberRow, ...]
    """All members, the new one among them."""
    may_lease: bool
    """Whether it has a lease to it under this epoch."""
    was_there: bool
    """Whether the member's row of its last epoch was still there."""


def create_table(database: Database) -> None:
    """Create HMS_CACHE_MEMBERS if it is not there; servers that start at once are put in line.

    :raises DatabaseUnavailable: the database does not answer.
    """
    if has_table(database):
        return
    with database.writing() as connection, alone_with_the_schema(database, connection):
        OWN_METADATA.create_all(connection)
        connection.commit()


def has_table(database: Database) -> bool:
    """Whether any server of this database ever read by lease.

    :raises DatabaseUnavailable: the database does not answer.
    """
    with database.checking() as connection:
        return inspect(connection).has_table(HMS_CACHE_MEMBERS.name)


def look(database: Database, *, knows_table: bool = False) -> Look:
    """Whether there is any member, with a lease or without, by one statement where the table is known to be there.

    :raises DatabaseUnavailable: the database does not answer.
    """
    history = database.file_history() if database.is_sqlite else None
    try:
        with database.checking() as connection:
            if not knows_table and not inspect(connection).has_table(HMS_CACHE_MEMBERS.name):
                return Look(False, False, history or session_now(database, connection))
            if history is not None:
                return Look(True, bool(connection.execute(select(_ANY)).scalar_one()), history)
            is_any, text = connection.execute(select(_ANY, _history_column(database, connection))).one()
            return Look(True, bool(is_any), history_of(connection.info, connection.dialect.name, text))
    except DBAPIError:
        if not knows_table or has_table(database):
            raise
        return look(database)  # dropped by hand, or with a dump of before


def join(database: Database, row: MemberRow, *, last_epoch: int = 0, may_be_first: bool = True) -> JoinResult:
    """Write the member's row under the lock of NOTIFICATION_SEQUENCE: a writer that takes the lock later sees it.

    `last_epoch`: under which it was a member before; 0: it never was.

    `may_be_first`: it is known that writers who announce nothing have seen this member's earlier row. Otherwise, or
    without such a row, it has a lease only where another member has one.

    :raises DatabaseUnavailable: the database does not answer.
    :raises RetryableConflict: lost to another transaction.
    """
    with database.writing() as connection:
        locked = select(NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID).with_for_update()
        next_event_id = connection.execute(locked).scalar()
        if next_event_id is None:
            # The first write would make it, and waits for this.
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
        connection.commit()
    return JoinResult(next_event_id - 1, history, (*others, row), row.lease_ms > 0, was_there)


def read(connection: Connection) -> tuple[MemberRow, ...]:
    """All members, as this connection's statement sees them."""
    return tuple(map(_row, connection.execute(_ALL)))


def read_if_there(connection: Connection) -> tuple[MemberRow, ...]:
    """As `read`; none where no server of this database ever read by lease."""
    return read(connection) if inspect(connection).has_table(HMS_CACHE_MEMBERS.name) else ()


def read_with_history(database: Database) -> MembersRead:
    """All members and the history they are read in, by one statement that sees the latest commit: a renewal.

    :raises DatabaseUnavailable: the database does not answer.
    """
    try:
        return _read_with_history(database)
    except DBAPIError:
        if has_table(database):
            raise
        return MembersRead((), None)  # dropped: nobody is a member


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
    """For a statement that reads something else as well. On MySQL, MariaDB and PostgreSQL."""
    return literal_column(str(list(database.history_text.statement(connection).selected_columns)[1]))


def questions_under_lock(database: Database, connection: Connection, member: str, epoch: int) -> list[Question]:
    """To be asked together, in this order, under the lock: the first one locks the own row until the transaction ends.
    `under_lock` reads the answers.

    The history is asked for each time: behind a proxy a connection that was opened on one server may have been moved to
    another.
    """
    questions = [Question(_OWN_DIRECTLY, {"member": member, "epoch": epoch}), Question(_ALL_DIRECTLY, {})]
    if not database.is_sqlite:
        questions.append(Question(database.history_text.query(connection), {}))
    return questions


def under_lock(database: Database, connection: Connection, answers: Sequence[Any]) -> UnderLock:
    """What was answered to `questions_under_lock`."""
    own, found, *heads = answers
    history = head_of(connection, heads[0][0]).history if heads else database.file_history()
    return UnderLock(bool(own), tuple(map(_row, found)), history)


def revoke(database: Database, member: str, epoch: int) -> None:
    """Have a member's lease not renewed any more, committed on its own.

    :raises DatabaseUnavailable: the database does not answer, or the row stays locked.
    :raises RetryableConflict: lost to another transaction.
    """
    _change(database, update(HMS_CACHE_MEMBERS).where(_M.MEMBER_ID == member, _M.EPOCH == epoch).values(REVOKED=1))


def fence(database: Database, member: str, epoch: int) -> None:
    """Have no write of a member commit under this epoch, committed on its own; waits for one that has locked its row.

    :raises DatabaseUnavailable: the database does not answer, or the row stays locked.
    :raises RetryableConflict: lost to another transaction.
    """
    _change(database, update(HMS_CACHE_MEMBERS).where(_M.MEMBER_ID == member, _M.EPOCH == epoch).values(FENCED=1))


def end_leases(connection: Connection, members: Iterable[tuple[str, int]]) -> None:
    """Nobody has to wait for these leases any more, which are over for good; in the caller's transaction."""
    for member, epoch in members:
        connection.execute(
            update(HMS_CACHE_MEMBERS)
            .where(_M.MEMBER_ID == member, _M.EPOCH == epoch, _M.REVOKED == 1)
            .values(LEASE_MS=0)
        )


def forget(database: Database, member: str, epoch: int) -> None:
    """Delete the row of a member without a lease. For one that lives it is a fence: it joins again.

    :raises DatabaseUnavailable: the database does not answer, or the row stays locked.
    :raises RetryableConflict: lost to another transaction.
    """
    _change(
        database,
        delete(HMS_CACHE_MEMBERS).where(_M.MEMBER_ID == member, _M.EPOCH == epoch, _M.LEASE_MS == 0),
    )


def leave(database: Database, member: str) -> bool:
    """Delete the row of a member that has given up its lease; whether there was one.

    :raises DatabaseUnavailable: the database does not answer.
    :raises RetryableConflict: lost to another transaction.
    """
    return _change(database, delete(HMS_CACHE_MEMBERS).where(_M.MEMBER_ID == member))


def _change(database: Database, statement: Update | Delete) -> bool:
    """One statement that is its own transaction; whether it found a row.

    Not two, statement and COMMIT: a server that is stopped between them would keep the row locked as long as it is
    stopped, and with it the write that waits for the row under the lock that all writes share.
    """
    if database.is_sqlite:
        with database.writing() as connection:
            result: CursorResult[Any] = connection.execute(statement)
            connection.commit()
            return result.rowcount > 0
    with database.checking() as connection:
        alone: CursorResult[Any] = connection.execute(statement)
        return alone.rowcount > 0


def _row(found: Any) -> MemberRow:
    member, address, epoch, lease_ms, revoked, fenced = found
    return MemberRow(member, address, epoch, lease_ms, bool(revoked), bool(fenced))
