"""Clients that request the open transactions at the same moment share one read of the database."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hms_cache.store.transactions import snapshots
from hms_cache.thrift_gen.hive_metastore.ttypes import GetOpenTxnsRequest, OpenTxnRequest, TxnType
from tests.servers import MAX_WAIT_S

CLIENTS = 6

ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("get_open_txns", {}),
    ("get_open_txns_req", {"getOpenTxnsRequest": GetOpenTxnsRequest()}),
    ("get_open_txns_req", {"getOpenTxnsRequest": GetOpenTxnsRequest([TxnType.READ_ONLY, TxnType.COMPACTION])}),
)


def test_who_waits_shares_the_next_read_and_each_has_its_own_answer(
    serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve()
    link = server.link()
    for kind in (TxnType.DEFAULT, TxnType.READ_ONLY, TxnType.COMPACTION):
        link.call("open_txns", rqst=OpenTxnRequest(num_txns=1, user="u", hostname="h", txn_type=kind))
    read = snapshots.read_snapshot
    reading, proceed = threading.Semaphore(0), threading.Event()
    reads: list[int] = []

    def held(connection: Any, *arguments: Any, **options: Any) -> snapshots.TxnSnapshot:
        snapshot = read(connection, *arguments, **options)
        reads.append(snapshot.high_watermark)
        reading.release()
        assert proceed.wait(MAX_WAIT_S)
        return snapshot

    monkeypatch.setattr(snapshots, "read_snapshot", held)
    [calls] = [one for one in server.service._thread_pool_loads() if one.pool == "transactions"]
    with ThreadPoolExecutor(CLIENTS) as pool:
        first = pool.submit(link.call, "get_open_txns")
        assert reading.acquire(timeout=MAX_WAIT_S)
        # What is opened now comes after the first read, and before all others.
        server.link().call("open_txns", rqst=OpenTxnRequest(num_txns=1, user="u", hostname="h"))
        requested = [ASKED[number % len(ASKED)] for number in range(CLIENTS - 1)]
        others = [pool.submit(server.link().call, method, **arguments) for method, arguments in requested]
        while calls.waiting < len(others):
            [calls] = [one for one in server.service._thread_pool_loads() if one.pool == "transactions"]
        proceed.set()
        assert first.result(MAX_WAIT_S).txn_high_water_mark == 3
        answers = [one.result(MAX_WAIT_S) for one in others]
    assert reads == [3, 4]
    monkeypatch.setattr(snapshots, "read_snapshot", read)
    assert answers == [link.call(method, **arguments) for method, arguments in requested]
    assert [list(one.open_txns) for one in answers[:3]] == [[1, 3, 4], [1, 2, 3, 4], [1, 4]]
