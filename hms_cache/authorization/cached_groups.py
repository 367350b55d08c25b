"""Groups of users from another system: an LDAP directory, or the operating system."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from hms_cache.authorization.decisions import NO_GROUPS, UndecidedError, UserUndecidedError
from hms_cache.clock import elapsed_s

GroupsOf = Callable[[str], frozenset[str]]
"""Returns the groups of a user. May block. Raises UndecidedError."""

RETRY_INTERVAL_S = 5.0
"""After the other system failed to answer, it is not asked again for this time; after it failed for one user only, it
is not asked about that user."""

MAX_USERS = 10_000
"""Maximum number of users whose groups are kept. For others, the system is asked each time."""


def no_groups_of(user: str) -> frozenset[str]:
    """A `GroupsOf` for use without a system of groups."""
    return NO_GROUPS


class Principal:
    """A principal: the groups that its bearer token names, and those of the directory, which is asked at most once."""

    def __init__(
        self, name: str, token_groups: frozenset[str] = NO_GROUPS, directory_groups_of: GroupsOf = no_groups_of
    ) -> None:
        self.name = name
        self.token_groups = token_groups
        self._directory_groups_of = directory_groups_of
        self._directory_groups: frozenset[str] | None = None

    def directory_groups(self) -> frozenset[str]:
        """The groups in the directory. Raises UndecidedError."""
        found = self._directory_groups
        if found is None:
            found = self._directory_groups = self._directory_groups_of(self.name)
        return found


class CachedGroups:
    """Caches the groups of users from another system, and keeps using the last answer while the system does not answer.
    Thread-safe."""

    def __init__(
        self,
        find_groups: Callable[[str], frozenset[str]],
        max_age_s: float,
        now_s: Callable[[], float] = elapsed_s,
    ) -> None:
        """:param find_groups: raises UndecidedError if the other system does not answer, and UserUndecidedError if it
        does not answer for this user only: a user with too many groups must not lock out others."""
        self._find_groups = find_groups
        self.max_age_s = max_age_s
        self.now_s = now_s
        self._lock = threading.Lock()
        """Guards the cached groups; never held while the other system is asked."""
        self._cached: OrderedDict[str, tuple[frozenset[str], float]] = OrderedDict()
        self._retry_at_s = -1.0
        self._user_retry_at_s: OrderedDict[str, float] = OrderedDict()
        """Users that are not asked about again, with the end of that period."""
        self.outcomes = {"ok": 0, "cached": 0, "failed": 0}

    def of(self, user: str) -> frozenset[str]:
        """Asks the system now. Raises UndecidedError if it fails and no cached answer is recent enough."""
        requested_at_s = self.now_s()
        if requested_at_s < self._retry_at_s or requested_at_s < self._user_retry_at_s.get(user, -1.0):
            return self._kept(user)
        try:
            found = self._find_groups(user)
        except UserUndecidedError:
            with self._lock:
                self._user_retry_at_s[user] = self.now_s() + RETRY_INTERVAL_S
                self._user_retry_at_s.move_to_end(user)
                if len(self._user_retry_at_s) > MAX_USERS:
                    self._user_retry_at_s.popitem(last=False)
            return self._kept(user)
        except UndecidedError:
            self._retry_at_s = self.now_s() + RETRY_INTERVAL_S
            return self._kept(user)
        with self._lock:
            self.outcomes["ok"] += 1
            self._user_retry_at_s.pop(user, None)
            self._cached[user] = found, requested_at_s
            self._cached.move_to_end(user)
            if len(self._cached) > MAX_USERS:
                self._cached.popitem(last=False)
        return found

    def recent(self, user: str) -> frozenset[str]:
        """The groups, at most `max_age_s` old; asks the system if the cached ones are older. Raises UndecidedError like
        `of`."""
        with self._lock:
            found, received_at_s = self._cached.get(user, (NO_GROUPS, -1.0))
            if received_at_s >= 0 and self.now_s() - received_at_s <= self.max_age_s:
                return found
        return self.of(user)

    def _kept(self, user: str) -> frozenset[str]:
        """The cached groups, at most twice `max_age_s` old."""
        with self._lock:
            found, received_at_s = self._cached.get(user, (NO_GROUPS, -1.0))
            if received_at_s >= 0 and self.now_s() - received_at_s <= 2 * self.max_age_s:
                self.outcomes["cached"] += 1
                return found
            self.outcomes["failed"] += 1
        raise UndecidedError("the groups of the user cannot be determined; retry")
