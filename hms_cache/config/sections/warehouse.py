"""Directories and files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationInfo, field_validator

from hms_cache.config.quantities import Minutes, Seconds, Words
from hms_cache.config.setting import Section, metastore_keys, setting

KNOWN_SCHEMES = (
    "file",
    "hdfs",
    "webhdfs",
    "swebhdfs",
    "viewfs",
    "s3",
    "s3a",
    "s3n",
    "gs",
    "abfs",
    "abfss",
    "wasb",
    "wasbs",
    "adl",
    "ofs",
    "o3fs",
    "oss",
    "obs",
    "cosn",
    "alluxio",
    "bos",
    "chdfs",
    "cos",
    "dbfs",
    "jfs",
    "oci",
    "tos",
)
"""File systems that Hadoop has a driver for: its own, those of cloud providers, Alluxio, JuiceFS and Databricks."""


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/|file:")
"""How a URI begins; ``hdfs:/path`` is one, on the default file system of the scheme."""


def _location_uri(text: str, default_file_system: str) -> str:
    """A directory as the location that clients get to see, as Hadoop writes it.

    A path lies on the default file system; one that is relative, or begins with ``~``, is of this machine. Nothing is
    percent-encoded: Hadoop's paths are not.
    """
    if not text or _SCHEME.match(text):
        return text.rstrip("/")
    if text.startswith("/"):
        return f"{default_file_system.rstrip('/')}{Path(text)}"
    return f"file:{Path(text).expanduser().absolute()}"


class WarehouseSettings(Section):
    """Directories and files of databases, tables and partitions."""

    default_file_system: str = setting(
        "file:///", "File system of locations that name none.", site_keys=("fs.defaultFS", "fs.default.name")
    )
    directory: str = setting(
        "warehouse",
        "Where managed tables live: a path, or a URI of any file system that fsspec knows.",
        site_keys=metastore_keys("warehouse.dir"),
    )
    external_directory: str = setting(
        "",
        "Where external tables without a location live. Empty: with the managed ones.",
        site_keys=metastore_keys("warehouse.external.dir"),
    )
    files: Literal["manage", "leave"] = setting(
        "manage", "manage: make, move and delete directories as Hive does. leave: never touch a file; clients do."
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
    allowed_locations: Words = setting(
        (),
        "Directories, beside the two above, below which this server may make, list, move and delete files. The"
        " directories of databases that it made, or that were there before, are allowed, too, if one of these"
        " directories has the same scheme. Elsewhere objects can be registered, but their files are left alone.",
    )
    allowed_schemes: Words = setting(
        KNOWN_SCHEMES,
        "Schemes that the locations of tables and partitions may have, beside those of the directories above."
        " To allow a scheme opens no file system: only directories named above do.",
        reason="The file systems that Hadoop has drivers for, of its own or from their makers.",
    )
    file_timeout_s: Seconds = setting(
        30.0,
        "Longest wait for an operation on a file system, a local one included; a call that needs it fails after that.",
        reason="Object stores answer in well under a second; clients wait for minutes.",
        gt=0,
    )
    file_wait_with_locks_s: Seconds = setting(
        0.5,
        "Longest wait for an operation on a file system while a write holds locks of the database. After that the write"
        " is rolled back, waits without them, and is run again. A rename on a local file system may take four times"
        " that, a move on a remote one other than S3 file_move_timeout_s.",
        reason="On SQLite other writers wait meanwhile. Local disks and near object stores answer sooner.",
        gt=0,
    )
    file_move_timeout_s: Seconds = setting(
        600.0,
        "The same as file_timeout_s for moving a directory of a remote file system, and for deleting one. A deletion"
        " goes on after that.",
        reason="Object stores move and delete file by file, some thousand a minute.",
        gt=0,
    )
    file_threads: int = setting(
        32,
        "Most operations at once on each file system: each host, bucket, and mount of this machine. One that is not"
        " answered keeps its thread.",
        reason="Twice the calls that reach the database at once.",
        ge=1,
    )
    listing_max_entries: int = setting(
        100_000,
        "Most files and directories that are looked at for the statistics of a directory (numFiles, totalSize). Above"
        " that the object gets none.",
        reason="About a second on a local disk, a hundred requests to an object store.",
        ge=1,
    )
    listing_timeout_s: Seconds = setting(
        10.0, "Longest time for that.", reason="Clients wait for it; only optimizers need it.", gt=0
    )
    shared_location_max_tables: int = setting(
        200_000,
        "Most tables whose locations are compared with a directory that is to be deleted, emptied or moved and is not"
        " where a table's names put it: others may lie there, too. In a larger metastore such directories are left"
        " alone.",
        reason="Hive's schema has no index over locations. About a second, while the write holds its locks.",
        ge=0,
    )
    options: dict[str, dict[str, Any]] = setting(
        {}, "Arguments for fsspec's drivers, a table per scheme: [warehouse.options.s3a]. Values are never shown."
    )

    @field_validator("directory", "external_directory")
    @classmethod
    def _as_uri(cls, directory: str, info: ValidationInfo) -> str:
        return _location_uri(directory, info.data.get("default_file_system", "file:///"))

    @field_validator("allowed_locations")
    @classmethod
    def _as_uris(cls, directories: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        return tuple(
            _location_uri(directory, info.data.get("default_file_system", "file:///")) for directory in directories
        )

    @property
    def external_or_managed_directory(self) -> str:
        """Where an external table without a location goes."""
        return self.external_directory or self.directory
