"""The policy of a file, taken anew when the file changes."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

from hms_cache.authorization.decisions import NO_GROUPS, Action, SecuredObject
from hms_cache.authorization.policy import (
    NO_MEMBERSHIPS,
    GrantedDecisions,
    Policy,
    PolicyError,
    of_token,
    parse_policy,
)

_log = logging.getLogger(__name__)

_Signature = tuple[int, int, int]
"""Time of change in ns, size in bytes, inode: of a file that editors rename into place, too."""


class PolicyFile:
    """See `Authorizer`. A file that cannot be used changes nothing: the policy before it stays in force."""

    asks_others = False
    waits_for_members = False
    keeps_answers = True

    def __init__(self, path: Path, sources: frozenset[str] = frozenset()) -> None:
        """Raises PolicyError (which names the file) when it cannot be used now. `sources`: see `parse_policy`."""
        self._path = path
        self._sources = sources
        self._reloading = threading.Lock()
        """Held while the file is read, so that an older reading never replaces a newer one."""
        self._tried: _Signature | None = None
        self.outcomes = {"loaded": 0, "failed": 0}
        self.loaded_at_s = 0.0
        """Epoch seconds of the last reading that succeeded."""
        self.policy = Policy(())
        """In force; replaced as a whole."""
        self.reload()

    def forget(self) -> None:
        """Grants that the metastore keeps do not matter to the policy."""

    def decisions(self, principal: str, groups: frozenset[str] = NO_GROUPS) -> GrantedDecisions:
        """What is decided about a principal, now."""
        return self.policy.decisions(principal, of_token(groups) if groups else NO_MEMBERSHIPS)

    def proven_decisions(self, principal: str, groups: frozenset[str] = NO_GROUPS) -> GrantedDecisions:
        """The same: the policy is in memory."""
        return self.decisions(principal, groups)

    def decisions_of(self, tag: bytes) -> GrantedDecisions | None:
        """Those of a tag of the policy in force."""
        return self.policy.decisions_of(tag)

    @property
    def grants(self) -> int:
        """How many the policy in force has."""
        return len(self.policy.grants)

    def decide(self, principal: str, action: Action, of: SecuredObject) -> bool:
        """Whether the principal may do that, now."""
        return self.policy.decisions(principal).allow(action, of)

    def reload(self) -> None:
        """Reads the file. Raises PolicyError; then nothing has changed."""
        with self._reloading:
            self._read()

    def reload_if_changed(self) -> None:
        """Looks whether the file is another one than was last tried; logs why it cannot be used."""
        with self._reloading:
            try:
                found: _Signature | None = self._look()
            except OSError:
                found = None
            if found == self._tried:
                return
            self._tried = found
            try:
                self._read()
            except PolicyError as error:
                _log.error("the earlier policy stays in force: %s", error)

    def _look(self) -> _Signature:
        status = self._path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> None:
        try:
            before = self._look()  # a change after it is seen by the next look
            policy = parse_policy(self._path.read_text(encoding="utf-8-sig"), self._sources)
        except (OSError, UnicodeDecodeError, PolicyError) as error:
            self.outcomes["failed"] += 1
            raise PolicyError(f"{self._path}: {getattr(error, 'strerror', None) or error}") from error
        self.policy = policy
        self._tried = before
        self.outcomes["loaded"] += 1
        self.loaded_at_s = time.time()
        _log.info("policy %d of %s: %d grants", policy.version, self._path, len(policy.grants))
