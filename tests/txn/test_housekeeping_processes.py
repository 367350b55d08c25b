"""Two processes run housekeeping at once: all of it is done, and nothing twice."""

from __future__ import annotations

import multiprocessing
import threading
from collections import Counter

import pytest

from hms_cache.store.schema import COMPACTION_QUEUE, TXNS
from hms_cache.store.transactions.mutexes import Mutex, hold_mutex
from hms_cache.store.transactions.time_outs import TimedOut
from tests.database_kinds import SERVER_KINDS
from tests.txn.client import TxnClient
from tests.txn.housekeepers import keep_house

ABANDONED = 1_500
"""More than a round of time-outs takes."""
WRITES = 12
"""More than a minor compaction waits for."""


@pytest.mark.soak
def test_two_servers_share_the_work(client: TxnClient) -> None:
    client.make_table()
    for _ in range(WRITES):
        client.commit(client.write()[0])
    abandoned = client.open_many(ABANDONED // 2) + client.open_many(ABANDONED - ABANDONED // 2)
    client.age(400_000)
    alive = client.open()
    url = client.database.url.render_as_string(hide_password=False)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        jobs = [pool.apply_async(keep_house, (url, f"server{number}", 3)) for number in range(2)]
        kept = [job.get(timeout=240) for job in jobs]
    assert sum(one.txns for one in kept) == ABANDONED
    aborted = Counter(message["txnid"] for event, message in client.events() if event == "ABORT_TXN")
    assert aborted == dict.fromkeys(abandoned, 1)
    queued = client.rows(COMPACTION_QUEUE, "CQ_ID")
    assert [(number,) for one in kept for number in one.compactions] == queued
    assert len(queued) == 1
    assert dict(client.rows(TXNS, "TXN_ID", "TXN_STATE"))[alive] == "o"
    assert sum(one.cleaned_txns for one in kept) >= ABANDONED


@pytest.mark.parametrize("database_kind", SERVER_KINDS, indirect=True)
def test_a_server_waits_for_the_one_that_works(client: TxnClient) -> None:
    """The holder of the mutex is alone. (SQLite has one writer at a time anyway.)"""
    client.open_many(3)
    client.age(400_000)
    client.store.give_up_timed_out()
    client.open_many(3)
    client.age(400_000)
    done: list[TimedOut] = []
    second = threading.Thread(target=lambda: done.append(client.store.give_up_timed_out()))
    with client.database.writing() as connection:
        hold_mutex(connection, Mutex.HOUSEKEEPER)
        second.start()
        second.join(0.2)
        assert not done, "it did not wait"
        connection.rollback()
    second.join(60)
    assert [one.txns for one in done] == [3]
