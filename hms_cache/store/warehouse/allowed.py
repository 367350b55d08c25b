"""`AllowedLocation`: a location at which this server may make, list, move and delete files.

Every file operation takes one, so that what is opened has been judged, and is what was judged: nothing is parsed or
joined in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hms_cache.store.warehouse.locations import Location


@dataclass(frozen=True, slots=True)
class AllowedLocation:
    """A location that is, or lies in, one of the `roots`. Only `Warehouse.allow` and the methods here make one."""

    location: Location

    roots: tuple[Location, ...]
    """The directories of its file system below which files may be touched."""

    @property
    def is_local(self) -> bool:
        """Whether it lies on a file system of this machine."""
        return self.location.scheme == "file"

    @property
    def root_paths(self) -> tuple[str, ...]:
        """The paths of the roots."""
        return tuple(root.path for root in self.roots)

    @property
    def is_below_root(self) -> bool:
        """Whether it lies strictly inside a root and is none itself: only such a directory may be deleted or moved."""
        return self.location not in self.roots and not self.location.is_root

    @property
    def parent(self) -> AllowedLocation | None:
        """The directory it lies in; None where that is not allowed by its name."""
        return allow_by_name(self.location.parent, self.roots)

    def child(self, *names: str) -> AllowedLocation:
        """A location below. Raises MetaException for what is not a name of one directory or file."""
        return AllowedLocation(self.location.child(*names), self.roots)

    def __str__(self) -> str:
        return str(self.location)


def allow_by_name(location: Location, roots: Iterable[Location]) -> AllowedLocation | None:
    """The location as one that is allowed if it is or lies in one of the roots, else None.

    By its name alone: no file system is touched. On a local one it must also hold of the place to which symbolic links
    lead, which `Warehouse.allow` looks at, and each operation of `local_files` once more.
    """
    of_this = tuple(dict.fromkeys(root for root in roots if root.is_same_file_system(location)))
    if not any(location == root or location.is_inside(root) for root in of_this):
        return None
    return AllowedLocation(location, of_this)
