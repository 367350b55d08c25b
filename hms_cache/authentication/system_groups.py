"""Groups of users as the operating system's name service (NSS) has them: of files, or of a directory behind it.

Facts: `ShellBasedUnixGroupsMapping` and `JniBasedUnixGroupsMapping` (hadoop-common 3.3) ask the same: a user whom the
system does not know is in none.
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
"""Questions that are not answered yet; others wait for a place, no longer than the time limit."""


class SystemGroups:
    """Thread-safe. Asks on threads of its own: a name service that hangs keeps `MAX_AT_ONCE` of them, no caller's."""

    def __init__(
        self,
        look: Callable[[str], frozenset[str]] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """`look`: stands for the system."""
        self._look = look or groups_of
        self._timeout_s = timeout_s
        self._places = threading.BoundedSemaphore(MAX_AT_ONCE)

    def of(self, user: str) -> frozenset[str]:
        """Raises TimeoutError when the system does not answer, OSError when it answers with an error or cannot be
        asked."""
        if not self._places.acquire(timeout=self._timeout_s):
            raise TimeoutError("the system's name service is busy")
        answer: Future[frozenset[str]] = Future()
        try:
            threading.Thread(target=self._ask, args=(user, answer), name="hms-groups", daemon=True).start()
        except RuntimeError as error:  # the system has no more threads now
            self._places.release()
            raise OSError(str(error)) from error
        return answer.result(self._timeout_s)

    def _ask(self, user: str, answer: Future[frozenset[str]]) -> None:
        try:
            answer.set_result(self._look(user))
        except Exception as error:
            answer.set_exception(error)
        finally:
            self._places.release()


def groups_of(user: str) -> frozenset[str]:
    """Asks the name service; may wait for as long as it likes."""
    try:
        entry = pwd.getpwnam(user)
    except (KeyError, ValueError):  # ValueError: a text that is no name of the system's
        return frozenset()
    found = set()
    for number in os.getgrouplist(user, entry.pw_gid):
        with contextlib.suppress(KeyError):  # a number without a name
            found.add(grp.getgrgid(number).gr_name)
    return frozenset(found)
