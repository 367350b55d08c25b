"""Directories and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import field_validator

from hms_cache.config.quantities import Minutes
from hms_cache.config.setting import Section, setting


def _location_uri(text: str) -> str:
    """A directory as the location that clients get to see, as Hadoop writes it: a path is a local one, made absolute.

    Nothing is percent-encoded: Hadoop's paths are not.
    """
    if not text or "://" in text or text.startswith("file:"):
        return text.rstrip("/")
    return f"file:{Path(text).expanduser().absolute()}"


class WarehouseSettings(Section):
    """Directories and files of databases, tables and partitions."""

    directory: str = setting(
        "warehouse",
        "Where managed tables live: a path, or a URI of any file system that fsspec knows.",
        site_keys=("metastore.warehouse.dir", "hive.metastore.warehouse.dir"),
    )
    external_directory: str = setting(
        "",
        "Where external tables without a location live. Empty: with the managed ones.",
        site_keys=("metastore.warehouse.external.dir", "hive.metastore.warehouse.external.dir"),
    )
    files: Literal["manage", "leave"] = setting(
        "manage",
        "manage: make, move and delete directories as Hive does. leave: never touch a file; clients do.",
    )
    default_file_system: str = setting(
        "file:///",
        "File system of locations that name none.",
        site_keys=("fs.defaultFS", "fs.default.name"),
    )
    trash_interval_min: Minutes = setting(
        0.0,
        "Above 0, dropped data goes to .Trash/Current of the user this server runs as, where HDFS or a cron job"
        " empties it"
        " after so many minutes. 0: it is deleted.",
        unit="minutes",
        reason="Hadoop's default.",
        site_keys=("fs.trash.interval",),
        ge=0,
    )
    trash_directory: str = setting(
        "", "Where that trash is. Empty: .Trash in the user's home directory on that file system."
    )
    options: dict[str, dict[str, Any]] = setting(
        {}, "Arguments for fsspec's drivers, a table per scheme: [warehouse.options.s3a]. Values are never shown."
    )

    @field_validator("directory", "external_directory")
    @classmethod
    def _as_uri(cls, directory: str) -> str:
        return _location_uri(directory)

    @property
    def external_or_managed_directory(self) -> str:
        """Where an external table without a location goes."""
        return self.external_directory or self.directory
