"""Hive 4.0.1 and ours on one database: each reads and alters what the other wrote, and both write concurrently."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from benchmarks.java_metastore import LOG_LISTENER, log_listener
from hms_cache.notifications.messages import decode_message
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddCheckConstraintRequest,
    AddDefaultConstraintRequest,
    AddNotNullConstraintRequest,
    AddUniqueConstraintRequest,
    AllTableConstraintsRequest,
    AlreadyExistsException,
    ClientCapabilities,
    FireEventRequest,
    FireEventRequestData,
    GetTableRequest,
    InsertEventRequestData,
    MetaException,
    NotificationEvent,
    NotificationEventRequest,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLNotNullConstraint,
    SQLUniqueConstraint,
    Table,
)
from tests.conftest import ServerLookup
from tests.differential.comparison import differences, plain, run
from tests.differential.metastores import Side, java_metastore, our_metastore, own_database
from tests.differential.objects import database, descriptor, partition, table
from tests.differential.scenarios.notifications import READING

pytestmark = [pytest.mark.java, pytest.mark.mariadb, pytest.mark.soak, pytest.mark.long]

WRITERS_A_SIDE = 3
ROUNDS = 12


class Beside:
    """Both metastores, their database, and further clients of each."""

    def __init__(self, java: Side, ours: Side, database_url: str, directory: Path) -> None:
        self.java, self.ours = java, ours
        self.engine = create_engine(database_url)
        self._directory = directory

    def client_of(self, side: Side) -> Side:
        return Side(side.uri, self._directory, side.database_url)

    def column(self, statement: str) -> list[int]:
        with self.engine.connect() as connection:
            return list(connection.execute(text(statement)).scalars())


def compiled_listener(directory: Path) -> Path:
    """The class that makes Java write to the log, compiled."""
    if shutil.which("javac") is None:
        pytest.skip("needs a JDK: javac")
    return log_listener(directory)


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory, database_servers: ServerLookup) -> Iterator[Beside]:
    directory = tmp_path_factory.mktemp("beside")
    classes = compiled_listener(tmp_path_factory.mktemp("classes"))
    with ExitStack() as stack:
        url = own_database(database_servers("mariadb"), stack)
        java = stack.enter_context(java_metastore(url, directory, classes=[classes], **LOG_LISTENER))
        ours = stack.enter_context(our_metastore(url, directory, **{"cache.peers": "hive4"}))
        both = Beside(java, ours, url, directory)
        stack.callback(both.engine.dispose)
        yield both


def read_table(side: Side, name: str) -> Table:
    request = GetTableRequest(dbName="d", tblName=name, capabilities=ClientCapabilities([1, 2]))
    return side.call("get_table_req", request).table


def everything(side: Side) -> dict[str, object]:
    """All tables of the database with their partitions, as returned by this metastore."""
    return {
        name: [plain(read_table(side, name)), *plain(side.call("get_partitions", "d", name, -1))]
        for name in side.call("get_all_tables", "d")
    }


def check_log(beside: Beside) -> None:
    """Event ids have no gaps, and the next one is that of the sequence."""
    ids = sorted(beside.column("SELECT EVENT_ID FROM NOTIFICATION_LOG"))
    assert ids == list(range(1, len(ids) + 1))
    assert beside.column("SELECT NEXT_EVENT_ID FROM NOTIFICATION_SEQUENCE") == [len(ids) + 1]


def test_each_reads_and_alters_what_the_other_wrote(beside: Beside) -> None:
    with suppress(AlreadyExistsException):
        beside.java.call("create_database", database("d"))
    for number, (writer, other) in enumerate(((beside.java, beside.ours), (beside.ours, beside.java))):
        name = f"t{number}"
        writer.call("create_table", table(name, keys=("k:string",)))
        writer.call("add_partition", partition("1", of=name))
        assert plain(read_table(other, name)) == plain(read_table(writer, name))
        changed = read_table(other, name)
        changed.parameters["altered"] = "by the other"
        other.call("alter_table", "d", name, changed)
        assert read_table(writer, name).parameters["altered"] == "by the other"
        moved = other.call("get_partition", "d", name, ["1"])
        moved.parameters["altered"] = "by the other"
        other.call("alter_partition", "d", name, moved)
        assert writer.call("get_partition", "d", name, ["1"]).parameters["altered"] == "by the other"
        other.call("add_partition", partition("2", of=name))
        assert writer.call("get_partition_names", "d", name, -1) == ["k=1", "k=2"]
        writer.call("drop_partition", "d", name, ["1"], True)
        assert other.call("get_partition_names", "d", name, -1) == ["k=2"]
    assert differences(everything(beside.java), everything(beside.ours)) == []
    check_log(beside)


@pytest.mark.parametrize("change", ["owner", "parameters", "description", "location", "managed location"])
def test_an_altered_database_is_seen(beside: Beside, change: str) -> None:
    """Java logs changes of the owner and of parameters only."""
    with suppress(AlreadyExistsException):
        beside.java.call("create_database", database("altered"))
    for _ in range(2):
        assert plain(beside.ours.call("get_database", "altered")) == plain(beside.java.call("get_database", "altered"))
    changed = beside.java.call("get_database", "altered")
    match change:
        case "owner":
            changed.ownerName = "another"
        case "parameters":
            changed.parameters = {"k": change}
        case "description":
            changed.description = change
        case "location":
            changed.locationUri = f"{changed.locationUri}_moved"
        case _:
            changed.managedLocationUri = f"{beside.java.warehouse_uri}/managed/moved.db"
    beside.java.call("alter_database", "altered", changed)
    expected = plain(beside.java.call("get_database", "altered"))
    for _ in range(2):
        assert plain(beside.ours.call("get_database", "altered")) == expected


def test_what_java_takes_back_from_its_old_copy_is_seen(
    tmp_path_factory: pytest.TempPathFactory, database_servers: ServerLookup
) -> None:
    """Hive's CachedStore alters an older copy of a table: what ours altered since is reverted, and no image in the
    event shows it."""
    directory = tmp_path_factory.mktemp("cached")
    classes = compiled_listener(tmp_path_factory.mktemp("classes"))
    never_again = {"metastore.cached.rawstore.cache.update.frequency": "3600s"}
    with ExitStack() as stack:
        url = own_database(database_servers("mariadb"), stack)
        ours = stack.enter_context(our_metastore(url, directory, **{"cache.peers": "hive4"}))
        uncached = stack.enter_context(our_metastore(url, directory, **{"cache.enabled": False}))
        ours.call("create_database", database("d"))
        ours.call("create_table", table("t", keys=("k:string",)))
        ours.call("add_partitions", [partition(value, of="t") for value in ("1", "01", "2")])
        java = stack.enter_context(
            java_metastore(url, directory, cached=True, classes=[classes], **LOG_LISTENER, **never_again)
        )
        for number in range(60):
            changed = read_table(ours, "t")
            changed.parameters["number"] = str(number)
            ours.call("alter_table", "d", "t", changed)
            if read_table(java, "t").parameters.get("number") != str(number):
                break  # it has its copy
            time.sleep(1)
        changed = read_table(ours, "t")
        changed.parameters["comment"], changed.partitionKeys[0].type = "ours", "int"
        ours.call("alter_table", "d", "t", changed)
        reads: list[tuple[Any, ...]] = [
            ("get_table_meta", "d", "*", []),
            *(("get_partitions_by_filter", "d", "t", text, -1) for text in ("k = 1", "k = '1'")),
        ]
        for read in reads:
            assert plain(run_one(ours, read)) == plain(run_one(uncached, read))
        old = read_table(java, "t")
        assert "comment" not in old.parameters
        old.parameters["altered"] = "by Java"
        java.call("alter_table", "d", "t", old)
        assert "comment" not in read_table(uncached, "t").parameters
        for read in reads:
            assert plain(run_one(ours, read)) == plain(run_one(uncached, read))


def run_one(side: Side, call: tuple[Any, ...]) -> Any:
    """The answer, or the exception's text."""
    try:
        return side.call(*call)
    except MetaException as error:
        return error.message


