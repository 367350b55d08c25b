"""An authorizer that asks another system: the grants in the database, or a policy service.

Its decisions have a maximum age. All decisions of an *epoch* are dropped when it ends, and an epoch lasts as long as
the maximum age, so no decision is older. With age 0, each call has an epoch of its own, and no answer is kept between
calls.

If there is a way to learn that the other system has changed (`is_current`), a change ends the epoch as well. Then
decisions are exact, and the age only matters for changes that are not reported.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from hms_cache.authorization.decisions import NO_GROUPS, AccessCheck, Action, SecuredObject
from hms_cache.clock import elapsed_s

MAX_PRINCIPALS = 10_000
"""Maximum number of principals whose decisions are kept. For others, the system is asked at each call."""

MAX_HELD = 500_000
"""Maximum number of answers kept for all principals together, with some 200 bytes each; beyond it, an epoch ends early.
A service that acts for others may ask on behalf of any number of users."""

_numbers = itertools.count(1)


class DecisionSource(Protocol):
    """The answers of another system about one principal. Thread-safe. Each method may wait for that system and raise
    its errors."""

    @property
    def has_any(self) -> bool:
        """Whether anything may be granted. Does not ask the system."""

    @property
    def held(self) -> int:
        """The number of remembered answers."""

    def prepare(self, checks: Sequence[AccessCheck]) -> None:
        """Announces checks, so that they are sent in one request."""

    def allow(self, action: Action, of: SecuredObject) -> bool:
        """Whether the principal may perform the action."""

    def show(self, what: SecuredObject) -> bool:
        """Whether the principal may know that a database or catalog exists."""

    def may_grant(self, privilege: str | None, of: SecuredObject) -> bool:
        """Whether the principal may grant a privilege on an object; None: revoke a privilege granted by anybody."""


class Epoch:
    """The period for which decisions are kept."""

    def __init__(self, ends_at_s: float) -> None:
        self.ends_at_s = ends_at_s
        self.by_principal: dict[tuple[str, frozenset[str]], ExternalDecisions] = {}
        self.by_tag: dict[bytes, ExternalDecisions] = {}
        self.held = 0
        """Number of answers that the decisions hold. Concurrent updates may be lost: it is a limit, not an exact
        count."""


class ExternalDecisions:
    """See `Decisions`: the decisions about one principal in one epoch."""

    __slots__ = ("_counted", "_epoch", "_source", "is_held", "policy", "tag")

    def __init__(self, epoch: Epoch, source: DecisionSource) -> None:
        self.policy: object = epoch
        self._epoch = epoch
        self._counted = 0
        self.is_held = False
        """Whether the epoch keeps these decisions. Others are dropped after their call."""
        self.tag = b"\x80" + next(_numbers).to_bytes(11, "big")
        self._source = source

    @property
    def has_any(self) -> bool:
        """Whether anything may be granted."""
        return self._source.has_any

    def prepare(self, checks: Sequence[AccessCheck]) -> None:
        """See `DecisionSource`."""
        self._source.prepare(checks)
        self._count()

    def allow(self, action: Action, of: SecuredObject) -> bool:
        """See `DecisionSource`."""
        found = self._source.allow(action, of)
        self._count()
        return found

    def show(self, what: SecuredObject) -> bool:
        """See `DecisionSource`."""
        found = self._source.show(what)
        self._count()
        return found

    def may_grant(self, privilege: str | None, of: SecuredObject) -> bool:
        """See `DecisionSource`."""
        found = self._source.may_grant(privilege, of)
        self._count()
        return found

    def _count(self) -> None:
        held = self._source.held
        if self.is_held and held != self._counted:
            self._epoch.held += held - self._counted
            self._counted = held


class ExternalAuthorizer:
    """See `Authorizer`. Asks only when a decision is needed, on the thread that needs it."""

    is_external = True
    waits_for_members = False

    def __init__(
        self,
        source_of: Callable[[str, frozenset[str]], DecisionSource],
        max_age_s: float,
        now_s: Callable[[], float] = elapsed_s,
    ) -> None:
        self.is_current: Callable[[], bool] | None = None
        """Whether `forget` has been called for all changes before the check; may wait. None: changes are not
        reported, and only the age limits decisions."""
        self._source_of = source_of
        self._max_age_s = max_age_s
        self._now_s = now_s
        self._changing = threading.Lock()
        """Held while an epoch is replaced or a principal is added to it; never while the other system is asked."""
        self._epoch = Epoch(now_s() + max_age_s)

    @property
    def keeps_answers(self) -> bool:
        """Whether decisions, and the answers that depend on them, outlive the call."""
        return self._max_age_s > 0

    @property
    def policy(self) -> object:
        """The current epoch; with age 0, a new one each time."""
        epoch = self._epoch
        is_on = self._now_s() < epoch.ends_at_s and epoch.held <= MAX_HELD
        return epoch if is_on else self._begin(epoch)

    def _begin(self, ended: Epoch) -> Epoch:
        with self._changing:
            if self._epoch is ended or not self.keeps_answers:
                self._epoch = Epoch(self._now_s() + self._max_age_s)
            return self._epoch

    def forget(self) -> None:
        """Drops all decisions, because grants have been changed by this server."""
        self._begin(self._epoch)

    def decisions(self, principal: str, groups: frozenset[str] = NO_GROUPS) -> ExternalDecisions:
        """The decisions of the current epoch."""
        if not self.keeps_answers:
            return ExternalDecisions(Epoch(self._now_s()), self._source_of(principal, groups))
        epoch = self.policy
        assert isinstance(epoch, Epoch)
        found = epoch.by_principal.get((principal, groups))
        if found is None:
            with self._changing:
                found = epoch.by_principal.get((principal, groups))
                if found is None:
                    found = ExternalDecisions(epoch, self._source_of(principal, groups))
                    if len(epoch.by_principal) < MAX_PRINCIPALS:
                        epoch.by_principal[principal, groups] = found
                        epoch.by_tag[found.tag] = found
                        found.is_held = True
        return found

    def proven_decisions(self, principal: str, groups: frozenset[str] = NO_GROUPS) -> ExternalDecisions:
        """The decisions of the epoch if it is known to be current; otherwise decisions for this call only."""
        if self.is_current is None or not self.keeps_answers or self.is_current():
            return self.decisions(principal, groups)
        return ExternalDecisions(Epoch(self._now_s()), self._source_of(principal, groups))

    def decisions_of(self, tag: bytes) -> ExternalDecisions | None:
        """The decisions with this tag in the current epoch."""
        epoch = self.policy
        assert isinstance(epoch, Epoch)
        return epoch.by_tag.get(tag)

    def decide(self, principal: str, action: Action, of: SecuredObject) -> bool:
        """Whether the principal may perform the action now."""
        return self.proven_decisions(principal).allow(action, of)
