"""The file changes of one write: made before the commit and undone if it fails, deletions after it."""

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
    """Where to register what is done when a transaction's fate is known; neither is done when it stays unknown."""

    def after_commit(self, action: Callable[[], None]) -> None:
        """Do this after the commit, in order of registration."""
        ...

    def on_rollback(self, action: Callable[[], None], *, under_locks: bool = False) -> None:
        """Do this after a rollback, last registered first; `under_locks`: before it where that is possible."""
        ...


class WarehouseChanges:
    """Changes directories on behalf of one attempt of a write transaction; belongs to that attempt and its thread.

    A failed deletion after the commit is logged by the transaction and leaves files behind; the commit stands.
    """

    def __init__(self, warehouse: Warehouse, transaction: TransactionOutcome) -> None:
        self._warehouse = warehouse
        self._transaction = transaction

    def make_directory(self, location: AllowedLocation) -> bool:
        """Makes a directory now; False when it was there. Undone by removing it if it is still empty.

        Raises MetaException.
        """
        made = self._warehouse.make_directory(location)
        if made:
            # Who waits for the name would take the directory for one that stays.
            self._transaction.on_rollback(
                lambda: self._warehouse.remove_empty_directory(location), under_locks=location.is_local
            )
            crash_point(CrashPoint.DIRECTORY_MADE)
        return made

    def make_directories(self, locations: Sequence[AllowedLocation]) -> list[bool]:
        """As `make_directory` of each, in order; many within one time limit. Raises MetaException."""
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
        """Moves a directory now; undone by moving it back. `origin`: see `MoveRecords.begin`. Raises MetaException.

        One of an object store is copied now and deleted at the old place after the commit, see `object_moves`. On a
        local file system a record tells of it until the write's fate is known: `resume_rename`. It stays when the
        directory cannot be moved back.
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
                return  # the database had ended the transaction, and another write has finished the move
            self._warehouse.rename_directory(destination, source, is_undone_late=False)
            is_undone = True

        if record is not None:
            self._transaction.on_rollback(forget, under_locks=True)
            self._transaction.after_commit(forget)
            crash_point(CrashPoint.MOVE_RECORDED)
        self._warehouse.rename_directory(source, destination)
        # Who waits for the row would find the directory neither here nor there, and give the row another place.
        self._transaction.on_rollback(move_back, under_locks=True)
        crash_point(CrashPoint.DIRECTORY_MOVED)

    def _copy_objects(self, source: AllowedLocation, destination: AllowedLocation) -> ObjectMove:
        waits = current_waits()
        move = self._warehouse.object_move(source, destination)
        held = None if waits is None else waits.held(move.question)
        if isinstance(held, ObjectMove):
            move = held
        else:
            self._warehouse.require_free(source, destination)
            move.claim()
            if waits is not None:
                waits.hold(move.question, move)
        # From here until a rollback nobody knows whether the destination is what the row names.
        move.is_settled = True
        self._transaction.on_rollback(move.unsettle if waits is not None else move.undo)
        move.copy()
        if move is held:
            move.catch_up()
        return move

    def is_taken(self, source: AllowedLocation, destination: AllowedLocation) -> bool:
        """Whether something is at the destination of a move, other than what this write has moved there itself."""
        waits = current_waits()
        if waits is not None and self._warehouse.is_moved_by_copying(source):
            move = self._warehouse.object_move(source, destination)
            if waits.held(move.question) is not None:
                return False
        return self._warehouse.exists(destination)

    def resume_rename(self, source: AllowedLocation, destination: AllowedLocation) -> bool:
        """Whether a server that died before its commit has moved this directory already.

        An empty destination that it left is removed. A rollback leaves the directory where it is, with its record:
        another repeat finds it. The caller holds the lock on the row of what is moved. Raises MetaException.
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
        """Plans to delete the record of a move that was cut short and is finished by this write."""
        self._transaction.after_commit(lambda: self._warehouse.delete_file(record))

    def remove_interrupted_copy(self, destination: AllowedLocation) -> None:
        """Removes what a server that died before its commit has copied to this destination, and nothing else.

        The caller holds the lock on the row of what is copied, and knows that no row has the destination. Raises
        MetaException.
        """
        place = self._warehouse.move_records.place_of_copy(destination)
        if place is None:
            return
        if self.resume_rename(place, destination):
            self._warehouse.delete_directory(destination, skip_trash=False)
        self._warehouse.delete_directory(place, skip_trash=True)

    def copy_directory(self, source: AllowedLocation, destination: AllowedLocation) -> None:
        """Copies a directory now; undone by deleting the copy. Raises MetaException.

        On a local file system the copy is made under a hidden name and renamed when it is whole. On others it is
        made in place, and a server that dies meanwhile leaves it there; in object stores without locks, see
        `object_moves`.
        """
        if self._warehouse.is_moved_by_copying(source):
            self._copy_objects(source, destination)
            crash_point(CrashPoint.DIRECTORY_COPIED)
            return
        place = self._warehouse.move_records.place_of_copy(destination) or destination
        self._transaction.on_rollback(lambda: self._warehouse.delete_directory(place, skip_trash=True))
        self._warehouse.copy_directory(source, place)
        crash_point(CrashPoint.DIRECTORY_COPIED)
        if place is not destination:
            self.rename_directory(place, destination)

    def write_file(self, location: AllowedLocation, content: bytes) -> None:
        """Writes a small file now, its directory included; undone by deleting both. Raises MetaException."""
        is_directory_made = self._warehouse.write_file(location, content)
        parent = location.parent
        if is_directory_made and parent is not None:
            self._transaction.on_rollback(lambda: self._warehouse.remove_empty_directory(parent))
        self._transaction.on_rollback(lambda: self._warehouse.delete_file(location))
        crash_point(CrashPoint.FILE_WRITTEN)

    def delete_directories_after_commit(self, locations: Sequence[AllowedLocation], *, skip_trash: bool) -> None:
        """Plans the deletion of directories with all in them."""

        def delete() -> None:
            self._warehouse.delete_directories(locations, skip_trash=skip_trash)
            crash_point(CrashPoint.DELETED)

        if locations:
            self._transaction.after_commit(delete)

    def delete_contents_after_commit(
        self, location: AllowedLocation, *, skip_trash: bool, failed: Callable[[MetaException], None] | None = None
    ) -> None:
        """Plans the deletion of a directory's visible entries. `failed` is told if some of them are left."""

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
        """Plans to remove, in order, those of the directories in which nothing is then."""
        if locations:
            self._transaction.after_commit(lambda: self._warehouse.remove_empty_directories(locations))
