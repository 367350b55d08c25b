"""`AllowedLocation`: a location at which this server may create, list, move and delete files.

Every file operation takes one, so that the location that is opened is the one that was checked: nothing is parsed or
joined in between.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable
from operator import attrgetter

from hms_cache.store.warehouse.locations import Location
from hms_cache.values import frozen

_PATH = attrgetter("path")


@frozen
class AllowedLocation:
    """A location that is one of the `roots` or lies inside one. Created only by `Warehouse.allow` and the methods
    here."""

    location: Location

    roots: tuple[Location, ...]
    """The directories of its file system below which files may be changed."""

    def __hash__(self) -> int:
        # Without the roots: there may be thousands, and a set may contain thousands of locations.
        return hash(self.location)

    @property
    def is_local(self) -> bool:
        """Whether it is on a file system of this machine."""
        return self.location.scheme == "file"

    @property
    def root_paths(self) -> tuple[str, ...]:
        """The paths of the roots."""
        return tuple(map(_PATH, self.roots))

    @property
    def is_below_root(self) -> bool:
        """Whether it is strictly inside a root and not a root itself: only such directories may be deleted or moved."""
        return self.location.path not in self.root_paths and not self.location.is_root

    @property
    def parent(self) -> AllowedLocation | None:
        """The parent directory; None if that is not allowed by its name."""
        above, paths = self.location.parent, self.root_paths
        return AllowedLocation(above, self.roots) if above.path in paths or _lies_below(above.path, paths) else None

    def child(self, *names: str) -> AllowedLocation:
        """A location below. Raises MetaException for an invalid name of a directory or file."""
        return AllowedLocation(self.location.child(*names), self.roots)

    def __str__(self) -> str:
        return str(self.location)


def allow_by_names(locations: Iterable[Location], roots: Iterable[Location]) -> list[AllowedLocation | None]:
    """For each location, in order: an `AllowedLocation` if it is one of the roots or inside one, otherwise None.

    Decided by names only, without access to a file system. On a local file system the target of symbolic links must be
    allowed as well: `Warehouse.allow` checks that, and each operation of `local_files` checks it again. The roots are
    searched once per file system, not per location: a metastore may have thousands of databases.
    """
    every = tuple(dict.fromkeys(roots))
    by_file_system: dict[tuple[str, str], tuple[tuple[Location, ...], frozenset[str]]] = {}
    found: list[AllowedLocation | None] = []
    for location in locations:
        key = (location.scheme, location.authority)
        if key not in by_file_system:
            of_this = tuple(root for root in every if root.is_same_file_system(location))
            by_file_system[key] = (of_this, frozenset(root.path for root in of_this))
        of_this, paths = by_file_system[key]
        is_allowed = _lies_below(location.path, paths) or (location.path in paths and location in of_this)
        found.append(AllowedLocation(location, of_this) if is_allowed else None)
    return found


def _lies_below(path: str, roots: Collection[str]) -> bool:
    while path not in ("/", ""):
        path = posixpath.dirname(path)
        if path in roots:
            return True
    return False
