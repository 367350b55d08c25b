"""Calls to a `TxnStore` that are collected and share transactions, like those of a server's clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any

from hms_cache.server.thread_pool import Group, ThreadPool
from hms_cache.store.combined_calls import CombinedCalls
from hms_cache.store.txn_store import TxnStore
from tests.servers import MAX_WAIT_S

Member = tuple[Any, "Future[Any]"]
"""A request, and who waits for its outcome."""


class CombiningStore:
    """The store's methods that can share a transaction. Thread-safe."""

    def __init__(self, store: TxnStore, pool: ThreadPool) -> None:
        self._store = store
        self._pool = pool
        self._groups: dict[str, Group] = {}
        for combined in store.combined.values():
            run = partial(execute, combined)
            self._groups.setdefault(combined.name, Group(combined.name, combined.most, run))

    def submit(self, method: str, request: Any) -> Future[Any]:
        """A call arrives."""
        outcome: Future[Any] = Future()
        alone = partial(settle, outcome, partial(getattr(self._store, method), request))
        combined = self._store.combined.get(method)
        group = self._groups[combined.name] if combined is not None and combined.admits(request) else None
        assert self._pool.submit(alone, outcome, group, (request, outcome))
        return outcome

    def __getattr__(self, method: str) -> Callable[[Any], Any]:
        return lambda request: self.submit(method, request).result(MAX_WAIT_S)


def settle(outcome: Future[Any], call: Callable[[], Any]) -> None:
    """What the call returns or raises."""
    try:
        outcome.set_result(call())
    except Exception as error:
        outcome.set_exception(error)


def execute(combined: CombinedCalls, members: Sequence[Member]) -> bool:
    """As in the server's dispatcher."""
    found = combined.execute([request for request, _ in members])
    if found is None:
        return False
    for (_, waiting), outcome in zip(members, found, strict=True):
        if isinstance(outcome, Exception):
            waiting.set_exception(outcome)
        else:
            waiting.set_result(outcome)
    return True


@contextmanager
def combining(*stores: TxnStore, threads: int = 4) -> Iterator[list[CombiningStore]]:
    """Each as a server of its own."""
    pools = [ThreadPool(threads) for _ in stores]
    for pool in pools:
        pool.start()
    try:
        yield [CombiningStore(store, pool) for store, pool in zip(stores, pools, strict=True)]
    finally:
        for pool in pools:
            pool.close()
            pool.join(MAX_WAIT_S)
