"""The change feed of a running server, over HTTP."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, delete, func, select, update

from hms_cache.store.schema import NOTIFICATION_LOG
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    Database,
    FieldSchema,
    NotificationEventRequest,
    NotificationEventResponse,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.admin.feed.listening import Listener
from tests.admin.running import TOKEN, Running
from tests.conftest import ServerLookup

LOG = NOTIFICATION_LOG.c


@pytest.fixture(
    scope="module",
    params=[
        "sqlite",
        pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.soak, pytest.mark.long]),
        pytest.param("postgresql", marks=[pytest.mark.postgresql, pytest.mark.soak, pytest.mark.long]),
    ],
)
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, database_servers: ServerLookup
) -> Iterator[Running]:
    databases = database_servers(request.param)
    url = databases.initialized_database()
    server = Running(
        tmp_path_factory.mktemp("feed"),
        database__url=url,
        admin__listener_heartbeat_s=0.3,
        admin__max_listeners=4,
        events__poll_interval_s=0.1,
    )
    yield server
    server.close()
    databases.give_back(url)


def make_database(running: Running, name: str) -> None:
    running.client.create_database(Database(name=name, locationUri=f"file:///tmp/none/{name}"))


def make_table(running: Running, database: str, name: str, comment: str = "") -> None:
    running.client.create_table(
        Table(
            tableName=name,
            dbName=database,
            owner="o",
            sd=StorageDescriptor(
                cols=[FieldSchema("a", "int", "")], serdeInfo=SerDeInfo(), parameters={}, bucketCols=[], sortCols=[]
            ),
            partitionKeys=[],
            parameters={"EXTERNAL": "TRUE", "comment": comment},
            tableType="EXTERNAL_TABLE",
        )
    )


@contextmanager
def log_of(running: Running) -> Iterator[Connection]:
    """The database itself, beside the server: one transaction."""
    engine = create_engine(running.sources.configuration.settings.database.url)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def logged(running: Running) -> list[dict[str, object]]:
    """The log in the database: the oracle."""
    names = ("event_id", "event_time_s", "event_type", "catalog", "database", "table")
    columns = (LOG.EVENT_ID, LOG.EVENT_TIME, LOG.EVENT_TYPE, LOG.CAT_NAME, LOG.DB_NAME, LOG.TBL_NAME)
    with log_of(running) as connection:
        rows = connection.execute(select(*columns).order_by(LOG.EVENT_ID)).tuples().all()
    return [dict(zip(names, row, strict=True)) for row in rows]


def clean(running: Running, up_to: int) -> None:
    """Deletes events like a cleaner."""
    with log_of(running) as connection:
        connection.execute(delete(NOTIFICATION_LOG).where(LOG.EVENT_ID <= up_to))


def test_old_and_new_events_arrive_once_and_in_order(running: Running) -> None:
    make_database(running, "one")
    with closing(Listener(running, after="oldest")) as listener:
        before = logged(running)
        assert listener.changes(len(before)) == before
        for number in range(5):
            make_table(running, "one", f"t{number}")
        assert listener.changes(5) == logged(running)[len(before) :]
        place = listener.last_id
    make_table(running, "one", "while_away")
    with closing(Listener(running, last_id=place, after="oldest")) as listener:
        assert [one["table"] for one in listener.changes(1)] == ["while_away"], "Last-Event-ID is the newer word"
    with closing(Listener(running)) as listener:
        make_table(running, "one", "from_now_on")
        assert [one["table"] for one in listener.changes(1)] == ["from_now_on"]


def test_filters_by_name_of_catalog_database_and_table(running: Running) -> None:
    for name in ("two", "three"):
        make_database(running, name)
    place = str(running.sources.read_log_end())
    for database in ("two", "three"):
        for table in ("a", "b"):
            make_table(running, database, table)
    renamed = running.client.get_table("three", "b")
    renamed.tableName = "c"
    running.client.alter_table("three", "b", renamed)
    running.client.drop_table("two", "a", False)
    expected = {
        (("database", "TWO"),): ["a", "b", "a"],
        (("database", "three"), ("table", "B")): ["b", "b"],  # the second is the rename, whose row names one of both
        (("database", "three"), ("table", "c")): ["b"],
        (("table", "a"),): ["a", "a", "a"],
        (("catalog", "hive"), ("database", "three"), ("table", "a")): ["a"],
    }
    for query, tables in expected.items():
        with closing(Listener(running, after=place, **dict(query))) as listener:
            found = [one["table"] for one in listener.changes(len(tables))]
            assert [table if table != "c" else "b" for table in found] == tables, query
            assert listener.step() is None, "nothing else but its place"
            assert int(listener.last_id.partition("-")[0]) == running.sources.read_log_end(), query
    with closing(Listener(running, after=place, catalog="elsewhere")) as listener:
        while int(listener.last_id.partition("-")[0] or 0) < running.sources.read_log_end():
            assert listener.step() is None


def test_messages_need_the_token_of_commands(running: Running) -> None:
    make_database(running, "secrets")
    place = str(running.sources.read_log_end())
    make_table(running, "secrets", "t")
    for token, status in (("", 401), ("wrong", 401), (TOKEN, 200)):
        with closing(Listener(running, after=place, messages="true", token=token)) as listener:
            assert listener.status == status
            if status == 200:
                (event,) = listener.changes(1)
                (logged_event,) = running.client.get_next_notification(
                    NotificationEventRequest(lastEvent=int(place))
                ).events
                assert (event["message"], event["message_format"]) == (
                    logged_event.message,
                    logged_event.messageFormat,
                )
    with closing(Listener(running, after=place)) as listener:
        assert "message" not in listener.changes(1)[0]


@pytest.mark.parametrize(
    "query",
    [
        *("after=-1", "after=x", "after=1-2", "after=9999999999999999999", "messages=1", "tabel=t"),
        # No object has an empty name: the feed would be silent for ever.
        *("database=", "table=%20", "catalog=&database=sales", "database=sales&database="),
        *("after=1&after=2", "messages=false&messages=true"),
    ],
)
def test_what_cannot_be_read_is_told(running: Running, query: str) -> None:
    assert running.service.management_address is not None
    with closing(http.client.HTTPConnection(*running.service.management_address, timeout=30)) as connection:
        connection.request("GET", f"/changes?{query}")
        answer = connection.getresponse()
        assert answer.status == 400  # before it is read: a feed has no end
        assert query.partition("=")[0] in answer.read().decode()


def test_a_place_that_is_gone(running: Running) -> None:
    make_database(running, "gone")
    with closing(Listener(running, after="oldest")) as listener:
        listener.changes(len(logged(running)))
        place = listener.last_id
    last = int(place.partition("-")[0])
    # All up to the position and no further: nothing is missing.
    make_table(running, "gone", "t0")
    clean(running, last)
    with closing(Listener(running, last_id=place)) as listener:
        assert [one["table"] for one in listener.changes(1)] == ["t0"]
    make_table(running, "gone", "t1")
    clean(running, last + 1)
    with closing(Listener(running, last_id=place)) as listener:
        assert listener.status == 410
        told = json.loads(listener.body())
        assert told["reason"] == "expired" and f"event {last + 1} is no longer" in told["problem"]
    with closing(Listener(running, after="oldest")) as listener:
        assert [one["table"] for one in listener.changes(1)] == ["t1"]
    for other in (f"{last + 2}-{'0' * 32}", str(last + 100)):
        with closing(Listener(running, last_id=other)) as listener:
            assert listener.status == 410
            assert json.loads(listener.body())["reason"] == "history_changed"
    assert 'change_feed_ends_total{reason="expired"}' in running.ask("/metrics")[1]


def test_a_log_that_is_replaced_ends_a_feed_that_listens(running: Running) -> None:
    make_database(running, "restored")
    with closing(Listener(running)) as listener:
        make_table(running, "restored", "t")
        listener.changes(1)
        with log_of(running) as connection:
            newest = connection.execute(select(func.max(LOG.EVENT_ID))).scalar_one()
            connection.execute(
                update(NOTIFICATION_LOG).where(LOG.EVENT_ID == newest).values(EVENT_TIME=LOG.EVENT_TIME - 7)
            )
        assert listener.end()["reason"] == "history_changed"
    with closing(Listener(running, last_id=listener.last_id)) as again:
        assert again.status == 410


def test_places_of_listeners_are_their_own(running: Running) -> None:
    def count() -> float:
        return running.sources.metrics.registry.get_sample_value("hms_cache_change_feed_listeners") or 0

    while count():  # those of previous tests
        assert running.ask("/livez")[0] == 200
    listeners = [Listener(running) for _ in range(4)]
    assert [one.status for one in listeners] == [200] * 4 and count() == 4
    with closing(Listener(running)) as refused:
        assert refused.status == 503 and refused.answer.headers["Retry-After"]
    others = running.sources.metrics.registry.get_sample_value("hms_cache_management_connections")
    assert others is not None and others <= 1, "at most the refused"
    for one in listeners:
        one.close()
    while count():
        assert running.ask("/livez")[0] == 200
    with closing(Listener(running)) as listener:
        assert listener.status == 200


def test_who_leaves_while_its_place_in_the_log_is_looked_for_takes_no_place(running: Running) -> None:
    """A connection that is closed before the reply: the database is read meanwhile, and nobody gets the reply."""
    assert running.service.management_address is not None
    for _ in range(20):
        with socket.create_connection(running.service.management_address, timeout=30) as left:
            left.sendall(b"GET /changes HTTP/1.1\r\nHost: localhost\r\n\r\n")
    for _ in range(2):  # positions in the log are looked up in turn: those of disconnected listeners before these
        with closing(Listener(running)) as listener:
            assert listener.status in (200, 503)
    for _ in range(1000):
        if not running.sources.metrics.registry.get_sample_value("hms_cache_change_feed_listeners"):
            break
        assert running.ask("/livez")[0] == 200
    else:
        raise AssertionError("somebody who has left is still counted")


def test_heartbeats_carry_the_place(running: Running) -> None:
    with closing(Listener(running)) as listener:
        for _ in range(3):
            assert listener.step() is None
        assert listener.positions == 3


def test_the_place_moves_on_while_every_event_is_left_out(tmp_path: Path) -> None:
    """Events occur constantly, none of which it wants: silence would get it disconnected, and its position be cleaned
    away."""
    running = Running(tmp_path, admin__listener_heartbeat_s=1, events__poll_interval_s=0.1)
    heard = threading.Event()

    def write() -> None:
        while not heard.is_set():
            make_database(running, "busy")
            running.client.drop_database("busy", False, False)

    try:
        with closing(Listener(running, database="quiet")) as listener, ThreadPoolExecutor(1) as thread:
            assert listener.step() is None
            first = listener.last_id
            writing = thread.submit(write)
            try:
                while listener.last_id == first:
                    assert listener.step() is None
            finally:
                heard.set()
            writing.result()
            with closing(Listener(running, last_id=listener.last_id)) as again:
                assert again.status == 200
    finally:
        running.close()


def test_a_slow_one_is_told_and_others_are_not_kept(tmp_path: Path) -> None:
    running = Running(
        tmp_path,
        admin__listener_buffer_bytes=1024 * 1024,
        admin__request_timeout_s=120,
        admin__listener_heartbeat_s=0.3,
        admin__max_listeners=4,
        events__poll_interval_s=0.1,
    )
    try:
        make_database(running, "d")
        slow, quick = Listener(running), Listener(running)
        slow_messages = Listener(running, receive_bytes=64 * 1024, messages="true", token=TOKEN)
        count = 45
        with ThreadPoolExecutor(1) as thread:
            read = thread.submit(quick.changes, count)
            for number in range(count):  # 9 MB, more than its socket and the buffer hold
                make_table(running, "d", f"t{number}", "x" * 200_000)
            assert [one["table"] for one in read.result(timeout=60)] == [f"t{number}" for number in range(count)]
        seen = 0
        while (received := slow_messages.next()).kind == "change":
            assert received.data["table"] == f"t{seen}", "no gap before the end"
            seen += 1
        assert received.data["reason"] == "slow" and 0 < seen < count
        place = slow_messages.last_id
        with closing(Listener(running, last_id=place)) as again:
            assert [one["table"] for one in again.changes(count - seen)] == [f"t{n}" for n in range(seen, count)]
        for one in (slow, slow_messages):
            one.close()
    finally:
        running.close()
    assert quick.end()["reason"] == "stopping"
    quick.close()


@pytest.mark.parametrize("max_response", [1, 2])
def test_few_events_in_an_answer_to_clients_are_no_end_of_the_feed(max_response: int, tmp_path: Path) -> None:
    """With `events.max_response = 1`, it was silent for ever: it only got the row at its position."""
    running = Running(tmp_path, events__poll_interval_s=0.1, events__max_response=max_response)
    try:
        make_database(running, "d")
        with closing(Listener(running, after="oldest")) as listener:
            listener.changes(len(logged(running)))
            for number in range(3):
                make_table(running, "d", f"t{number}")
            assert [one["table"] for one in listener.changes(3)] == ["t0", "t1", "t2"]
    finally:
        running.close()


def test_one_that_catches_up_with_long_messages_reads_each_a_few_times(tmp_path: Path) -> None:
    """The part sent at once is small compared with the part read at once, and nothing is kept for one listener."""
    running = Running(tmp_path, events__poll_interval_s=0.1)
    try:
        make_database(running, "d")
        count = 100
        for number in range(count):
            make_table(running, "d", f"t{number}", "x" * 20_000)
        read_notifications = running.sources.read_notifications
        read: list[int] = []

        def note(request: NotificationEventRequest, known_event_id: int | None) -> NotificationEventResponse:
            found = read_notifications(request, known_event_id)
            read.append(len(found.events))
            return found

        object.__setattr__(running.sources, "read_notifications", note)
        with closing(Listener(running, after="oldest", messages="true", token=TOKEN)) as listener:
            before = len(logged(running)) - count
            assert [one["table"] for one in listener.changes(before + count)][before:] == [
                f"t{number}" for number in range(count)
            ]
        assert sum(read) < 8 * count
    finally:
        running.close()


def test_one_address_leaves_places_for_others(tmp_path: Path) -> None:
    running = Running(tmp_path, admin__max_listeners=3, admin__max_listeners_per_address=2)
    try:
        first = [Listener(running) for _ in range(3)]
        assert [one.status for one in first] == [200, 200, 503]
        with closing(Listener(running, source="127.0.0.2")) as other:
            assert other.status == 200
            with closing(Listener(running, source="127.0.0.3")) as late:
                assert late.status == 503
        first[0].close()
        statuses = [0]
        while statuses[-1] != 200:  # until the server has noticed
            with closing(Listener(running)) as again:
                statuses.append(again.status)
        for one in first:
            one.close()
    finally:
        running.close()


@pytest.mark.soak
def test_a_thousand_listeners(tmp_path: Path) -> None:
    running = Running(tmp_path, events__poll_interval_s=0.1, admin__max_listeners_per_address=0)
    try:
        make_database(running, "d")
        listeners = [Listener(running) for _ in range(1000)]
        assert {one.status for one in listeners} == {200}
        for number in range(20):
            make_table(running, "d", f"t{number}")
        for one in listeners:
            assert [change["table"] for change in one.changes(20)] == [f"t{number}" for number in range(20)]
        assert running.ask("/livez")[0] == 200
    finally:
        running.close()
    for one in listeners:
        assert one.end()["reason"] == "stopping"
        one.close()


def test_a_listener_reads_nothing_older_than_what_it_heard(
    tmp_path_factory: pytest.TempPathFactory, database_servers: ServerLookup
) -> None:
    """P3: a listener that reads again what an event names would otherwise keep the previous state."""
    databases = database_servers("sqlite")
    url = databases.initialized_database()
    settings: dict[str, object] = {"database__url": url, "events__poll_interval_s": 0}
    with (
        closing(Running(tmp_path_factory.mktemp("here"), **settings, cache__max_staleness_ms=600_000)) as here,
        closing(Running(tmp_path_factory.mktemp("elsewhere"), **settings)) as elsewhere,
    ):
        here.client.get_all_databases()
        make_database(elsewhere, "earlier")
        assert "earlier" not in here.client.get_all_databases(), "readers may be shown what was"
        with closing(Listener(here, after="latest")) as listener:
            make_database(elsewhere, "later")
            assert len(listener.changes(1)) == 1
            assert "later" in here.client.get_all_databases()
    databases.give_back(url)
