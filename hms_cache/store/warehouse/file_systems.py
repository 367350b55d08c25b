"""File systems by scheme, through fsspec. A scheme whose driver is not installed is a clear MetaException."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import fsspec
from fsspec.core import url_to_fs

from hms_cache.store.warehouse.locations import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

_FSSPEC_PROTOCOLS = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "abfs", "wasb": "abfs", "gs": "gcs"}
"""Hadoop's scheme names and what fsspec calls them."""


class FileSystems:
    """Opens fsspec file systems. fsspec itself keeps one instance per scheme, host and options, shared by threads."""

    def __init__(self, options: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """`options`: keyword arguments per scheme for the fsspec driver (endpoints, credentials, …)."""
        self._options = dict(options or {})

    def open(self, location: Location) -> tuple[Any, str]:
        """The file system of the location, and the location's path in it.

        Raises MetaException `No FileSystem for scheme "…"` for an unknown scheme or a driver that is not installed.
        """
        protocol = _FSSPEC_PROTOCOLS.get(location.scheme, location.scheme)
        url = Location(protocol, location.authority, location.path).url
        try:
            file_system, path = url_to_fs(url, **self._options.get(location.scheme, {}))
        except (ImportError, ValueError) as error:
            hint = ""
            if protocol in fsspec.available_protocols():
                hint = f": its Python driver cannot be loaded ({error})"
            raise MetaException(f'No FileSystem for scheme "{location.scheme}"{hint}') from error
        except OSError as error:
            raise MetaException(f"Cannot reach the file system of {location}: {error}") from error
        return file_system, path
