"""What an operator decides about the warehouse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


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

    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Keyword arguments for fsspec drivers, by scheme."""
