"""Commands on a running server: flush, refresh, warm, sync, verify, over HTTP and from the command line."""

from __future__ import annotations

import http.client
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hmsclient.genthrift.hive_metastore import ttypes

from hms_cache.admin.commands import routes
from hms_cache.cache.entries import Facet
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.thrift_gen.hive_metastore.ttypes import SQLPrimaryKey, TableMeta
from hms_cache.txn.valid_write_ids import ValidWriteIdList
from hms_cache.wire.codec import encode_struct
from tests.admin.running import TOKEN, Running, hms_cache
from tests.consistency.observers import wait_until

T = TableName("hive", "shop", "sales")
OTHER = TableName("hive", "shop", "plain")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    server = Running(tmp_path, cache__warm="off", cache__refill="none")
    client = server.client
    client.create_database(ttypes.Database(name="shop"))
    client.create_table(new_table("sales", keys=("ds",)))
    client.create_table(new_table("plain"))
    client.add_partitions([new_partition(value) for value in ("1", "2", "3")])
    yield server
    server.close()


def new_table(name: str, keys: tuple[str, ...] = ()) -> ttypes.Table:
    descriptor = ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema("id", "int", None)], serdeInfo=ttypes.SerDeInfo(parameters={}), parameters={}
    )
    columns = [ttypes.FieldSchema(key, "string", None) for key in keys]
    return ttypes.Table(
        dbName="shop", tableName=name, sd=descriptor, partitionKeys=columns, parameters={}, tableType="MANAGED_TABLE"
    )


def new_partition(value: str) -> ttypes.Partition:
    descriptor = new_table("sales").sd
    return ttypes.Partition(values=[value], dbName="shop", tableName="sales", sd=descriptor, parameters={})


def held(server: Running, table: TableName) -> set[Facet]:
    cache = server.sources.cache
    assert cache is not None
    with cache.shared.view():
        entry = cache.shared.tables.get(table)
        return set(entry.facets) if entry is not None else set()


def read_all(server: Running) -> None:
    server.client.get_table("shop", "sales")
    server.client.get_table("shop", "plain")
    assert len(server.client.get_partitions("shop", "sales", -1)) == 3


def test_flush_drops_what_is_named_and_nothing_else(running: Running) -> None:
    read_all(running)
    result, finished = running.command("flush", "database=shop&table=sales")
    assert result["ok"] and finished == {"ok": True, "reached": [0], "unreached": []}
    assert held(running, T) == set() and Facet.TABLE in held(running, OTHER)
    read_all(running)
    running.command("flush", "database=shop&table=sales&partition=ds%3D2")
    assert Facet.TABLE in held(running, T)
    loads = running.json("/status")["cache"]["loads"]
    assert running.client.get_partition("shop", "sales", ["2"]).values == ["2"]
    assert running.json("/status")["cache"]["loads"] == loads + 1, "it was read again"
    running.command("flush", "database=shop")
    assert held(running, T) == held(running, OTHER) == set()
    read_all(running)
    assert running.command("flush")[0]["numbers"]["tables"] == 2
    assert running.json("/status")["cache"]["bytes"] == 0
    read_all(running)


def test_flush_of_a_table_forgets_whether_there_is_one(running: Running) -> None:
    """A change without an event is visible after a flush of its object: the names show whether a table exists, and its
    type."""
    read_all(running)
    names = running.service._caching.cache.shared.databases[T.in_database]  # type: ignore[union-attr]
    running.client.get_all_tables("shop")
    assert Facet.TABLE_NAMES in names.facets
    running.command("flush", "database=shop&table=unlogged")
    assert Facet.TABLE_NAMES not in names.facets
    assert Facet.TABLE in held(running, T)


