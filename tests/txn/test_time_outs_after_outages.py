"""After an outage, clients that could not send a heartbeat do not time out; after a whole time-out, silent ones do."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from hms_cache.store.schema import AUX_TABLE, TXNS
from hms_cache.store.transactions.time_outs import TimedOut
from hms_cache.thrift_gen.hive_metastore.ttypes import HeartbeatRequest, LockType
from tests.txn.client import TxnClient, component
from tests.txn.conftest import store_of

TIME_OUT_MS = 300_000
PAUSE_S = 180.0


def later(client: TxnClient, milliseconds: int) -> None:
    """Lets time pass: all records become this much older."""
    client.age(milliseconds)
    for key, comment in client.rows(AUX_TABLE, "MT_KEY1", "MT_COMMENT"):
        if comment:
            aged = ":".join(str(int(part) - milliseconds) for part in comment.split(":"))
            client.change(update(AUX_TABLE).where(AUX_TABLE.c.MT_KEY1 == key).values(MT_COMMENT=aged))


def run(client: TxnClient) -> TimedOut:
    """One run of a server's housekeeping; each is one of another server of the set."""
    return store_of(client.database).give_up_timed_out(PAUSE_S)


def keep_house(client: TxnClient, milliseconds: int, *alive: int) -> list[TimedOut]:
    """Housekeeping every minute for this long; clients of `alive` send heartbeats."""
    given_up = []
    for _ in range(milliseconds // 60_000):
        later(client, 60_000)
        for txn_id in alive:
            client.store.heartbeat(HeartbeatRequest(txnid=txn_id))
        given_up.append(run(client))
    return given_up


def test_all_get_a_time_out_to_come_back(client: TxnClient) -> None:
    assert run(client) == TimedOut(0, 0, 0)
    keep_house(client, TIME_OUT_MS)
    returns, gone = client.open_many(2)
    client.lock(component(LockType.SHARED_READ))
    client.store.get_lock_materialization_rebuild("d", "v", gone)
    later(client, 3 * TIME_OUT_MS)
    assert keep_house(client, TIME_OUT_MS - 60_000, returns) == [TimedOut(0, 0, 0)] * 4
    assert keep_house(client, 180_000, returns)[-1].txns == 0
    assert client.store.get_open_txns().min_open_txn == returns
    assert dict(client.rows(TXNS, "TXN_ID", "TXN_STATE"))[gone] == "a"


def test_a_first_run_on_a_database_waits_too(client: TxnClient) -> None:
    client.open_many(3)
    later(client, 3 * TIME_OUT_MS)
    assert run(client).txns == 0
    assert sum(one.txns for one in keep_house(client, TIME_OUT_MS + 120_000)) == 3


def test_without_a_pause_time_outs_are_as_ever(client: TxnClient) -> None:
    run(client)
    keep_house(client, TIME_OUT_MS + 60_000)
    gone = client.open()
    assert all(one.txns == 0 for one in keep_house(client, TIME_OUT_MS - 60_000))
    assert sum(one.txns for one in keep_house(client, 120_000)) == 1
    assert dict(client.rows(TXNS, "TXN_ID", "TXN_STATE"))[gone] == "a"


YEAR_MS = 365 * 86_400_000


def test_a_clock_that_was_a_year_ahead_keeps_nothing_for_a_year(client: TxnClient) -> None:
    """The database's clock is set back, or a failover leads to a host whose clock is behind."""
    run(client)
    keep_house(client, TIME_OUT_MS + 60_000)
    gone, returns = client.open_many(2)
    client.lock(component(LockType.SHARED_READ))
    later(client, YEAR_MS)
    client.store.heartbeat(HeartbeatRequest(txnid=gone))
    run(client)  # finds a pause of a year: all clients have time to send a heartbeat
    later(client, -YEAR_MS)
    given_up = keep_house(client, TIME_OUT_MS - 60_000, returns)
    assert given_up == [TimedOut(0, 0, 0)] * 4, "all get a time-out"
    given_up = keep_house(client, 180_000, returns)
    assert (sum(one.txns for one in given_up), sum(one.locks for one in given_up)) == (1, 1)
    assert dict(client.rows(TXNS, "TXN_ID", "TXN_STATE"))[gone] == "a"
    assert dict(client.rows(TXNS, "TXN_ID", "TXN_STATE"))[returns] == "o"


@pytest.mark.parametrize("away_ms", [200_000, 290_000, 310_000, 500_000, 2_000_000])
def test_whoever_returns_is_kept_however_long_it_lasted(sqlite_client: TxnClient, away_ms: int) -> None:
    """Heartbeats every half of a time-out, as Hive's clients send them, except during the outage."""
    client = sqlite_client
    run(client)
    keep_house(client, TIME_OUT_MS + 60_000)
    txn_id = client.open()
    keep_house(client, 120_000)
    later(client, away_ms)
    assert all(one.txns == 0 for one in keep_house(client, 120_000)), "given up before its next heartbeat"
    client.store.heartbeat(HeartbeatRequest(txnid=txn_id))
    assert sum(one.txns for one in keep_house(client, TIME_OUT_MS - 60_000)) == 0