def test_both_answer_the_same_of_the_log(beside: Beside) -> None:
    with suppress(AlreadyExistsException):
        beside.java.call("create_database", database("d"))
    for number, writer in enumerate((beside.java, beside.ours)):
        name = f"n{number}"
        writer.call("create_table", table(name, keys=("k:string",)))
        writer.call("add_partitions", [partition("1", of=name), partition("2", of=name)])
        changed = read_table(writer, name)
        changed.parameters["altered"] = "yes"
        writer.call("alter_table", "d", name, changed)
        writer.call("drop_partition", "d", name, ["1"], True)
        writer.call("drop_table", "d", name, True)
    comparisons = run(READING, beside.java, beside.ours)
    unexplained = [str(one) for one in comparisons if not one.is_as_expected]
    assert not unexplained, "\n".join(line[:300] for line in "\n".join(unexplained).splitlines())
    failed = [f"{one.call.method}: {one.java}" for one in comparisons if one.java.error]
    assert len(failed) < 10, "\n".join(failed)


def told(event: NotificationEvent) -> dict[str, Any]:
    """An event's row and its message, without values that depend on the server that wrote it, and without file
    markers."""
    message = decode_message(event.message, event.messageFormat)
    kept = {name: value for name, value in message.items() if name not in ("server", "servicePrincipal", "timestamp")}
    for name in ("tableObjJson", "ptnObjJson"):
        if kept.get(name):
            kept[name] = json.loads(kept[name])
    if "files" in kept:
        kept["files"] = [file.partition("###")[0] for file in kept["files"]]
    return {"type": event.eventType, "db": event.dbName, "table": event.tableName, **kept}


