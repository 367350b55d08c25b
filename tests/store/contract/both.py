"""The reads and writes of a server together, as a client uses them."""

from __future__ import annotations

from dataclasses import dataclass

from hms_cache.store.contract.metadata import MetadataReads, MetadataWrites


@dataclass(frozen=True, slots=True)
class Both:
    """Reads, perhaps of a cache, and writes of the store under it."""

    reads: MetadataReads
    writes: MetadataWrites
