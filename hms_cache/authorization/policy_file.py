"""The policy of a file, reloaded when the file changes."""

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
"""Modification time in ns, size in bytes, inode; also detects files that an editor replaces by renaming."""


class PolicyFile:
    """See `Authorizer`. A file that cannot be used changes nothing: the previous policy stays in force."""

    is_external = False
    waits_for_members = False
    keeps_answers = True

    def __init__(self, path: Path, sources: frozenset[str] = frozenset()) -> None:
        """Reads the file. Raises PolicyError (which names the file) if it cannot be used. For `sources` see
        `parse_policy`."""
        self._path = path
        self._sources = sources
        self._reloading = threading.Lock()
        """Held while the file is read, so that an older version never replaces a newer one."""
        self._tried: _Signature | None = None
        self.outcomes = {"loaded": 0, "failed": 0}
        self.loaded_at_s = 0.0
        """Time of the last successful load, in epoch seconds."""
        self.policy = Policy(())
        """The policy in force; replaced as a whole."""
        self.reload()

    def forget(self) -> None:
        """Does nothing: the policy does not depend on grants in the metastore."""

    def decisions(self, principal: str, groups: frozenset[str] = NO_GROUPS) -> GrantedDecisions:
        """The decisions about a principal now."""
        return self.policy.decisions(principal, of_token(groups) if groups else NO_MEMBERSHIPS)

    def proven_decisions(self, principal: str, groups: frozenset[str] = NO_GROUPS) -> GrantedDecisions:
        """Same as `decisions`: the policy is in memory."""
        return self.decisions(principal, groups)

    def decisions_of(self, tag: bytes) -> GrantedDecisions | None:
        """The decisions with this tag in the policy in force."""
        return self.policy.decisions_of(tag)

    @property
    def grants(self) -> int:
        """The number of grants in the policy in force."""
        return len(self.policy.grants)

    def decide(self, principal: str, action: Action, of: SecuredObject) -> bool:
        """Whether the principal may perform the action now."""
        return self.policy.decisions(principal).allow(action, of)

    def reload(self) -> None:
        """Reads the file. Raises PolicyError without changing anything."""
        with self._reloading:
            self._read()

    def reload_if_changed(self) -> None:
        """Reads the file if it differs from the version last tried; logs the reason if it cannot be used."""
        with self._reloading:
            try:
                found: _Signature | None = self._signature()
            except OSError:
                found = None
            if found == self._tried:
                return
            self._tried = found
            try:
                self._read()
            except PolicyError as error:
                _log.error("the earlier policy stays in force: %s", error)

    def _signature(self) -> _Signature:
        status = self._path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> None:
        try:
            before = self._signature()  # a later change is seen by the next check
            policy = parse_policy(self._path.read_text(encoding="utf-8-sig"), self._sources)
        except (OSError, UnicodeDecodeError, PolicyError) as error:
            self.outcomes["failed"] += 1
            raise PolicyError(f"{self._path}: {getattr(error, 'strerror', None) or error}") from error
        self.policy = policy
        self._tried = before
        self.outcomes["loaded"] += 1
        self.loaded_at_s = time.time()
        _log.info("policy %d of %s: %d grants", policy.version, self._path, len(policy.grants))
