"""Locks whose owners are gone, on each database: how they are recognized and released manually."""

from __future__ import annotations

import pytest

from hms_cache.store.locks import owners
from hms_cache.store.locks.owners import LockIsLive
from hms_cache.store.schema import HIVE_LOCKS
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    HeartbeatRequest,
    LockState,
    LockType,
    NoSuchLockException,
    TxnOpenException,
)
from tests.txn.client import TxnClient, component


def test_the_dead_are_told_from_the_living(client: TxnClient) -> None:
    store, txn_id = client.store, client.open()
    dead, live = (client.lock(component(LockType.EXCLUSIVE, table)).lockid for table in "ab")
    in_txn = client.lock(component(LockType.SHARED_READ, "c", "p=1"), txn_id=txn_id).lockid
    waiting = client.lock(component(LockType.EXCLUSIVE, "a")).lockid
    client.age(2 * 1000 * int(store.timeout_s))
    store.heartbeat(HeartbeatRequest(lockid=live))
    store.heartbeat(HeartbeatRequest(txnid=txn_id))
    client.check(waiting)
    found = store.owned_locks().locks
    assert [(one.lock_id, one.is_dead) for one in found] == [
        (dead, True),
        (live, False),
        (in_txn, False),
        (waiting, False),
    ]
    first, _, third, last = found
    assert (first.table, first.lock_type, first.state, first.owner, first.host) == (
        *("d.a", "EXCLUSIVE", "ACQUIRED"),
        *("u", "h"),
    )
    assert (third.table, third.txn_id) == ("d.c/p=1", txn_id)
    assert (last.state, last.held_s) == ("WAITING", None)
    assert first.heartbeat_age_s >= 2 * int(store.timeout_s)


@pytest.mark.parametrize(("max_rows", "is_complete"), [(3, False), (4, True)])
def test_a_list_that_is_cut_says_so(
    client: TxnClient, monkeypatch: pytest.MonkeyPatch, max_rows: int, is_complete: bool
) -> None:
    """A lock on a partition has two rows if Hive 4 spells its name differently; the list shows one of them."""
    monkeypatch.setattr(owners, "MAX_LISTED_LOCKS", max_rows)
    for hour in ("10%3A00", "11%3A00"):
        client.lock(component(LockType.SHARED_READ, "t", f"t={hour}"))
    found = client.store.owned_locks()
    assert len(found.locks) <= 2 and found.is_complete is is_complete


def test_a_lock_of_a_transaction_lives_as_long_as_it(client: TxnClient) -> None:
    txn_id = client.open()
    lock_id = client.lock(component(LockType.EXCLUSIVE), txn_id=txn_id).lockid
    client.age(2 * 1000 * int(client.store.timeout_s))
    [one] = client.store.owned_locks().locks
    assert (one.lock_id, one.is_dead) == (lock_id, True)
    with pytest.raises(TxnOpenException, match="abort the transaction"):
        client.store.release_lock(lock_id, True)
    client.abort(txn_id)
    assert client.store.owned_locks().locks == ()


def test_only_a_dead_owners_lock_goes_without_force(client: TxnClient) -> None:
    store = client.store
    dead = client.lock(component(LockType.EXCLUSIVE, "a"), component(LockType.EXCLUSIVE, "b")).lockid
    live = client.lock(component(LockType.EXCLUSIVE, "c")).lockid
    waiting = client.lock(component(LockType.EXCLUSIVE, "a")).lockid
    client.age(2 * 1000 * int(store.timeout_s))
    store.heartbeat(HeartbeatRequest(lockid=live))
    with pytest.raises(LockIsLive, match="heartbeat"):
        store.release_lock(live, False)
    store.release_lock(dead, False)
    assert client.check(waiting) == LockState.ACQUIRED
    with pytest.raises(NoSuchLockException):
        store.release_lock(dead, False)
    store.release_lock(live, True)
    assert {row[0] for row in client.rows(HIVE_LOCKS, "HL_LOCK_EXT_ID")} == {waiting}