def test_events_that_clients_fire_are_logged_alike(beside: Beside) -> None:
    with suppress(AlreadyExistsException):
        beside.java.call("create_database", database("d"))
    beside.java.call("create_table", table("fired", keys=("k:string",)))
    beside.java.call("add_partitions", [partition(value, of="fired") for value in "12"])
    files = InsertEventRequestData(filesAdded=["file:/a", "file:/b"], replace=True)
    requests = [
        FireEventRequest(True, data, "d", "fired", values)
        for values in (None, ["1"])
        for data in (
            FireEventRequestData(insertData=files),
            FireEventRequestData(insertData=InsertEventRequestData(filesAdded=["file:/c"])),
            FireEventRequestData(refreshEvent=True),
            FireEventRequestData(refreshEvent=False),
        )
    ]
    logged = []
    for side in (beside.java, beside.ours):
        before = side.call("get_current_notificationEventId").eventId
        for request in requests:
            side.call("fire_listener_event", request)
        events = side.call("get_next_notification", NotificationEventRequest(before)).events
        logged.append([told(event) for event in events])
    assert [event["type"] for event in logged[0]] == ["INSERT", "INSERT", "RELOAD", "RELOAD"] * 2
    assert differences(*logged) == []
    check_log(beside)


def write(side: Side, prefix: str) -> int:
    """A writer's rounds: tables with partitions, altered, some dropped again. Returns the number of writes."""
    writes = 0
    for number in range(ROUNDS):
        name = f"{prefix}_{number}"
        side.call("create_table", table(name, keys=("k:string",)))
        side.call("add_partitions", [partition(str(value), of=name) for value in range(3)])
        changed = read_table(side, name)
        changed.sd = descriptor("a:int:first", "b:string", "c:date", location=changed.sd.location)
        side.call("alter_table", "d", name, changed)
        side.call("drop_partition", "d", name, ["0"], True)
        writes += 4
        if number % 4 == 3:
            side.call("drop_table", "d", name, True)
            writes += 1
    return writes


def test_both_write_at_once(beside: Beside) -> None:
    with suppress(AlreadyExistsException):
        beside.java.call("create_database", database("d"))
    clients = [
        (beside.client_of(side), f"{name}{number}")
        for number in range(WRITERS_A_SIDE)
        for name, side in (("java", beside.java), ("ours", beside.ours))
    ]
    with ThreadPoolExecutor(len(clients)) as pool:
        futures = [pool.submit(write, client, prefix) for client, prefix in clients]
        assert sum(future.result(timeout=240) for future in futures) == len(clients) * (ROUNDS * 4 + ROUNDS // 4)
    for client, _ in clients:
        client.close()
    names = [name for name in beside.ours.call("get_all_tables", "d") if name.startswith(("java", "ours"))]
    assert len(names) == len(clients) * (ROUNDS - ROUNDS // 4)
    assert differences(everything(beside.java), everything(beside.ours)) == []
    check_log(beside)
    for kind, column, of in (("MTable", "TBL_ID", "TBLS"), ("MPartition", "PART_ID", "PARTITIONS")):
        next_id = beside.column(
            f"SELECT NEXT_VAL FROM SEQUENCE_TABLE WHERE SEQUENCE_NAME = 'org.apache.hadoop.hive.metastore.model.{kind}'"
        )
        assert next_id[0] > max(beside.column(f"SELECT {column} FROM {of}"))


@pytest.mark.parametrize("kind", ["not null", "default", "check", "unique"])
def test_constraints_of_two_tables_in_one_request_are_seen(beside: Beside, kind: str) -> None:
    """Java logs one event for them, whose row names the first table."""
    with suppress(AlreadyExistsException):
        beside.java.call("create_database", database("d"))
    word = kind.replace(" ", "")
    names = [f"of_{word}_{number}" for number in range(3)]
    for name in names:
        beside.java.call("create_table", table(name))
    # Nothing of the first is cached: an event about it alone could be skipped.
    requested = [AllTableConstraintsRequest("d", name, "hive") for name in names[1:]]
    for _ in range(2):
        for request in requested:
            beside.ours.call("get_all_table_constraints", request)
    common: dict[str, Any] = {"catName": "hive", "table_db": "d", "column_name": "a"}
    common |= {"enable_cstr": True, "validate_cstr": False, "rely_cstr": True}
    match kind:
        case "not null":
            rows: list[Any] = [SQLNotNullConstraint(table_name=name, nn_name=f"n_{name}", **common) for name in names]
            beside.java.call("add_not_null_constraint", AddNotNullConstraintRequest(rows))
        case "default":
            rows = [
                SQLDefaultConstraint(table_name=name, default_value="1", dc_name=f"n_{name}", **common)
                for name in names
            ]
            beside.java.call("add_default_constraint", AddDefaultConstraintRequest(rows))
        case "check":
            rows = [
                SQLCheckConstraint(table_name=name, check_expression="a>1", dc_name=f"n_{name}", **common)
                for name in names
            ]
            beside.java.call("add_check_constraint", AddCheckConstraintRequest(rows))
        case _:
            rows = [SQLUniqueConstraint(table_name=name, key_seq=1, uk_name=f"n_{name}", **common) for name in names]
            beside.java.call("add_unique_constraint", AddUniqueConstraintRequest(rows))
    for request in requested:
        expected = plain(beside.java.call("get_all_table_constraints", request))
        assert plain(beside.ours.call("get_all_table_constraints", request)) == expected
