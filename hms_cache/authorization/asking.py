"""An authorizer that asks another system: the database's grants, or a policy service.

What tells that the other system has changed ends an epoch, too (`is_current`): then decisions are exact, and the age is
for what it does not tell.

Its decisions have a greatest age. All decisions of one *epoch* are dropped when it ends, and an epoch lasts as long as
the greatest age: so none is older. With age 0 each call has its own, and no answer is kept between calls.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from hms_cache.authorization.decisions import NO_GROUPS, Action, Question, SecuredObject
from hms_cache.clock import elapsed_s

MAX_PRINCIPALS = 10_000
"""Whose decisions are held; others are asked about at each call."""

MAX_HELD = 500_000
"""Answers that are held of all principals together, of some 200 bytes each; beyond, an epoch ends before its time. A
service that acts for others asks in as many names as it likes."""

_numbers = itertools.count(1)


class Judge(Protocol):
    """What another system says about one principal. Thread-safe; each method may wait for it, and raise its errors."""

    @property
    def has_any(self) -> bool:
        """Whether anything may be granted; asks nobody."""

    @property
    def held(self) -> int:
        """How many answers it remembers."""

    def prepare(self, questions: Sequence[Question]) -> None:
        """These are about to be asked: they cost one question together."""

    def allow(self, action: Action, of: SecuredObject) -> bool:
        """Whether the principal may do that."""

    def show(self, what: SecuredObject) -> bool:
        """Whether it may know that a database or catalog exists."""

    def may_grant(self, privilege: str | None, of: SecuredObject) -> bool:
        """Whether it may grant a privilege on an object; None: revoke one of anybody's."""


class Epoch:
    """The time in which decisions are kept."""

    def __init__(self, ends_at_s: float) -> None:
        self.ends_at_s = ends_at_s
        self.by_principal: dict[tuple[str, frozenset[str]], AskedDecisions] = {}
        self.by_tag: dict[bytes, AskedDecisions] = {}
        self.held = 0
        """Answers that its decisions hold. Threads that count at once may miss some: it is a limit and no account."""


class AskedDecisions:
    """See `Decisions`: of one principal, in one epoch."""

    __slots__ = ("_counted", "_epoch", "_judge", "is_held", "policy", "tag")

    def __init__(self, epoch: Epoch, judge: Judge) -> None:
        self.policy: object = epoch
        self._epoch = epoch
        self._counted = 0
        self.is_held = False
        """Whether the epoch holds them; others are gone with their call."""
        self.tag = b"\x80" + next(_numbers).to_bytes(11, "big")
        self._judge = judge

    @property
    def has_any(self) -> bool:
        """Whether anything may be granted."""
        return self._judge.has_any

    def prepare(self, questions: Sequence[Question]) -> None:
        """See `Judge`."""
        self._judge.prepare(questions)
        self._count()

    def allow(self, action: Action, of: SecuredObject) -> bool:
        """See `Judge`."""
        found = self._judge.allow(action, of)
        self._count()
        return found

    def show(self, what: SecuredObject) -> bool:
        """See `Judge`."""
        found = self._judge.show(what)
        self._count()
        return found

    def may_grant(self, privilege: str | None, of: SecuredObject) -> bool:
        """See `Judge`."""
        found = self._judge.may_grant(privilege, of)
        self._count()
        return found

    def _count(self) -> None:
        held = self._judge.held
        if self.is_held and held != self._counted:
            self._epoch.held += held - self._counted
            self._counted = held


class AskingAuthorizer:
    """See `Authorizer`. Asks only when a decision is wanted, on the thread that wants it."""

    asks_others = True
    waits_for_members = False

    def __init__(
        self,
        judge_of: Callable[[str, frozenset[str]], Judge],
        max_age_s: float,
        now_s: Callable[[], float] = elapsed_s,
    ) -> None:
        self.is_current: Callable[[], bool] | None = None
        """Whether `forget` has been called for everything that had changed before the question; may wait. None: nobody
        tells of changes, and the age alone counts."""
        self._judge_of = judge_of
        self._max_age_s = max_age_s
        self._now_s = now_s
        self._changing = threading.Lock()
        """Held while an epoch replaces another, and while it takes a principal; never while anybody is asked."""
        self._epoch = Epoch(now_s() + max_age_s)

    @property
    def keeps_answers(self) -> bool:
        """Whether decisions outlive the call, and answers with them."""
        return self._max_age_s > 0

    @property
    def policy(self) -> object:
        """The epoch. With age 0 another one each time."""
        epoch = self._epoch
        is_on = self._now_s() < epoch.ends_at_s and epoch.held <= MAX_HELD
        return epoch if is_on else self._begin(epoch)

    def _begin(self, ended: Epoch) -> Epoch:
        with self._changing:
            if self._epoch is ended or not self.keeps_answers:
                self._epoch = Epoch(self._now_s() + self._max_age_s)
            return self._epoch

    def forget(self) -> None:
        """What was decided counts no more: grants have changed here."""
        self._begin(self._epoch)

    def decisions(self, principal: str, groups: frozenset[str] = NO_GROUPS) -> AskedDecisions:
        """Those of the epoch that runs."""
        if not self.keeps_answers:
            return AskedDecisions(Epoch(self._now_s()), self._judge_of(principal, groups))
        epoch = self.policy
        assert isinstance(epoch, Epoch)
        found = epoch.by_principal.get((principal, groups))
        if found is None:
            with self._changing:
                found = epoch.by_principal.get((principal, groups))
                if found is None:
                    found = AskedDecisions(epoch, self._judge_of(principal, groups))
                    if len(epoch.by_principal) < MAX_PRINCIPALS:
                        epoch.by_principal[principal, groups] = found
                        epoch.by_tag[found.tag] = found
                        found.is_held = True
        return found

    def proven_decisions(self, principal: str, groups: frozenset[str] = NO_GROUPS) -> AskedDecisions:
        """Those of the epoch if it is known to be current; otherwise those of this call alone."""
        if self.is_current is None or not self.keeps_answers or self.is_current():
            return self.decisions(principal, groups)
        return AskedDecisions(Epoch(self._now_s()), self._judge_of(principal, groups))

    def decisions_of(self, tag: bytes) -> AskedDecisions | None:
        """Those of a tag of the epoch that runs."""
        epoch = self.policy
        assert isinstance(epoch, Epoch)
        return epoch.by_tag.get(tag)

    def decide(self, principal: str, action: Action, of: SecuredObject) -> bool:
        """Whether the principal may do that, now."""
        return self.proven_decisions(principal).allow(action, of)
