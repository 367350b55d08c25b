"""Selects the file systems of fsspec that are object stores, whose directories are handled by their keys."""

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
"""By fsspec's name, with an attribute that the driver must have: other drivers may use the same name."""


def key_store_of(file_system: Any) -> KeyStore | None:
    """The object store of a file system; None if it has directories, or if its keys are not supported here."""
    protocol = file_system.protocol
    for name in (protocol,) if isinstance(protocol, str) else protocol:
        if name in _STORES and hasattr(file_system, _STORES[name][1]):
            return _STORES[name][0](file_system)
    return None


def store_listed_by_keys(file_system: Any) -> KeyStore | None:
    """The store whose directories are listed by keys; None if the driver's own listings are correct.

    adlfs and gcsfs list markers as files or list directories twice, and adlfs reads everything with the directory's
    name as a prefix.
    """
    store = key_store_of(file_system)
    return None if isinstance(store, S3Keys) else store