def test_flush_of_a_database_forgets_whether_there_is_one(running: Running) -> None:
    """Like a table: a database created by SQL, without an event, is visible after its flush."""
    with pytest.raises(ttypes.NoSuchObjectException):
        running.client.get_database("unlogged")
    assert running.client.get_all_databases() == ["default", "shop"]
    with sqlite3.connect(running.directory / "hms.db") as database:
        columns = "DB_ID, DB_LOCATION_URI, NAME, OWNER_NAME, OWNER_TYPE, CTLG_NAME, TYPE"
        database.execute(
            f"INSERT INTO DBS ({columns}) VALUES (9999, 'file:/u', 'unlogged', 'o', 'USER', 'hive', 'NATIVE')"
        )
    running.command("flush", "database=unlogged")
    assert running.client.get_database("unlogged").locationUri == "file:/u"
    assert running.client.get_all_databases() == ["default", "shop", "unlogged"]


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("", {"shop": False, "other": False}),
        ("database=shop", {"shop": False, "other": True}),
        ("database=shop&table=sales", {"shop": False, "other": True}),
    ],
)
def test_what_a_load_has_read_before_a_flush_is_not_kept(running: Running, query: str, kept: dict[str, bool]) -> None:
    """The names of a database's tables, none of which was cached when the flush arrived."""
    cache = running.sources.cache
    assert cache is not None
    cache.shared.forget_all()
    loads = {name: cache.shared.begin_load(DatabaseName("hive", name), {Facet.TABLE_NAMES}) for name in kept}
    running.command("flush", query)
    position = cache.shared.position
    installed = {name: cache.shared.install(load, position, Facet.TABLE_NAMES, {}, 1) for name, load in loads.items()}
    for load in loads.values():
        cache.shared.end_load(load)
    assert installed == kept


def test_refresh_reads_what_was_held_again(running: Running) -> None:
    read_all(running)
    before = {table: held(running, table) for table in (T, OTHER)}
    for query, loads in (
        ("", True),
        ("database=shop", True),
        ("database=SHOP&table=Sales", True),
        ("database=x", False),
    ):
        count = running.json("/status")["cache"]["loads"]
        result, _ = running.command("refresh", query)
        assert result["ok"], result
        assert {table: held(running, table) for table in (T, OTHER)} == before
        assert (running.json("/status")["cache"]["loads"] > count) == loads


def test_refresh_of_a_table_or_partition_loads_it_whether_held_or_not(running: Running) -> None:
    assert running.command("refresh", "database=shop&table=sales&partition=ds%3D1")[0]["ok"]
    assert held(running, T) == {Facet.TABLE, Facet.PARTITIONS}
    assert running.command("refresh", "database=shop&table=plain")[0]["ok"]
    assert held(running, OTHER) == {Facet.TABLE}
    result, finished = running.command("refresh", "database=shop&table=nowhere")
    assert not result["ok"] and not finished["ok"]
    assert "there is no table shop.nowhere" in result["summary"]


def test_warm_loads_tables_with_their_partitions(running: Running) -> None:
    result, _ = running.command("warm", "database=shop")
    assert result["ok"] and result["numbers"] == {"tables": 2, "total": 2}
    assert {Facet.TABLE, Facet.PARTITIONS} <= held(running, T)
    loads = running.json("/status")["cache"]["loads"]
    read_all(running)
    assert running.json("/status")["cache"]["loads"] == loads, "everything was there"
    assert not running.command("warm", "database=nowhere")[0]["ok"]
    assert running.command("warm")[0]["ok"]


def test_sync_waits_for_what_is_committed(running: Running) -> None:
    result, _ = running.command("sync", "database=shop&table=sales&wait_s=30")
    assert result["ok"]
    last = result["numbers"]["event_id"]
    assert result["numbers"]["position"] >= last == 4
    assert running.command("sync", "event_id=1")[0]["ok"]
    result, finished = running.command("sync", f"event_id={last + 1}&wait_s=0.05")
    assert not result["ok"] and not finished["ok"]
    assert f"{last + 1} is awaited" in result["summary"]


def test_sync_of_an_event_that_comes_meanwhile_succeeds(running: Running) -> None:
    last = running.command("sync")[0]["numbers"]["event_id"]
    answers: list[bool] = []
    waiting = threading.Thread(
        target=lambda: answers.append(running.command("sync", f"event_id={last + 1}&wait_s=60")[0]["ok"])
    )
    waiting.start()
    wait_until(lambda: running.sources.operations.running_commands() == 1, "the command waits")
    running.client.create_table(new_table("third"))
    waiting.join(60)
    assert answers == [True]


