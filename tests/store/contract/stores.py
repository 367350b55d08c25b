"""The stores that the contract suite runs over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from hms_cache.store.context import StoreContext
from hms_cache.store.contract.raw_store import RawStore
from hms_cache.store.object_store import ObjectStore


@contextmanager
def object_store(context: StoreContext) -> Iterator[RawStore]:
    """The store over the database."""
    yield ObjectStore(context)


STORES: dict[str, Callable[[StoreContext], AbstractContextManager[RawStore]]] = {"object": object_store}
