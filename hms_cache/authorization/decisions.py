"""The access checks of authorization, and the interfaces of what decides them.

A decision depends on a principal only through its *decision class*: what the policy grants to it. Principals of one
class get the same answers to the same requests, so answers are cached by class, not by user.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Action(enum.Enum):
    """What a principal does with an object."""

    READ = "read"
    """Read its metadata. Whoever may alter, drop or write data may read as well: every client reads before it
    writes."""
    CREATE = "create"
    ALTER = "alter"
    DROP = "drop"
    WRITE = "write"
    """Change data, and with it partitions and statistics. Includes update and delete."""
    UPDATE = "update"
    """Change existing rows."""
    DELETE = "delete"
    """Delete data, and partitions with it."""
    MANAGE = "manage"
    """Grants and roles, resource plans, scheduled queries, data connectors, catalogs."""
    SERVICE = "service"
    """Calls made only by other services: notification log, tokens and keys, compactions, replication."""


class SecuredObject(NamedTuple):
    """A table or view, a database (no table), a catalog (no database), or the whole metastore (no catalog).

    Names are as stored: stripped and in lower case. For functions, procedures and schemas, their database decides.
    """

    catalog: str | None = None
    database: str | None = None
    table: str | None = None

    def __str__(self) -> str:
        names = ".".join(name for name in self if name is not None)
        if self.table is not None:
            return f"table {names}"
        if self.database is not None:
            return f"database {names}"
        return f"catalog {names}" if self.catalog is not None else "the metastore"


METASTORE = SecuredObject()

NO_GROUPS: frozenset[str] = frozenset()

AccessCheck = tuple[Action | None, SecuredObject]
"""Whether an action is allowed on an object; None: whether the object may be shown."""

TAG_BYTES = 12
"""Length of `Decisions.tag`."""


class UndecidedError(Exception):
    """The policy did not decide, or not in time; the message is for the client. The call is refused."""


class UserUndecidedError(UndecidedError):
    """No decision about this user; decisions about others may be possible."""


class Decisions(Protocol):
    """All decisions about one class of principals, under one version of the policy. Immutable."""

    @property
    def policy(self) -> object:
        """The version: equals `Authorizer.policy` while it is in force."""

    @property
    def tag(self) -> bytes:
        """`TAG_BYTES` bytes, unique to this class and version within the process."""

    @property
    def has_any(self) -> bool:
        """Whether anything is granted."""

    def allow(self, action: Action, of: SecuredObject) -> bool:
        """Whether these principals may perform the action."""

    def show(self, what: SecuredObject) -> bool:
        """Whether these principals may know that a database or catalog exists: something is granted on it or in it."""

    def may_grant(self, privilege: str | None, of: SecuredObject) -> bool:
        """Whether they may grant this privilege of SQL-standard authorization; None: revoke a privilege granted by
        anybody."""

    def prepare(self, checks: Sequence[AccessCheck]) -> None:
        """Announces checks, so that they can be requested together."""


class Authorizer(Protocol):
    """The decision point. Thread-safe. Its own methods do not block unless stated; its decisions may ask other
    systems."""

    @property
    def is_external(self) -> bool:
        """Whether its decisions may block: they must not be asked for on the event loop."""

    @property
    def waits_for_members(self) -> bool:
        """Whether `Decisions.has_any` may block as well."""

    @property
    def keeps_answers(self) -> bool:
        """Whether `policy` stays the same between calls, so that answers may be cached by the tags of decisions."""

    @property
    def policy(self) -> object:
        """The policy in force: a new object after each change, so that an identity comparison detects it. Called by hot
        requests."""

    def forget(self) -> None:
        """Drops decisions that depend on grants in the metastore, because these have changed here."""

    def decisions(self, principal: str, groups: frozenset[str] = NO_GROUPS) -> Decisions:
        """The decisions about a principal now.

        :param groups: the groups that the principal's bearer token names.
        """

    def proven_decisions(self, principal: str, groups: frozenset[str] = NO_GROUPS) -> Decisions:
        """Like `decisions`, but includes every change made before this call. May block. Raises UndecidedError."""

    def decisions_of(self, tag: bytes) -> Decisions | None:
        """The decisions with this tag; None if the policy has changed since."""

    def decide(self, principal: str, action: Action, of: SecuredObject) -> bool:
        """Whether the principal may perform the action now."""
