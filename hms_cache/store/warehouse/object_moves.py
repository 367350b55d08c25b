"""Directories of object stores moved: copied while no lock is held, and the source deleted after the commit.

They rename nothing: a move copies object by object, which may take minutes, and locks of the database held meanwhile
keep other writers out (on SQLite all of them). So the destination is claimed under the locks, by the object that stands
for the directory; then the copying is left to its thread when it takes longer than a write waits with locks, and the
write is rolled back, waits and is run again (`waits`). Then it lists the source once more and copies what has come
meanwhile. The source is deleted after the commit, and only those of its objects that are as they were copied.

A write that fails deletes what it has copied, and the source is whole. After a commit of unknown outcome both stay. A
server that dies leaves a copy that no row names, or a source that no row names any more; `hms-cache check` finds both.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from hms_cache.store.warehouse import remote_files
from hms_cache.store.warehouse.allowed import AllowedLocation
from hms_cache.store.warehouse.deadlines import MOVE_TIMEOUT, TIMEOUT
from hms_cache.store.warehouse.mounts import file_system_of

if TYPE_CHECKING:
    from hms_cache.store.warehouse.warehouse import Warehouse

_LOG = logging.getLogger(__name__)

_COPIED_AT_ONCE = 100
"""Objects copied between two looks at the time."""

_OF_THE_TIME = 0.9
"""The part of a time limit after which copying stops by itself, so that its caller hears why."""


class GivenUp(Exception):
    """The write that asked for the copy has failed."""


class ObjectMove:
    """A directory of an object store on its way to another place of the same bucket, over all attempts of one write."""

    def __init__(self, warehouse: Warehouse, source: AllowedLocation, destination: AllowedLocation) -> None:
        self._warehouse = warehouse
        self._file_systems = warehouse.file_systems
        self.source = source
        self.destination = destination
        self.is_settled = False
        """Whether the copy stays when the write ends: it is committed, or nobody knows."""

        self._copied: dict[str, str] = {}
        """What a key has after the directory's → tag, of all objects that the destination has from the source."""

        self._lock = threading.Lock()
        """Guards the two flags."""

        self._is_copying = self._is_given_up = False

    @property
    def question(self) -> tuple[str, str, str]:
        """What tells the copy from other questions of the write."""
        return "copy", str(self.source), str(self.destination)

    def claim(self) -> None:
        """Makes the object that stands for the destination, while the caller holds the lock on the row that gets it.

        So it is not left to another attempt. Raises MetaException.
        """
        settings = self._warehouse.settings
        self._warehouse.ask(
            file_system_of(self.source),
            "make",
            f"Unable to rename: {self.source} to: {self.destination}",
            lambda: remote_files.make_directory(*self._file_systems.open(self.destination.location)),
            timeout_s=settings.file_timeout_s,
            if_late=lambda _: self.undo(),
        )

    def copy(self) -> None:
        """Copies what is not copied yet, within `file_move_timeout_s`. Raises MetaException, StillWaiting."""
        self._ask(self._warehouse.settings.file_move_timeout_s, MOVE_TIMEOUT, is_left_to_next_attempt=True)

    def catch_up(self) -> None:
        """Copies what has come to the source since, locks held, within `file_timeout_s`. Raises MetaException."""
        self._ask(self._warehouse.settings.file_timeout_s, TIMEOUT, is_left_to_next_attempt=False)

    def _ask(self, timeout_s: float, setting: str, *, is_left_to_next_attempt: bool) -> None:
        self._warehouse.ask(
            file_system_of(self.source),
            "move",
            f"Unable to rename: {self.source} to: {self.destination}",
            lambda: self._work(timeout_s, setting),
            timeout_s=timeout_s,
            setting=setting,
            question=self.question if is_left_to_next_attempt else None,
        )

    def unsettle(self) -> None:
        """The attempt was rolled back: unless another one follows, the copy goes."""
        self.is_settled = False

    def close(self) -> None:
        """The write has ended. Never raises."""
        if self.is_settled:
            return
        try:
            self.undo()
        except Exception:
            _LOG.exception("the copy at %s of a directory that was not moved cannot be deleted", self.destination)

    def undo(self) -> None:
        """Deletes what was copied; a thread that copies still does so itself when it stops. Raises MetaException."""
        with self._lock:
            self._is_given_up = True
            if self._is_copying:
                return
        self._warehouse.ask(
            file_system_of(self.source),
            "delete",
            f"Failed to delete directory: {self.destination}",
            self._delete_copy,
            timeout_s=self._warehouse.settings.file_move_timeout_s,
            setting=MOVE_TIMEOUT,
        )

    def delete_source(self) -> None:
        """Deletes the objects that were copied, after the commit. Those that were written since stay, and the log says
        so. Raises MetaException."""

        def delete() -> int:
            file_system, path = self._file_systems.open(self.source.location)
            files: list[str] = []
            markers: list[str] = []
            left = 0
            for each in remote_files.objects_below(file_system, path):
                if self._copied.get(each.suffix) == each.tag:
                    (markers if each.is_marker else files).append(each.suffix)
                else:
                    left += 1
            # Markers last, the deepest first: some stores delete no directory that has something.
            markers.sort(key=len, reverse=True)
            remote_files.delete_objects(file_system, path, files + markers)
            return left

        left = self._warehouse.ask(
            file_system_of(self.source),
            "delete",
            f"Failed to delete directory: {self.source}",
            delete,
            timeout_s=self._warehouse.settings.file_move_timeout_s,
            setting=MOVE_TIMEOUT,
        )
        if left:
            _LOG.warning(
                "%d objects at %s stay: they were written while the directory was moved to %s",
                left,
                self.source,
                self.destination,
            )

    def _work(self, timeout_s: float, setting: str) -> None:
        with self._lock:
            if self._is_given_up:
                raise GivenUp("the write has failed")
            self._is_copying = True
        try:
            self._copy_changed(time.monotonic() + timeout_s * _OF_THE_TIME, f"{timeout_s:g} s ({setting})")
        finally:
            with self._lock:
                self._is_copying = False
                is_given_up = self._is_given_up
            if is_given_up:
                self._delete_copy()

    def _copy_changed(self, deadline_s: float, limit: str) -> None:
        file_system, source = self._file_systems.open(self.source.location)
        goal = self._file_systems.open(self.destination.location)[1]
        found = {each.suffix: each for each in remote_files.objects_below(file_system, source)}
        changed = [each for each in found.values() if self._copied.get(each.suffix) != each.tag]
        for start in range(0, len(changed), _COPIED_AT_ONCE):
            if self._is_given_up:
                raise GivenUp("the write has failed")
            if time.monotonic() > deadline_s:
                raise TimeoutError(
                    f"it takes longer than {limit}; {start} of {len(changed)} objects are copied, and go again"
                )
            some = changed[start : start + _COPIED_AT_ONCE]
            self._copied.update((each.suffix, "") for each in some)  # to be deleted even if copying them fails
            remote_files.copy_objects(file_system, source, goal, some)
            self._copied.update((each.suffix, each.tag) for each in some)
        gone = sorted(self._copied.keys() - found.keys(), key=len, reverse=True)
        remote_files.delete_objects(file_system, goal, gone)
        for suffix in gone:
            del self._copied[suffix]

    def _delete_copy(self) -> None:
        file_system, path = self._file_systems.open(self.destination.location)
        marker = remote_files.marker_suffix(file_system)
        # The longest first: what is in a directory goes before its marker.
        remote_files.delete_objects(file_system, path, sorted({*self._copied, marker}, key=len, reverse=True))
        self._copied.clear()
