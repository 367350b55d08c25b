"""Which file systems of fsspec are object stores whose directories are handled by their keys."""

from __future__ import annotations

from typing import Any

from hms_cache.store.warehouse.azure_keys import AzureKeys
from hms_cache.store.warehouse.google_keys import GoogleKeys
from hms_cache.store.warehouse.keys import KeyStore
from hms_cache.store.warehouse.s3_keys import S3Keys

_STORES: dict[str, tuple[type[KeyStore], str]] = {
    "s3": (S3Keys, "call_s3"),
    "abfs": (AzureKeys, "service_client"),
    "gcs": (GoogleKeys, "call"),
}
"""By what fsspec calls them, with what the driver has to have: other drivers may take the same name."""


def key_store_of(file_system: Any) -> KeyStore | None:
    """The store of objects that a file system is; None where it has directories, or its keys are not known here."""
    protocol = file_system.protocol
    for name in (protocol,) if isinstance(protocol, str) else protocol:
        if name in _STORES and hasattr(file_system, _STORES[name][1]):
            return _STORES[name][0](file_system)
    return None


def store_listed_by_keys(file_system: Any) -> KeyStore | None:
    """The store whose directories are listed by its keys; None where the driver's own listings are right.

    adlfs and gcsfs list markers as files or directories twice, and adlfs reads all whose names begin with that of the
    directory.
    """
    store = key_store_of(file_system)
    return None if isinstance(store, S3Keys) else store
