"""The policy of a file, with groups from an LDAP directory.

Decisions are valid for an *epoch*, a period of fixed length. The first call of a user in an epoch asks for the user's
groups, once. So a user who is removed from a group keeps its rights no longer than an epoch. Decision classes are those
of the policy: users with the same grants share answers, and an answer outlives the epoch.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence

from hms_cache.authorization.cached_groups import CachedGroups
from hms_cache.authorization.decisions import NO_GROUPS, AccessCheck, Action, SecuredObject
from hms_cache.authorization.policy import (
    MAX_PRINCIPALS,
    GrantedDecisions,
    Policy,
    of_directory,
    of_token,
)
from hms_cache.authorization.policy_file import PolicyFile

_numbers = itertools.count(1)


class _Epoch:
    """The value of `Authorizer.policy`: one version of the file, for a limited time."""

    def __init__(self, policy: Policy, ends_at_s: float) -> None:
        self.granted = policy
        self.ends_at_s = ends_at_s
        self.by_principal: dict[tuple[str, frozenset[str]], EpochDecisions] = {}


class EpochDecisions:
    """See `Decisions`. Created without asking the directory; the first check asks it, on the thread that needs the
    answer."""

    __slots__ = ("_granted", "_resolve", "policy", "tag")

    def __init__(self, epoch: _Epoch, resolve: Callable[[], GrantedDecisions]) -> None:
        self.policy: object = epoch
        self._resolve = resolve
        self._granted: GrantedDecisions | None = None
        self.tag = b"\x81" + next(_numbers).to_bytes(11, "big")
        """Matches no cached answers until the class is known."""

    def resolved(self) -> GrantedDecisions:
        """The decisions of the class. May wait for the directory. Raises UndecidedError."""
        granted = self._granted
        if granted is None:
            granted = self._granted = self._resolve()
            self.tag = granted.tag
        return granted

    @property
    def has_any(self) -> bool:
        """Whether anything is granted."""
        return self.resolved().has_any

    def prepare(self, checks: Sequence[AccessCheck]) -> None:
        """Does nothing: one request to the directory serves all checks."""

    def allow(self, action: Action, of: SecuredObject) -> bool:
        """See `GrantedDecisions`."""
        return self.resolved().allow(action, of)

    def show(self, what: SecuredObject) -> bool:
        """See `GrantedDecisions`."""
        return self.resolved().show(what)

    def may_grant(self, privilege: str | None, of: SecuredObject) -> bool:
        """See `GrantedDecisions`."""
        return self.resolved().may_grant(privilege, of)


class GroupedPolicy:
    """See `Authorizer`."""

    is_external = True
    waits_for_members = True
    keeps_answers = True

    def __init__(self, file: PolicyFile, groups: CachedGroups) -> None:
        self._file = file
        self._groups = groups
        self._changing = threading.Lock()
        """Held while an epoch is replaced."""
        self._epoch = self._new_epoch()

    @property
    def policy(self) -> object:
        """The current epoch: it ends when its time is over or the file changes."""
        return self._current()

    def forget(self) -> None:
        """Does nothing: the policy does not depend on grants in the metastore."""

    def decisions(self, principal: str, groups: frozenset[str] = NO_GROUPS) -> EpochDecisions:
        """The decisions of the current epoch. Does not ask the directory."""
        epoch = self._current()
        found = epoch.by_principal.get((principal, groups))
        if found is None:

            def resolve() -> GrantedDecisions:
                return epoch.granted.decisions(principal, of_directory(self._groups.of(principal)) | of_token(groups))

            found = EpochDecisions(epoch, resolve)
            if len(epoch.by_principal) < MAX_PRINCIPALS:
                found = epoch.by_principal.setdefault((principal, groups), found)
        return found

    def proven_decisions(self, principal: str, groups: frozenset[str] = NO_GROUPS) -> EpochDecisions:
        """Like `decisions`, with the class resolved. Raises UndecidedError."""
        found = self.decisions(principal, groups)
        found.resolved()
        return found

    def decisions_of(self, tag: bytes) -> GrantedDecisions | None:
        """The decisions with this tag in the current version of the file."""
        return self._file.decisions_of(tag)

    def decide(self, principal: str, action: Action, of: SecuredObject) -> bool:
        """Whether the principal may perform the action now."""
        return self.proven_decisions(principal).allow(action, of)

    def _current(self) -> _Epoch:
        epoch = self._epoch
        if epoch.granted is self._file.policy and self._groups.now_s() < epoch.ends_at_s:
            return epoch
        with self._changing:
            if self._epoch is epoch:
                self._epoch = self._new_epoch()
            return self._epoch

    def _new_epoch(self) -> _Epoch:
        return _Epoch(self._file.policy, self._groups.now_s() + self._groups.max_age_s)
