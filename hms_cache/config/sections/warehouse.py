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
"""File systems for which there is a Hadoop driver: from Hadoop, cloud providers, Alluxio, JuiceFS and Databricks."""


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/|file:")
"""The beginning of a URI; ``hdfs:/path`` is one, on the default file system of the scheme."""


def _location_uri(text: str, default_file_system: str) -> str:
    """Converts a directory to the location that clients see, as Hadoop writes it.

    A path is on the default file system; a relative path, or one that begins with ``~``, is on this machine. Nothing is
    percent-encoded, as in Hadoop's paths.
    """
    if not text or _SCHEME.match(text):
        return text.rstrip("/")
    if text.startswith("/"):
        return f"{default_file_system.rstrip('/')}{Path(text)}"
    return f"file:{Path(text).expanduser().absolute()}"


class WarehouseSettings(Section):
    """Directories and files of databases, tables and partitions."""

    default_file_system: str = setting("file:///", site_keys=("fs.defaultFS", "fs.default.name"))
    """File system of locations without a scheme."""
    directory: str = setting("warehouse", site_keys=metastore_keys("warehouse.dir"))
    """Directory of managed tables: a path, or a URI of any file system that fsspec supports."""
    external_directory: str = setting("", site_keys=metastore_keys("warehouse.external.dir"))
    """Directory of external tables without a location. Empty: the directory of managed tables."""
    files: Literal["manage", "leave"] = setting("manage")
    """manage: create, move and delete directories as Hive does. leave: never change files; clients do this."""
    trash_interval_min: Minutes = setting(
        0.0, unit="minutes", reason="Hadoop's default.", site_keys=("fs.trash.interval",), ge=0
    )
    """If it is greater than 0, dropped data is moved to .Trash/Current of the user that this server runs as; HDFS or a
    cron job empties it after this many minutes. 0: data is deleted."""
    trash_directory: str = setting("")
    """Directory of that trash. Empty: .Trash in the user's home directory on the same file system."""
    allowed_locations: Words = setting(())
    """Directories, in addition to the two above, below which this server can create, list, move and delete files. The
    directories of databases that it created, or that existed before, are also allowed if one of these directories has
    the same scheme. Objects in other places can be registered, but their files are not touched."""
    allowed_schemes: Words = setting(KNOWN_SCHEMES, reason="All file systems for which there is a Hadoop driver.")
    """Schemes that locations of tables and partitions can have, in addition to those of the directories above. Allowing
    a scheme does not give access to a file system; only the directories named above do."""
    file_timeout_s: Seconds = setting(
        30.0, reason="Object stores answer in well under a second; clients wait for minutes.", gt=0
    )
    """Maximum time for a file system operation, also on a local file system. After that, a call that needs it fails."""
    file_wait_with_locks_s: Seconds = setting(
        0.5, reason="On SQLite, other writers wait meanwhile. Local disks and near object stores are faster.", gt=0
    )
    """Maximum time for a file system operation while a write holds database locks. After that, the write is rolled
    back, waits without locks, and runs again. A rename on a local file system can take four times as long; a move on a
    remote file system that is not an object store can take file_move_timeout_s."""
    file_move_timeout_s: Seconds = setting(
        600.0, reason="Object stores move and delete file by file, some thousand per minute.", gt=0
    )
    """Like file_timeout_s, for moving or deleting a directory on a remote file system. A deletion continues after this
    time."""
    file_threads: int = setting(32, reason="Twice the default of server.threads.", ge=1)
    """Maximum number of concurrent operations on each file system: each host, bucket, and mount of this machine. An
    operation that does not return keeps its thread."""
    listing_max_entries: int = setting(
        100_000, reason="About a second on a local disk, a hundred requests to an object store.", ge=1
    )
    """Maximum number of files and directories that are listed for the statistics of a directory (numFiles, totalSize).
    Above it, the object gets no statistics."""
    listing_timeout_s: Seconds = setting(10.0, reason="Clients wait for it, but only optimizers use the result.", gt=0)
    """Maximum time for such a listing."""
    shared_location_max_tables: int = setting(
        200_000,
        reason="Hive's schema has no index on locations. This takes about a second, while the write holds locks.",
        ge=0,
    )
    """Maximum number of tables whose locations are compared with a directory that is about to be deleted, emptied or
    moved, and that is not a table's default location, because other tables may use it. In a larger metastore, such
    directories are not touched."""
    shared_location_max_partitions: int = setting(
        2_000, reason="Each drop compares them, which takes the database some ten milliseconds.", ge=0
    )
    """Maximum number of partitions of a table whose locations are compared when some of them are dropped, truncated or
    renamed: files in a directory that other partitions use as well are kept. In a larger table, only partitions whose
    default location is there are looked for."""
    options: dict[str, dict[str, Any]] = setting({})
    """Arguments for fsspec's drivers, one table per scheme: [warehouse.options.s3a]. Values are never shown."""

    @field_validator("directory", "external_directory")
    @classmethod
    def _as_uri(cls, directory: str, info: ValidationInfo) -> str:
        if info.field_name == "directory" and not directory.strip():
            raise ValueError("must name a directory")
        return _location_uri(directory, info.data.get("default_file_system", "file:///"))

    @field_validator("allowed_locations")
    @classmethod
    def _as_uris(cls, directories: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if not all(directory.strip() for directory in directories):
            raise ValueError("each must name a directory")
        return tuple(
            _location_uri(directory, info.data.get("default_file_system", "file:///")) for directory in directories
        )

    @property
    def external_or_managed_directory(self) -> str:
        """The directory of external tables without a location."""
        return self.external_directory or self.directory
