"""What is decided upon, and by whom.

A decision depends on a principal only through its *decision class*: what the policy grants to it. Principals of one
class get the same answers to the same requests, so answers are kept by class and not by user.
"""

from __future__ import annotations

import enum
from typing import NamedTuple, Protocol


class Action(enum.Enum):
    """What a principal does with an object."""

    READ = "read"
    """See its metadata. Whoever may alter, drop or write data may read, too: no client writes without reading."""
    CREATE = "create"
    ALTER = "alter"
    DROP = "drop"
    WRITE = "write"
    """Change data, and with them partitions and statistics."""
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

TAG_BYTES = 12
"""Length of `Decisions.tag`."""


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


class Authorizer(Protocol):
    """The decision point. Thread-safe; asks nobody, so that the event loop may call it."""

    @property
    def policy(self) -> object:
        """What is in force: another object after each change, so that one comparison tells. Hot requests make it."""

    def decisions(self, principal: str) -> Decisions:
        """What is decided about a principal, now."""

    def decisions_of(self, tag: bytes) -> Decisions | None:
        """Those of a tag; None when the policy has changed since."""

    def decide(self, principal: str, action: Action, of: SecuredObject) -> bool:
        """Whether the principal may do that, now."""
