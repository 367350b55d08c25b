"""What an operator decides about the warehouse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hms_cache.config.sections.warehouse import KNOWN_SCHEMES


@dataclass(frozen=True, slots=True)
class WarehouseSettings:
    """Where data goes by default, and whether this program touches files at all."""

    directory: str = "/user/hive/warehouse"
    """`metastore.warehouse.dir`: databases and managed tables."""

    external_directory: str = ""
    """`metastore.warehouse.external.dir`: databases' default locations and external tables; empty: as `directory`."""

    files: Literal["manage", "leave"] = "manage"
    """`manage`: make, move and delete directories as Hive does. `leave`: never touch a file system."""

    default_file_system: str = "file:///"
    """`fs.defaultFS`: what a location without a scheme lies on."""

    trash_interval_min: int = 0
    """`fs.trash.interval`: above 0, dropped data is moved to the trash and not deleted. Emptying it is Hadoop's job."""

    trash_directory: str = ""
    """Where the trash is; empty: `<home>/.Trash`, with the home directory that the scheme's file system has."""

    allowed_locations: tuple[str, ...] = ()
    """Directories beside the two above below which files may be made, listed, moved and deleted."""

    allowed_schemes: tuple[str, ...] = KNOWN_SCHEMES
    """Schemes of locations that clients may register; those of the directories above always are."""

    file_timeout_s: float = 30.0
    """Longest wait for an operation on a file system."""

    file_wait_with_locks_s: float = 0.5
    """Longest wait for one while a write holds locks of the database; then it goes on waiting without them."""

    file_move_timeout_s: float = 600.0
    """The same for moving and deleting a directory, which object stores do file by file."""

    file_threads: int = 32
    """Operations on each file system at once; one that is not answered keeps its thread."""

    listing_max_entries: int = 100_000
    """Most files and directories that are looked at for the statistics of a directory."""

    listing_timeout_s: float = 10.0
    """Longest time spent on that."""

    shared_location_max_tables: int = 200_000
    """Most tables whose locations are compared with that of something that is dropped, emptied or moved."""

    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Keyword arguments for fsspec drivers, by scheme."""
