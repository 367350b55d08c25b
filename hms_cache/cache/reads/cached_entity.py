"""What the cached reads of all entities have in common."""

from __future__ import annotations

from typing import Generic, TypeVar

from hms_cache.cache.reads.reading import Reading

Store = TypeVar("Store")


class CachedEntity(Generic[Store]):
    """Reads of one entity, from memory if possible, else from the store."""

    def __init__(self, store: Store, reading: Reading) -> None:
        self._store = store
        self._reading = reading
