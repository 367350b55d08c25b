"""Moves directories of object stores: copies without holding locks, and deletes the source after the commit.

Object stores cannot rename: a move copies object by object, which may take minutes, while locks in the database would
block other writers (on SQLite all of them). So the destination is first claimed under the locks, by creating its
marker. If the copy takes longer than a write may wait with locks, it is left to its thread; the write is rolled back,
waits, and runs again (`waits`). Then it lists the source again and copies objects that have been added. The source is
deleted after the commit, and only those of its objects that are unchanged since they were copied.

A write that fails deletes its copy; the source is complete. After a commit with an unknown outcome both stay. A server
that dies leaves a copy or a source that no row names; `hms-cache check` finds both.
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
"""Objects copied between checks of the time limit."""

_OF_THE_TIME = 0.9
"""Share of the time limit after which copying stops by itself, so that the caller gets the reason."""


class CopyCancelled(Exception):
    """The write that requested the copy has failed."""


class ObjectMove:
    """The move of a directory of an object store within its bucket, over all attempts of one write."""

    def __init__(self, warehouse: Warehouse, source: AllowedLocation, destination: AllowedLocation) -> None:
        self._warehouse = warehouse
        self._file_systems = warehouse.file_systems
        self.source = source
        self.destination = destination
        self.is_settled = False
        """Whether the copy stays when the write ends: it is committed, or the outcome is unknown."""

        self._copied: dict[str, str] = {}
        """Tags of all objects copied so far, by the suffix of their key."""

        self._lock = threading.Lock()
        """Guards `_is_copying` and `_is_given_up`."""

        self._is_copying = self._is_given_up = False

    @property
    def key(self) -> tuple[str, str, str]:
        """Identifies the copy among the operations of the write."""
        return "copy", str(self.source), str(self.destination)

    def claim(self) -> None:
        """Creates the marker of the destination while the caller holds the lock on the row that gets the location.

        Therefore it is not left to another attempt. Raises MetaException.
        """
        settings = self._warehouse.settings
        self._warehouse.run_operation(
            file_system_of(self.source),
            "create",
            f"Unable to rename: {self.source} to: {self.destination}",
            lambda: remote_files.make_directory(*self._file_systems.open(self.destination.location)),
            timeout_s=settings.file_timeout_s,
            if_late=lambda _: self.undo(),
        )

    def copy(self) -> None:
        """Copies what has not been copied yet, within `file_move_timeout_s`. Raises MetaException, StillWaiting."""
        self._run_operation(self._warehouse.settings.file_move_timeout_s, MOVE_TIMEOUT, continues_in_next_attempt=True)

    def catch_up(self) -> None:
        """Copies what has been added to the source since, with locks held, within `file_timeout_s`. Raises
        MetaException."""
        self._run_operation(self._warehouse.settings.file_timeout_s, TIMEOUT, continues_in_next_attempt=False)

    def _run_operation(self, timeout_s: float, setting: str, *, continues_in_next_attempt: bool) -> None:
        self._warehouse.run_operation(
            file_system_of(self.source),
            "move",
            f"Unable to rename: {self.source} to: {self.destination}",
            lambda: self._work(timeout_s, setting),
            timeout_s=timeout_s,
            setting=setting,
            key=self.key if continues_in_next_attempt else None,
        )

    def roll_back(self) -> None:
        """The attempt was rolled back: unless another one follows, the copy is deleted."""
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
        """Deletes the copy. A thread that is still copying does so itself when it stops. Raises MetaException."""
        with self._lock:
            self._is_given_up = True
            if self._is_copying:
                return
        self._warehouse.run_operation(
            file_system_of(self.source),
            "delete",
            f"Failed to delete directory: {self.destination}",
            self._delete_copy,
            timeout_s=self._warehouse.settings.file_move_timeout_s,
            setting=MOVE_TIMEOUT,
        )

    def delete_source(self) -> None:
        """Deletes the copied objects from the source after the commit. Objects written since then stay, which is
        logged. Raises MetaException."""

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
            # Markers last, the deepest first: some stores do not delete a directory that has contents.
            markers.sort(key=len, reverse=True)
            remote_files.delete_objects(file_system, path, files + markers)
            return left

        left = self._warehouse.run_operation(
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
                raise CopyCancelled("the write has failed")
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
                raise CopyCancelled("the write has failed")
            if time.monotonic() > deadline_s:
                raise TimeoutError(
                    f"it takes longer than {limit}; {start} of {len(changed)} objects are copied, and go again"
                )
            some = changed[start : start + _COPIED_AT_ONCE]
            self._copied.update((each.suffix, "") for each in some)  # deleted on a rollback even if copying them fails
            remote_files.copy_objects(file_system, source, goal, some)
            self._copied.update((each.suffix, each.tag) for each in some)
        gone = sorted(self._copied.keys() - found.keys(), key=len, reverse=True)
        remote_files.delete_objects(file_system, goal, gone)
        for suffix in gone:
            del self._copied[suffix]

    def _delete_copy(self) -> None:
        file_system, path = self._file_systems.open(self.destination.location)
        marker = remote_files.marker_suffix(file_system)
        # The longest keys first: the contents of a directory are deleted before its marker.
        remote_files.delete_objects(file_system, path, sorted({*self._copied, marker}, key=len, reverse=True))
        self._copied.clear()
