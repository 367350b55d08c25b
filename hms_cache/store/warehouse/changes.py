"""File changes of one write: made before the commit and undone if it fails; deletions are made after the commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from hms_cache.store.crash_points import CrashPoint, crash_point
from hms_cache.store.warehouse.allowed import AllowedLocation
from hms_cache.store.warehouse.object_moves import ObjectMove
from hms_cache.store.warehouse.waits import current_waits
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

if TYPE_CHECKING:
    from hms_cache.store.warehouse.warehouse import Warehouse


class TransactionOutcome(Protocol):
    """Registers actions for the end of a transaction. None of them runs if the outcome is unknown."""

    def after_commit(self, action: Callable[[], None]) -> None:
        """Registers an action for after the commit, run in order of registration."""
        ...

    def on_rollback(self, action: Callable[[], None], *, under_locks: bool = False) -> None:
        """Registers an action for after a rollback, run in reverse order; `under_locks`: before it if possible."""
        ...


class WarehouseChanges:
    """Changes directories for one attempt of a write transaction. Belongs to this attempt and its thread.

    If a deletion after the commit fails, the transaction logs it and files remain; the commit stands.
    """

    def __init__(self, warehouse: Warehouse, transaction: TransactionOutcome) -> None:
        self._warehouse = warehouse
        self._transaction = transaction

    def make_directory(self, location: AllowedLocation) -> bool:
        """Creates a directory now. Returns False if it existed. A rollback removes it if it is still empty.

        Raises MetaException.
        """
        made = self._warehouse.make_directory(location)
        if made:
            # A call that waits for the name would take the directory for a permanent one.
            self._transaction.on_rollback(
                lambda: self._warehouse.remove_empty_directory(location), under_locks=location.is_local
            )
            crash_point(CrashPoint.DIRECTORY_MADE)
        return made

    def make_directories(self, locations: Sequence[AllowedLocation]) -> list[bool]:
        """Like `make_directory` for each, in order; many within one time limit. Raises MetaException."""
        found = self._warehouse.make_directories(locations)
        for location, made in zip(locations, found, strict=True):
            if made is True:
                self._transaction.on_rollback(
                    partial(self._warehouse.remove_empty_directory, location), under_locks=location.is_local
                )
                crash_point(CrashPoint.DIRECTORY_MADE)
        for made in found:
            if isinstance(made, MetaException):
                raise made
        return [made is True for made in found]

    def rename_directory(
        self, source: AllowedLocation, destination: AllowedLocation, *, origin: AllowedLocation | None = None
    ) -> None:
        """Moves a directory now; a rollback moves it back. `origin`: see `MoveRecords.begin`. Raises MetaException.

        In an object store it is copied now, and the source deleted after the commit, see `object_moves`. On a local
        file system a record of the move exists until the outcome of the write is known (`resume_rename`). It stays if
        the directory cannot be moved back.
        """
        if self._warehouse.is_moved_by_copying(source):
            move = self._copy_objects(source, destination)
            self._transaction.after_commit(move.delete_source)
            crash_point(CrashPoint.DIRECTORY_MOVED)
            return
        is_undone = True
        record = self._warehouse.move_records.begin(source, destination, origin)

        def forget() -> None:
            if record is not None and is_undone:
                self._warehouse.delete_file(record)

        def move_back() -> None:
            nonlocal is_undone
            is_undone = False
            if record is not None and not self._warehouse.exists(record):
                return  # the database has ended the transaction, and another write has completed the move
            self._warehouse.rename_directory(destination, source, is_undone_late=False)
            is_undone = True

        if record is not None:
            self._transaction.on_rollback(forget, under_locks=True)
            self._transaction.after_commit(forget)
            crash_point(CrashPoint.MOVE_RECORDED)
        self._warehouse.rename_directory(source, destination)
        # A call that waits for the row would find the directory at neither location, and give the row another one.
        self._transaction.on_rollback(move_back, under_locks=True)
        crash_point(CrashPoint.DIRECTORY_MOVED)

    def _copy_objects(self, source: AllowedLocation, destination: AllowedLocation) -> ObjectMove:
        waits = current_waits()
        move = self._warehouse.object_move(source, destination)
        held = None if waits is None else waits.held(move.key)
        if isinstance(held, ObjectMove):
            move = held
        else:
            self._warehouse.require_free(source, destination)
            move.claim()
            if waits is not None:
                waits.hold(move.key, move)
        # From here until a rollback it is unknown whether the row names the destination.
        move.is_settled = True
        self._transaction.on_rollback(move.roll_back if waits is not None else move.undo)
        move.copy()
        if move is held:
            move.catch_up()
        return move

    def is_in_use(self, source: AllowedLocation, destination: AllowedLocation) -> bool:
        """Whether the destination of a move exists, unless this write has created it by the same move."""
        waits = current_waits()
        if waits is not None and self._warehouse.is_moved_by_copying(source):
            move = self._warehouse.object_move(source, destination)
            if waits.held(move.key) is not None:
                return False
        return self._warehouse.exists(destination)

    def resume_rename(self, source: AllowedLocation, destination: AllowedLocation) -> bool:
        """Whether a server that died before its commit has already moved this directory.

        An empty destination that it left is removed. A rollback leaves the directory at the destination, with its
        record, so that a further attempt finds it. The caller holds the lock on the row of the moved object. Raises
        MetaException.
        """
        record = self._warehouse.move_records.interrupted(source, destination)
        if record is None:
            return False
        if self._warehouse.exists(source):
            self._warehouse.remove_empty_directory(destination)
            return False
        self._transaction.after_commit(lambda: self._warehouse.delete_file(record))
        return True

    def forget_after_commit(self, record: AllowedLocation) -> None:
        """Plans to delete the record of an interrupted move that this write completes."""
        self._transaction.after_commit(lambda: self._warehouse.delete_file(record))

    def remove_interrupted_copy(self, destination: AllowedLocation) -> None:
        """Removes what a server that died before its commit has copied for this destination, and nothing else.

        The caller holds the lock on the row of the copied object, and has checked that no row has the destination.
        Raises MetaException.
        """
        place = self._warehouse.move_records.location_of_copy(destination)
        if place is None:
            return
        if self.resume_rename(place, destination):
            self._warehouse.delete_directory(destination, skip_trash=False)
        self._warehouse.delete_directory(place, skip_trash=True)

    def copy_directory(self, source: AllowedLocation, destination: AllowedLocation) -> None:
        """Copies a directory now; a rollback deletes the copy. Raises MetaException.

        On a local file system the copy has a hidden name until it is complete, and is then renamed. On others it is
        made in place, and stays if the server dies meanwhile. In object stores it is made without locks, see
        `object_moves`.
        """
        if self._warehouse.is_moved_by_copying(source):
            self._copy_objects(source, destination)
            crash_point(CrashPoint.DIRECTORY_COPIED)
            return
        place = self._warehouse.move_records.location_of_copy(destination) or destination
        self._transaction.on_rollback(lambda: self._warehouse.delete_directory(place, skip_trash=True))
        self._warehouse.copy_directory(source, place)
        crash_point(CrashPoint.DIRECTORY_COPIED)
        if place is not destination:
            self.rename_directory(place, destination)

    def write_file(self, location: AllowedLocation, content: bytes) -> None:
        """Writes a small file now, and its directory if necessary; a rollback deletes both. Raises MetaException."""
        is_directory_made = self._warehouse.write_file(location, content)
        parent = location.parent
        if is_directory_made and parent is not None:
            self._transaction.on_rollback(lambda: self._warehouse.remove_empty_directory(parent))
        self._transaction.on_rollback(lambda: self._warehouse.delete_file(location))
        crash_point(CrashPoint.FILE_WRITTEN)

    def delete_directories_after_commit(self, locations: Sequence[AllowedLocation], *, skip_trash: bool) -> None:
        """Plans to delete directories with their contents."""

        def delete() -> None:
            self._warehouse.delete_directories(locations, skip_trash=skip_trash)
            crash_point(CrashPoint.DELETED)

        if locations:
            self._transaction.after_commit(delete)

    def delete_contents_after_commit(
        self, location: AllowedLocation, *, skip_trash: bool, failed: Callable[[MetaException], None] | None = None
    ) -> None:
        """Plans to delete a directory's visible entries. `failed` is called if some of them could not be deleted."""

        def delete() -> None:
            try:
                self._warehouse.delete_contents(location, skip_trash=skip_trash)
            except MetaException as error:
                if failed is not None:
                    failed(error)
                raise
            crash_point(CrashPoint.DELETED)

        self._transaction.after_commit(delete)

    def remove_empty_directories_after_commit(self, locations: Sequence[AllowedLocation]) -> None:
        """Plans to remove, in order, those of the directories that are empty then."""
        if locations:
            self._transaction.after_commit(lambda: self._warehouse.remove_empty_directories(locations))