def test_a_paused_poller_is_named_as_the_cause(running: Running) -> None:
    running.ask("/events/pause", TOKEN, post=True)
    running.client.create_table(new_table("third"))
    result, _ = running.command("sync", "wait_s=0.05")
    assert not result["ok"] and "PAUSED" in result["summary"] and "paused by an operator" in result["summary"]
    running.ask("/events/resume", TOKEN, post=True)
    assert running.command("sync", "wait_s=30")[0]["ok"]


def test_verify_compares_and_finds_what_is_wrong(running: Running) -> None:
    read_all(running)
    result, _ = running.command("verify")
    assert result["ok"], result
    assert (result["numbers"]["tables"], result["numbers"]["partitions"], result["numbers"]["undecided"]) == (2, 3, 0)
    assert running.command("verify", "sample=1&seed=7")[0]["numbers"]["tables"] == 1
    cache = running.sources.cache
    assert cache is not None
    with cache.shared.view():
        entry = cache.shared.tables[OTHER]
        entry.facets[Facet.TABLE].owner = "mallory"
        entry.encoded_table = encode_struct(entry.facets[Facet.TABLE])
    result, finished = running.command("verify", "database=shop&table=plain")
    assert not finished["ok"] and result["numbers"]["differences"] == 1
    assert "mallory" in result["details"][0]
    running.command("refresh", "database=shop&table=plain")
    assert running.command("verify")[0]["ok"]


def damage(names: dict[str, TableMeta]) -> None:
    """Names of a database, of which one is missing and one is superfluous."""
    del names["plain"]
    names["invented"] = TableMeta(dbName="shop", tableName="invented")


def test_verify_compares_names_and_tags(running: Running) -> None:
    client = running.client
    accounts = new_table("accounts")
    accounts.parameters = {"transactional": "true", "transactional_properties": "insert_only"}
    client.create_table(accounts)
    read_all(running)
    client.get_table("shop", "accounts")
    assert client.get_all_tables("shop") == ["accounts", "plain", "sales"]
    client.get_database("shop")
    result, _ = running.command("verify")
    assert result["ok"] and result["numbers"]["databases"] >= 1, result
    cache = running.sources.cache
    assert cache is not None
    shared = cache.shared
    with shared.view():
        names = shared.databases[DatabaseName("hive", "shop")]
        too_much = ValidWriteIdList.parse("shop.accounts:9:9223372036854775807::")
        shared.tables[TableName("hive", "shop", "accounts")].tag = too_much
        damage(names.facets[Facet.TABLE_NAMES])
    found = " ".join(running.command("verify", "database=shop")[0]["details"])
    assert "P6" in found, "the names contradict the tables held"
    running.command("flush", "database=shop&table=plain")
    running.client.get_all_tables("shop")  # the table's flush dropped the names of its database
    with shared.view():
        damage(shared.databases[DatabaseName("hive", "shop")].facets[Facet.TABLE_NAMES])
    found = " ".join(running.command("verify", "database=shop")[0]["details"])
    assert "the write-id tag says too much" in found and "table_names differ" in found


def test_verify_finds_wrong_constraints(running: Running) -> None:
    read_all(running)
    running.client.get_primary_keys(ttypes.PrimaryKeysRequest(db_name="shop", tbl_name="plain"))
    cache = running.sources.cache
    assert cache is not None
    with cache.shared.view():
        cache.shared.tables[OTHER].facets[Facet.CONSTRAINTS].primaryKeys.append(SQLPrimaryKey(pk_name="invented"))
    (found,) = running.command("verify", "database=shop&table=plain")[0]["details"]
    assert "constraints differ" in found and "invented" in found


