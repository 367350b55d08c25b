"""The stores that handlers use, each behind its contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hms_cache.store.auxiliary.auxiliary_store import AuxiliaryStores
from hms_cache.store.contract.raw_store import RawStore


@dataclass(frozen=True, slots=True)
class Stores:
    """Built once by `app`. `raw` is the cached store, or the object store itself when the cache is off."""

    raw: RawStore
    transactions: Any
    notifications: Any
    site: Any
    auxiliary: AuxiliaryStores
