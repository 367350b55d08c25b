"""Opens file systems by scheme, through fsspec. If a scheme's driver is not installed, the error is a MetaException.

No location is passed to fsspec as a URL: `fsspec.open` and `url_to_fs` chain file systems at `::`, and several drivers
truncate a path at `?` or `#`. The file system is created from scheme and authority only, and the path that its driver
will use is compared with the location's before any operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import fsspec

from hms_cache.store.warehouse.locations import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

_FSSPEC_PROTOCOLS = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "abfs", "wasb": "abfs", "gs": "gcs"}
"""Hadoop's scheme names, and fsspec's names for them."""

OBJECT_STORE_SCHEMES = frozenset({*_FSSPEC_PROTOCOLS, *_FSSPEC_PROTOCOLS.values()})
"""Schemes of S3, Azure and Google, which cannot rename directories."""


@contextmanager
def driver_errors() -> Iterator[None]:
    """Converts a driver's errors to OSError: drivers of object stores raise classes of their libraries if the store
    cannot be reached. OSError and MetaException are not changed."""
    try:
        yield
    except (OSError, MetaException):
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


class FileSystems:
    """Opens fsspec file systems. fsspec keeps one instance per scheme, host and options, which threads share."""

    def __init__(self, options: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """`options`: keyword arguments for the fsspec driver (endpoints, credentials, …), by scheme."""
        self._options = dict(options or {})

    def open(self, location: Location) -> tuple[Any, str]:
        """The file system of the location, and the location's path in it. May connect, and thus take long.

        Raises MetaException `No FileSystem for scheme "…"` for an unknown scheme or a missing driver, and for a path
        that the driver would interpret differently.
        """
        protocol = _FSSPEC_PROTOCOLS.get(location.scheme, location.scheme)
        try:
            driver = fsspec.get_filesystem_class(protocol)
            host = driver._get_kwargs_from_urls(f"{protocol}://{location.authority}/")
            file_system = driver(**{**host, **self._options.get(location.scheme, {})})
        except (ImportError, ValueError) as error:
            hint = ""
            if protocol in fsspec.available_protocols():
                hint = f": its Python driver cannot be loaded ({error})"
            raise MetaException(f'No FileSystem for scheme "{location.scheme}"{hint}') from error
        except OSError as error:
            raise MetaException(f"Cannot reach the file system of {location}: {error}") from error
        _require_account(file_system, host, location)
        # Other programs write there, too: the driver's cached listings must not be used.
        file_system.invalidate_cache()
        return file_system, _path_in(file_system, protocol, location)


def path_in(file_system: Any, location: Location) -> str:
    """The path of a location on this file system. Raises MetaException for a path that the driver would interpret
    differently."""
    return _path_in(file_system, _FSSPEC_PROTOCOLS.get(location.scheme, location.scheme), location)


def _require_account(file_system: Any, host: Mapping[str, Any], location: Location) -> None:
    """Raises MetaException unless the driver uses the Azure account that the location names.

    A connection string in the options names an account itself, and the driver uses that one regardless of the location:
    data would be written to the same container of another account.
    """
    named = host.get("account_name")
    used = getattr(getattr(file_system, "service_client", None), "account_name", None)
    if named and used and named.lower() != used.lower():
        raise MetaException(f"{location} is on the account {named}, but warehouse.options has access to {used}")


def _path_in(file_system: Any, protocol: str, location: Location) -> str:
    """The driver's own path, after checking that it is the location's.

    Drivers strip the prefix of paths again in each call, which must not change the path.
    """
    path = str(file_system._strip_protocol(f"{protocol}://{location.authority}{location.path}"))
    container = location.authority.split("@")[0]  # abfss://container@account/…
    plain = location.path.strip("/")
    expected = {plain, *(f"{first}/{plain}".strip("/") for first in (location.authority, container))}
    if path.strip("/") not in expected or str(file_system._strip_protocol(path)) != path:
        raise MetaException(f"The driver of {location.scheme} cannot open {location} as it is written")
    return path
