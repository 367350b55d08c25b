"""The file changes of one store transaction: made before the commit and undone if it fails, deletions after it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING

from hms_cache.store.warehouse.locations import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

if TYPE_CHECKING:
    from hms_cache.store.warehouse.warehouse import Warehouse

_LOG = logging.getLogger(__name__)


class WarehouseChanges:
    """Use as a context manager around the whole store transaction, retries included.

    On a normal exit the planned deletions are carried out (each failure is logged: the commit stands); on an exception
    what was made or moved is put back, unless `outcome_unknown` was called. A function that may be run
    again calls `restart` first. Used by one thread.
    """

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._undo: list[tuple[str, Callable[[], None]]] = []
        self._deletions: list[tuple[str, Callable[[], None]]] = []
        self._is_outcome_unknown = False

    def __enter__(self) -> WarehouseChanges:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._carry_out(self._deletions)
        elif not self._is_outcome_unknown:
            self.restart()

    def make_directory(self, location: Location) -> bool:
        """Makes a directory now; False when it was there. Raises MetaException."""
        made = self._warehouse.make_directory(location)
        if made:
            self._undo.append((f"remove {location}", lambda: self._warehouse.remove_empty_directory(location)))
        return made

    def rename_directory(self, source: Location, destination: Location) -> None:
        """Moves a directory now. Raises MetaException."""
        if not self._warehouse.manages_files:
            return
        self._warehouse.rename_directory(source, destination)
        self._undo.append(
            (f"move {destination} back to {source}", lambda: self._warehouse.rename_directory(destination, source))
        )

    def delete_directory_after_commit(self, location: Location, *, skip_trash: bool) -> None:
        """Plans the deletion of a directory."""
        self._deletions.append(
            (f"delete {location}", lambda: self._warehouse.delete_directory(location, skip_trash=skip_trash))
        )

    def delete_contents_after_commit(self, location: Location, *, skip_trash: bool) -> None:
        """Plans the deletion of a directory's visible entries."""
        self._deletions.append(
            (f"empty {location}", lambda: self._warehouse.delete_contents(location, skip_trash=skip_trash))
        )

    def outcome_unknown(self) -> None:
        """Nobody knows whether the commit happened: neither undo nor delete, as either could lose data."""
        self._is_outcome_unknown = True

    def restart(self) -> None:
        """Puts back what was made and forgets what was planned."""
        self._carry_out(reversed(self._undo))
        self._undo.clear()
        self._deletions.clear()

    @staticmethod
    def _carry_out(actions: Iterable[tuple[str, Callable[[], None]]]) -> None:
        for what, action in actions:
            try:
                action()
            except MetaException as error:
                _LOG.error("could not %s: %s", what, error.message)
