"""What the server remembers of one client connection."""

from __future__ import annotations

import itertools
from asyncio import BaseTransport
from dataclasses import dataclass, field

from hms_cache.authentication.mechanism import Identity
from hms_cache.authorization.decisions import Decisions
from hms_cache.call_context import FILL_CACHE
from hms_cache.input_limits import exceeded, input_limits
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

IDENTITY = "identity"
"""Key of a transport's `get_extra_info` under which its connection finds the identity of the client."""

CLAIMED_USER = "claimed_user"
"""Key for the user that the client claims to be, as with `set_ugi`; None: it has not claimed one."""

ANONYMOUS = "anonymous"
"""The user of a client that has not named one."""

_ids = itertools.count(1)

ALWAYS_KEPT_BYTES = 1024
"""A session up to this size needs no room in the shared budget, so that other sessions cannot keep a client out."""

_ENTRY_BYTES = 200
"""Bytes that an entry takes in addition to its characters."""


class SessionBudget:
    """Budget for what all connections have stored in their sessions. Everything runs on the event loop: such calls are
    local."""

    def __init__(self, max_session_bytes: int = 64 * 1024, budget_bytes: int = 64 * 1024 * 1024) -> None:
        self.max_session_bytes = max_session_bytes
        self.budget_bytes = budget_bytes
        self.used_bytes = 0
        self.refused = 0


@dataclass(slots=True)
class Session:
    """State of one connection. Used by one call at a time, since the calls of a connection run in order.

    `user` and `groups` come from `set_ugi`, which is optional; without it the client is `anonymous`. `variables` holds
    what `setMetaConf` set (MSCK sets its expression proxy here, for its own connection only) and fb303's options.
    Change both by the methods only, which enforce the limits.
    """

    peer: str
    budget: SessionBudget = field(default_factory=SessionBudget)
    user: str = ANONYMOUS
    groups: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    identifier: int = field(default_factory=lambda: next(_ids))
    closing: bool = False
    used_bytes: int = 0
    authenticated: bool = False
    principal: str | None = None
    """The name under which the client authenticated; None: it did not."""
    mechanism: str = "none"
    real_user: str = ""
    """The user who acts on behalf of `user`, according to the token; empty if there is none."""
    token_groups: frozenset[str] = frozenset()
    """Groups from the client's bearer token; those from `set_ugi` are not included."""
    decisions: Decisions | None = None
    """The policy's decisions about the user, as of the last call; None before the first call."""
    given_decisions: Decisions | None = None
    """For sessions that do not belong to a client: the decisions by which its calls are authorized, whoever the user
    is."""

    def identify(self, transport: BaseTransport) -> None:
        """Takes the identity that the transport knows, or that the client claims. Raises MetaException as
        `set_user`."""
        self.authenticate(transport.get_extra_info(IDENTITY))
        if (claimed := transport.get_extra_info(CLAIMED_USER)) is not None:
            self.set_user(claimed, ())

    def authenticate(self, identity: Identity | None) -> None:
        """Sets the authenticated identity of the client; None: the port does not authenticate."""
        if identity is not None:
            self.user, self.principal, self.mechanism, self.real_user, self.token_groups = identity
            self.authenticated = True

    @property
    def fills_cache(self) -> bool:
        """Whether objects that it reads are loaded into memory."""
        return not self.variables or self.variables.get(FILL_CACHE, "true").lower() != "false"

    def close_after_reply(self) -> None:
        """The client called fb303's `shutdown`: this connection is closed; the server and other clients are not
        affected."""
        self.closing = True

    def set_user(self, user: str, groups: tuple[str, ...]) -> None:
        """Sets the user of a client that did not authenticate. An authenticated client keeps its name, as in Hive,
        where `set_ugi` then has no effect.

        Raises MetaException if names are too long or too many.
        """
        if self.authenticated:
            return
        longest = max(map(len, (user, *groups)))
        most = input_limits().session_name_characters
        if longest > most:
            self.budget.refused += 1
            setting = exceeded("session_name_characters")
            raise MetaException(f"a name of a user or group has {longest} characters; {most} are allowed ({setting})")
        self._resize(self._size(self.variables) + _size_of((user, *groups)))
        self.user, self.groups = user, groups
        self.decisions = None

    def set_variable(self, name: str, value: str) -> None:
        """Sets a variable. Raises MetaException if there are too many, or they are too long."""
        most = input_limits().session_variables
        if name not in self.variables and len(self.variables) >= most:
            self.budget.refused += 1
            setting = exceeded("session_variables")
            raise MetaException(f"the connection has {most} options, which is the limit ({setting})")
        variables = {**self.variables, name: value}
        self._resize(self._size(variables) + _size_of((self.user, *self.groups)))
        self.variables = variables

    def end(self) -> None:
        """The connection is closed. A running call keeps the values that it has read."""
        self.budget.used_bytes -= self.used_bytes
        self.used_bytes = 0

    @staticmethod
    def _size(variables: dict[str, str]) -> int:
        return _size_of((*variables, *variables.values()))

    def _resize(self, size_bytes: int) -> None:
        budget = self.budget
        if size_bytes > budget.max_session_bytes:
            budget.refused += 1
            raise MetaException(
                f"user, groups and options of the connection would take {size_bytes} bytes; "
                f"{budget.max_session_bytes} are allowed (setting server.max_session_bytes)"
            )
        total_bytes = budget.used_bytes - self.used_bytes + size_bytes
        if total_bytes > budget.budget_bytes and size_bytes > max(self.used_bytes, ALWAYS_KEPT_BYTES):
            budget.refused += 1
            raise MetaException(
                f"users, groups and options of all connections take {budget.used_bytes} bytes, which is the limit "
                "(setting server.sessions_budget_bytes); retry"
            )
        budget.used_bytes = total_bytes
        self.used_bytes = size_bytes


def _size_of(texts: tuple[str, ...]) -> int:
    """Upper bound for their bytes: a character has up to four."""
    return sum(4 * len(text) + _ENTRY_BYTES for text in texts)