REFUSED = [
    ("/commands/explode", 404, "no such command"),
    ("/commands/flush?table=t", 400, "a table needs its database"),
    ("/commands/flush?database=d&partition=x", 400, "a partition needs its table"),
    ("/commands/flush?database=d&table=t&partition=x", 400, "not a partition's name"),
    ("/commands/sync?event_id=x", 400, "event_id must be a number"),
    ("/commands/sync?wait_s=nan", 400, "wait_s must be seconds"),
    ("/commands/sync?wait_s=99999", 400, "wait_s must be seconds"),
    ("/commands/verify?database=d&table=t&partition=a%3Db", 400, "leave the partition out"),
]


def test_what_cannot_be_carried_out_is_refused(running: Running) -> None:
    for path, status, text in REFUSED:
        found = running.ask(path, TOKEN, post=True)
        assert found[0] == status and text in found[1], path


def test_commands_need_the_token_and_a_cache(running: Running, tmp_path: Path) -> None:
    for name in routes.COMMANDS:
        assert running.ask(f"/commands/{name}", post=True)[0] == 401
        assert running.ask(f"/commands/{name}", "wrong", post=True)[0] == 401
        assert running.ask(f"/commands/{name}", TOKEN)[0] == 405
    (tmp_path / "off").mkdir()
    off = Running(tmp_path / "off", cache__enabled=False)
    try:
        assert off.ask("/commands/flush", TOKEN, post=True) == (409, "there is no cache: cache.enabled is false\n")
    finally:
        off.close()


def test_there_is_a_limit_to_commands_at_once(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "MAX_COMMANDS", 1)
    operation = running.sources.operations.begin("command", "warm", "everything", "a test")
    assert running.ask("/commands/flush", TOKEN, post=True)[0] == 429
    running.sources.operations.end(operation, "ok")
    assert running.ask("/commands/flush", TOKEN, post=True)[0] == 200


@pytest.mark.soak
def test_probes_and_pages_do_not_wait_for_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waiting command occupies a thread, and one for each other worker: fifty are eight commands to a server of
    seven."""
    monkeypatch.setattr(routes, "MAX_COMMANDS", 50)
    running = Running(tmp_path, admin__max_connections=400)
    try:
        assert running.service.management_address is not None
        with ExitStack() as stack:
            for number in range(50):
                connection = http.client.HTTPConnection(*running.service.management_address, timeout=30)
                stack.callback(connection.close)
                connection.request(
                    "POST", "/commands/sync?event_id=9999&wait_s=600", headers={"Authorization": f"Bearer {TOKEN}"}
                )
                assert b"progress" in connection.getresponse().readline(), number
            for path in ("/readyz", "/metrics", "/cache", "/locks", "/status"):
                assert running.ask(path)[0] == 200, path
    finally:
        running.close()


def test_the_command_line_commands(running: Running, tmp_path: Path) -> None:
    read_all(running)
    where = ("--management", running.management, "--token-file", str(tmp_path / "token"))
    status, text = hms_cache(tmp_path, "sync", "shop.sales", "--wait", "30s", *where)
    assert (status, "in sync" in text) == (0, True)
    assert hms_cache(tmp_path, "flush", "shop.sales", "ds=1", *where)[0] == 0
    assert hms_cache(tmp_path, "refresh", "hive.shop.sales", *where) == (0, "refreshed shop.sales\n")
    status, text = hms_cache(tmp_path, "verify", "--json", *where)
    assert status == 0 and json.loads(text)["workers"]["0"]["numbers"]["differences"] == 0
    status, text = hms_cache(tmp_path, "warm", "nowhere.nothing", *where)
    assert status == 1 and "there is no table" in text and "Traceback" not in text
    assert hms_cache(tmp_path, "sync", "--wait", "soon", *where)[0] == 2
    assert hms_cache(tmp_path, "flush", "a.b.c.d", *where)[0] == 2
    (tmp_path / "wrong").write_text("wrong")
    status, text = hms_cache(tmp_path, "flush", "--management", running.management, "--token-file", "wrong")
    assert (status, text) == (1, "hms-cache: the token is missing or wrong\n")
