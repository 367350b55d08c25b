"""Locks of owners that are gone: shown by the page and the command, released manually, and only if this is safe."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hmsclient.genthrift.hive_metastore import ttypes
from sqlalchemy import Engine, create_engine, text

from tests.admin.running import TOKEN, Running, hms_cache


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    server = Running(tmp_path, transactions__timeout_s=300, transactions__housekeeping_interval_s=float("inf"))
    yield server
    server.close()


def take(server: Running, table: str, txn_id: int | None = None) -> ttypes.LockResponse:
    """As Iceberg does before a commit."""
    one = ttypes.LockComponent(
        type=ttypes.LockType.EXCLUSIVE, level=ttypes.LockLevel.TABLE, dbname="shop", tablename=table
    )
    one.isTransactional = True
    request = ttypes.LockRequest(component=[one], user="ann", hostname="h1", agentInfo="Iceberg-1", txnid=txn_id)
    return server.client.lock(request)


def die(directory: Path, lock_id: int) -> None:
    """The owner sent its last heartbeat ten minutes ago."""
    engine: Engine = create_engine(f"sqlite:///{directory / 'hms.db'}")
    with engine.begin() as connection:
        statement = "UPDATE HIVE_LOCKS SET HL_LAST_HEARTBEAT = HL_LAST_HEARTBEAT - 600000 WHERE HL_LOCK_EXT_ID = :id"
        assert connection.execute(text(statement), {"id": lock_id}).rowcount == 1
    engine.dispose()


def test_the_page_tells_the_dead_from_the_living(running: Running, tmp_path: Path) -> None:
    dead, live = take(running, "a").lockid, take(running, "b").lockid
    waiting = take(running, "a")
    assert waiting.state == ttypes.LockState.WAITING
    die(tmp_path, dead)
    page = running.json("/locks")
    shown = {one["lock_id"]: one for one in page["locks"]}
    assert list(shown) == [dead, live, waiting.lockid] and page["is_complete"] and page["timeout_s"] == 300
    assert [one["is_dead"] for one in shown.values()] == [True, False, False] and page["dead"] == 1
    first = shown[dead]
    assert (first["owner"], first["host"], first["agent"]) == ("ann", "h1", "Iceberg-1")
    assert (first["table"], first["lock_type"], first["state"], first["txn_id"]) == (
        "shop.a",
        "EXCLUSIVE",
        "ACQUIRED",
        0,
    )
    assert 600 <= first["heartbeat_age_s"] < 700 and shown[live]["heartbeat_age_s"] < 100
    assert shown[waiting.lockid]["state"] == "WAITING" and shown[waiting.lockid]["held_s"] is None


def test_a_lock_in_a_transaction_lives_as_long_as_its_transaction(running: Running, tmp_path: Path) -> None:
    txn_id = running.client.open_txns(ttypes.OpenTxnRequest(1, "u", "h")).txn_ids[0]
    lock_id = take(running, "a", txn_id).lockid
    (shown,) = running.json("/locks")["locks"]
    assert (shown["txn_id"], shown["is_dead"]) == (txn_id, False)
    status, answer = running.ask(f"/locks/release?lock_id={lock_id}&force=true", TOKEN, post=True)
    assert status == 409 and "abort the transaction" in answer
    assert len(running.json("/locks")["locks"]) == 1


def test_only_a_dead_owners_lock_is_released_without_force(running: Running, tmp_path: Path) -> None:
    dead, live = take(running, "a").lockid, take(running, "b").lockid
    waiting = take(running, "a").lockid
    die(tmp_path, dead)
    release = "/locks/release?lock_id="
    assert running.ask(f"{release}{dead}", post=True)[0] == 401
    assert running.ask(f"{release}{dead}", "wrong", post=True)[0] == 401
    assert [one["lock_id"] for one in running.json("/locks")["locks"]] == [dead, live, waiting]
    status, answer = running.ask(f"{release}{live}", TOKEN, post=True)
    assert status == 409 and "heartbeat" in answer
    assert running.ask(f"{release}{dead}", TOKEN, post=True) == (200, json.dumps({"released": dead}).replace(" ", ""))
    assert running.client.check_lock(ttypes.CheckLockRequest(lockid=waiting)).state == ttypes.LockState.ACQUIRED
    assert running.ask(f"{release}{dead}", TOKEN, post=True)[0] == 404
    assert running.ask(f"{release}{live}&force=true", TOKEN, post=True)[0] == 200
    assert [one["lock_id"] for one in running.json("/locks")["locks"]] == [waiting]
    for wrong in ("", "x", "-1", "1" * 30, f"{waiting}&force=maybe"):
        assert running.ask(f"{release}{wrong}", TOKEN, post=True)[0] == 400
    last = running.json("/operations")["finished"]
    assert [(one["name"], one["subject"], one["outcome"] == "ok") for one in last if "locks" in one["name"]] == [
        ("locks release --force", str(live), True),
        ("locks release", str(dead), False),
        ("locks release", str(dead), True),
        ("locks release", str(live), False),
    ]


def test_locks_that_are_kept_for_ever_are_shown(tmp_path: Path) -> None:
    """JSON has no infinity."""
    server = Running(tmp_path, transactions__timeout_s="inf")
    try:
        lock_id = take(server, "a").lockid
        die(tmp_path, lock_id)
        page = server.json("/locks")
        assert page["timeout_s"] is None and page["dead"] == 0 and len(page["locks"]) == 1
        assert "for ever" in server.ask("/locks?format=html")[1]
        status, shown = hms_cache(tmp_path, "locks", "list", "--management", server.management)
        assert status == 0 and "shop.a" in shown
    finally:
        server.close()


def test_commands(running: Running, tmp_path: Path) -> None:
    dead, live = take(running, "a").lockid, take(running, "b").lockid
    die(tmp_path, dead)
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    requested = ("--management", running.management)
    status, text_shown = hms_cache(tmp_path, "locks", "list", *requested)
    assert status == 0 and "shop.a" in text_shown and "shop.b" in text_shown and text_shown.count("dead") == 1
    status, found = hms_cache(tmp_path, "locks", "list", "--dead", "--json", *requested)
    assert status == 0 and [one["lock_id"] for one in json.loads(found)["locks"]] == [dead]
    commanded = (*requested, "--token-file", str(token))
    status, refused = hms_cache(tmp_path, "locks", "release", str(live), *commanded)
    assert status == 1 and "heartbeat" in refused
    assert hms_cache(tmp_path, "locks", "release", str(dead), *commanded) == (0, f"released {dead}\n")
    assert hms_cache(tmp_path, "locks", "release", str(live), "--force", *commanded)[0] == 0
    assert running.json("/locks")["locks"] == []
