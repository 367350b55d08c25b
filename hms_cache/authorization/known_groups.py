"""Groups of users that another system knows: an LDAP directory, or the operating system."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from hms_cache.authorization.decisions import NO_GROUPS, UndecidedError, UserUndecidedError
from hms_cache.clock import elapsed_s

GroupsOf = Callable[[str], frozenset[str]]
"""The groups of a user. May wait; raises UndecidedError."""

RETRY_INTERVAL_S = 5.0
"""After the other system did not answer, nobody waits for it again for so long; after it did not about a user alone,
nobody asks about that one."""

MAX_USERS = 10_000
"""Whose groups are held; those of others are asked for each time."""


def nobody_knows(user: str) -> frozenset[str]:
    """Stands for a system of groups where there is none."""
    return NO_GROUPS


class Principal:
    """Who asks: the groups that its bearer token names, and the directory's, which is asked for them once."""

    def __init__(
        self, name: str, token_groups: frozenset[str] = NO_GROUPS, directory_groups_of: GroupsOf = nobody_knows
    ) -> None:
        self.name = name
        self.token_groups = token_groups
        self._directory_groups_of = directory_groups_of
        self._directory_groups: frozenset[str] | None = None

    def directory_groups(self) -> frozenset[str]:
        """Raises UndecidedError."""
        found = self._directory_groups
        if found is None:
            found = self._directory_groups = self._directory_groups_of(self.name)
        return found


class KnownGroups:
    """Groups of users, as another system says; what it said last while it does not answer. Thread-safe."""

    def __init__(
        self,
        ask: Callable[[str], frozenset[str]],
        max_age_s: float,
        now_s: Callable[[], float] = elapsed_s,
    ) -> None:
        """`ask` raises UndecidedError when the other system does not answer, UserUndecidedError when it does not about
        this user: one whose groups are too many must not keep everybody else out."""
        self._ask = ask
        self.max_age_s = max_age_s
        self.now_s = now_s
        self._lock = threading.Lock()
        """Guards what is known; never held while the other system is asked."""
        self._known: OrderedDict[str, tuple[frozenset[str], float]] = OrderedDict()
        self._silent_until_s = -1.0
        self._untold: OrderedDict[str, float] = OrderedDict()
        """Until when users are not asked about again."""
        self.outcomes = {"ok": 0, "kept": 0, "failed": 0}

    def of(self, user: str) -> frozenset[str]:
        """Asks now. Raises UndecidedError when nothing is known that is young enough."""
        asked_at_s = self.now_s()
        if asked_at_s < self._silent_until_s or asked_at_s < self._untold.get(user, -1.0):
            return self._kept(user)
        try:
            found = self._ask(user)
        except UserUndecidedError:
            with self._lock:
                self._untold[user] = self.now_s() + RETRY_INTERVAL_S
                self._untold.move_to_end(user)
                if len(self._untold) > MAX_USERS:
                    self._untold.popitem(last=False)
            return self._kept(user)
        except UndecidedError:
            self._silent_until_s = self.now_s() + RETRY_INTERVAL_S
            return self._kept(user)
        with self._lock:
            self.outcomes["ok"] += 1
            self._untold.pop(user, None)
            self._known[user] = found, asked_at_s
            self._known.move_to_end(user)
            if len(self._known) > MAX_USERS:
                self._known.popitem(last=False)
        return found

    def recent(self, user: str) -> frozenset[str]:
        """Not older than `max_age_s`; asks if nothing is. Raises UndecidedError like `of`."""
        with self._lock:
            found, said_at_s = self._known.get(user, (NO_GROUPS, -1.0))
            if said_at_s >= 0 and self.now_s() - said_at_s <= self.max_age_s:
                return found
        return self.of(user)

    def _kept(self, user: str) -> frozenset[str]:
        """What was said at most twice `max_age_s` ago."""
        with self._lock:
            found, said_at_s = self._known.get(user, (NO_GROUPS, -1.0))
            if said_at_s >= 0 and self.now_s() - said_at_s <= 2 * self.max_age_s:
                self.outcomes["kept"] += 1
                return found
            self.outcomes["failed"] += 1
        raise UndecidedError("the groups of the user cannot be determined; retry")
