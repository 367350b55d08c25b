"""`AllowedLocation`: a location at which this server may make, list, move and delete files.

Every file operation takes one, so that what is opened has been judged, and is what was judged: nothing is parsed or
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
    """A location that is, or lies in, one of the `roots`. Only `Warehouse.allow` and the methods here make one."""

    location: Location

    roots: tuple[Location, ...]
    """The directories of its file system below which files may be touched."""

    def __hash__(self) -> int:
        # Without the roots: there may be thousands, and thousands of locations are put into one set.
        return hash(self.location)

    @property
    def is_local(self) -> bool:
        """Whether it lies on a file system of this machine."""
        return self.location.scheme == "file"

    @property
    def root_paths(self) -> tuple[str, ...]:
        """The paths of the roots."""
        return tuple(map(_PATH, self.roots))

    @property
    def is_below_root(self) -> bool:
        """Whether it lies strictly inside a root and is none itself: only such a directory may be deleted or moved."""
        return self.location.path not in self.root_paths and not self.location.is_root

    @property
    def parent(self) -> AllowedLocation | None:
        """The directory it lies in; None where that is not allowed by its name."""
        above, paths = self.location.parent, self.root_paths
        return AllowedLocation(above, self.roots) if above.path in paths or _lies_below(above.path, paths) else None

    def child(self, *names: str) -> AllowedLocation:
        """A location below. Raises MetaException for what is not a name of one directory or file."""
        return AllowedLocation(self.location.child(*names), self.roots)

    def __str__(self) -> str:
        return str(self.location)


def allow_by_names(locations: Iterable[Location], roots: Iterable[Location]) -> list[AllowedLocation | None]:
    """The locations as ones that are allowed if they are or lie in one of the roots, else None; in order.

    By their names alone: no file system is touched. On a local one it must also hold of the place to which symbolic
    links lead, which `Warehouse.allow` looks at, and each operation of `local_files` once more. The roots are looked
    through once for each file system, not for each location: a metastore may have thousands of databases.
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
