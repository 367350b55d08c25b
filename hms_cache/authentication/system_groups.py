"""Groups of users from the operating system's name service (NSS): from files, or from a directory behind it.

Facts: `ShellBasedUnixGroupsMapping` and `JniBasedUnixGroupsMapping` (hadoop-common 3.3) use the same service: a user
unknown to the system has no groups.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import threading
from collections.abc import Callable
from concurrent.futures import Future

TIMEOUT_S = 5.0
MAX_AT_ONCE = 4
"""Maximum number of pending questions; others wait, at most for the time limit."""


class SystemGroups:
    """Asks the name service on threads of its own: a service that hangs blocks `MAX_AT_ONCE` of them, but no caller.
    Thread-safe."""

    def __init__(
        self,
        lookup: Callable[[str], frozenset[str]] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """:param lookup: replaces the system's lookup."""
        self._lookup = lookup or groups_of
        self._timeout_s = timeout_s
        self._places = threading.BoundedSemaphore(MAX_AT_ONCE)

    def of(self, user: str) -> frozenset[str]:
        """The groups of a user. Raises TimeoutError if the system does not answer, OSError if it fails or cannot be
        asked."""
        if not self._places.acquire(timeout=self._timeout_s):
            raise TimeoutError("the system's name service is busy")
        answer: Future[frozenset[str]] = Future()
        try:
            threading.Thread(target=self._run_lookup, args=(user, answer), name="hms-groups", daemon=True).start()
        except RuntimeError as error:  # the system has no more threads
            self._places.release()
            raise OSError(str(error)) from error
        return answer.result(self._timeout_s)

    def _run_lookup(self, user: str, answer: Future[frozenset[str]]) -> None:
        try:
            answer.set_result(self._lookup(user))
        except Exception as error:
            answer.set_exception(error)
        finally:
            self._places.release()


def groups_of(user: str) -> frozenset[str]:
    """Asks the name service. May block without a time limit."""
    try:
        entry = pwd.getpwnam(user)
    except (KeyError, ValueError):  # ValueError: the text cannot be a name of the system
        return frozenset()
    found = set()
    for number in os.getgrouplist(user, entry.pw_gid):
        with contextlib.suppress(KeyError):  # a group id without a name
            found.add(grp.getgrgid(number).gr_name)
    return frozenset(found)
