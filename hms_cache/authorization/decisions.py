"""What is decided upon, and by whom.

A decision depends on a principal only through its *decision class*: what the policy grants to it. Principals of one
class get the same answers to the same requests, so answers are kept by class and not by user.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Action(enum.Enum):
    """What a principal does with an object."""

    READ = "read"
    """See its metadata. Whoever may alter, drop or write data may read, too: no client writes without reading."""
    CREATE = "create"
    ALTER = "alter"
    DROP = "drop"
    WRITE = "write"
    """Change data, and with them partitions and statistics. Whoever may write may update and delete."""
    UPDATE = "update"
    """Change rows that are there."""
    DELETE = "delete"
    """Take data away, and partitions with them."""
    MANAGE = "manage"
    """Grants and roles, resource plans, scheduled queries, data connectors, catalogs."""
    SERVICE = "service"
    """What only other services call: the notification log, tokens and keys, compactions, replication."""


class SecuredObject(NamedTuple):
    """A table or view, a database (no table), a catalog (no database), or the whole metastore (no catalog).

    Names are as they are stored: without blanks around them, in lower case. Functions, procedures and schemas are
    decided upon as their database.
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

Question = tuple[Action | None, SecuredObject]
"""May this be done with that? None: may it be shown?"""

TAG_BYTES = 12
"""Length of `Decisions.tag`."""


class UndecidedError(Exception):
    """Whoever decides did not, or not in time; the message is for the client. The call is refused."""


class UserUndecidedError(UndecidedError):
    """Of this user alone; about others it may be decided."""


class Decisions(Protocol):
    """All decisions about one class of principals, under one version of the policy. Immutable."""

    @property
    def policy(self) -> object:
        """The version: `Authorizer.policy` while it is in force."""

    @property
    def tag(self) -> bytes:
        """`TAG_BYTES` that no other class or version has, in this process."""

    @property
    def has_any(self) -> bool:
        """Whether anything is granted."""

    def allow(self, action: Action, of: SecuredObject) -> bool:
        """Whether these principals may do that."""

    def show(self, what: SecuredObject) -> bool:
        """Whether they may know that a database or catalog exists: something in it, or it itself, is granted."""

    def may_grant(self, privilege: str | None, of: SecuredObject) -> bool:
        """Whether they may grant this privilege of SQL-standard authorization; None: revoke one of anybody's."""

    def prepare(self, questions: Sequence[Question]) -> None:
        """These are about to be asked."""


class Authorizer(Protocol):
    """The decision point. Thread-safe. What it answers itself it answers at once; its decisions may ask others."""

    @property
    def asks_others(self) -> bool:
        """Whether its decisions may wait: the event loop must not ask for them."""

    @property
    def waits_for_members(self) -> bool:
        """Whether `Decisions.has_any` may wait, too."""

    @property
    def keeps_answers(self) -> bool:
        """Whether `policy` stays the same between calls, so that answers may be kept by the tags of decisions."""

    @property
    def policy(self) -> object:
        """What is in force: another object after each change, so that one comparison tells. Hot requests make it."""

    def forget(self) -> None:
        """Grants that the metastore keeps have changed here: what was decided by them before counts no more."""

    def decisions(self, principal: str, groups: frozenset[str] = NO_GROUPS) -> Decisions:
        """What is decided about a principal, now; `groups` are those that its bearer token names."""

    def proven_decisions(self, principal: str, groups: frozenset[str] = NO_GROUPS) -> Decisions:
        """The same, by everything that had changed before this call. May wait for others. Raises UndecidedError."""

    def decisions_of(self, tag: bytes) -> Decisions | None:
        """Those of a tag; None when the policy has changed since."""

    def decide(self, principal: str, action: Action, of: SecuredObject) -> bool:
        """Whether the principal may do that, now."""
