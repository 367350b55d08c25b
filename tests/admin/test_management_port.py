"""The management port of a running server, asked over HTTP, and what operators read there."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hmsclient.genthrift.hive_metastore.ttypes import Database
from prometheus_client.parser import text_string_to_metric_families

from hms_cache.config import load
from hms_cache.errors import ConfigurationError, StartupError
from tests.admin.running import TOKEN, Running, hms_cache


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    server = Running(tmp_path)
    yield server
    server.close()


def test_it_is_alive_and_ready_while_the_database_answers(running: Running) -> None:
    assert running.ask("/livez") == (200, "alive\n")
    assert running.ask("/readyz") == (200, "the database answers\n")
    assert json.loads(running.ask("/version")[1])["name"] == "hms-cache"
    assert running.ask("/nonsense")[0] == 404


def test_metrics_count_what_clients_did(running: Running) -> None:
    running.client.create_database(Database(name="shop"))
    for _ in range(3):
        running.client.get_database("shop")
    text = running.ask("/metrics")[1]
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["hms_cache_calls_total", "create_database", "ok"] == 1
    assert samples["hms_cache_calls_total", "get_database", "ok"] == 3
    assert samples["hms_cache_connections",] == 1
    assert samples["hms_cache_events_position",] >= 1
    assert samples["hms_cache_events_status", "ACTIVE"] == 1
    assert samples["hms_cache_cache_bytes",] > 0
    assert samples["hms_cache_database_statements_total",] > 0
    reads = sum(value for key, value in samples.items() if key[0] == "hms_cache_cache_reads_total")
    assert reads >= 3


def test_status_tells_calls_cache_and_events(running: Running) -> None:
    running.client.create_database(Database(name="shop"))
    running.client.get_database("shop")
    status = running.status()
    assert {call["method"] for call in status["calls"]} >= {"create_database"}  # type: ignore[attr-defined, index]
    cache, events = status["cache"], status["events"]
    assert isinstance(cache, dict) and isinstance(events, dict)
    assert cache["enabled"] is True
    assert cache["databases"] >= 1
    assert events["status"] == "ACTIVE"
    assert events["position"] >= 1
    names = json.loads(running.ask("/jsonmetrics")[1])
    assert names["events-processor.status"] == "ACTIVE"
    assert names["events-processor.events-received"] >= 1
    assert {f"events-processor.events-received-{m}min-rate" for m in (1, 5, 15)} <= names.keys()
    assert running.service.admin_sources is not None and running.service.admin_sources.poller is not None
    poller = running.service.admin_sources.poller
    poller.pause()
    assert poller.wait_until_idle(60)
    names, numbers = json.loads(running.ask("/jsonmetrics")[1]), poller.statistics()
    assert numbers.batch_durations.mean_s > numbers.fetch_durations.mean_s, "with what it takes to process"
    assert names["events-processor.avg-events-fetch-duration"] == pytest.approx(numbers.batch_durations.mean_s)


def test_config_shows_values_with_their_origin_and_no_secret(running: Running) -> None:
    text = running.ask("/config")[1]
    shown = json.loads(text)["settings"]
    assert (shown["server.port"]["value"], shown["server.port"]["origin"]) == ("0", "command line")
    assert shown["admin.token"]["value"] == "***"
    assert TOKEN not in text


def test_a_command_needs_the_token_and_changes_the_status(running: Running) -> None:
    assert running.ask("/events/pause", post=True)[0] == 401
    assert running.ask("/events/pause", "wrong", post=True)[0] == 401
    assert running.ask("/events/pause", TOKEN)[0] == 405
    running.client.get_all_databases()
    status, text = running.ask("/events/pause", TOKEN, post=True)
    assert (status, json.loads(text)["status"]) == (200, "PAUSED")
    assert running.ask("/events/pause", TOKEN, post=True)[0] == 409
    running.client.create_database(Database(name="shop"))
    assert running.client.get_all_databases() == ["default", "shop"], "paused, the database answers what is newer"
    assert json.loads(running.ask("/events/resume", TOKEN, post=True)[1])["status"] == "ACTIVE"
    assert running.client.get_all_databases() == ["default", "shop"]
    assert running.ask("/events/seek?event_id=99999", TOKEN, post=True)[0] == 409
    for name, wrong in itertools.product(("seek", "skip"), ("", "x", "-1", "1_0", quote("\u0661"), "9" * 30)):
        status, text = running.ask(f"/events/{name}?event_id={wrong}", TOKEN, post=True)
        assert status == 400 and "event_id" in text, text
    assert running.ask("/events/explode", TOKEN, post=True)[0] == 404


def test_without_a_token_commands_are_off(tmp_path: Path) -> None:
    server = Running(tmp_path, admin__token_file=None)
    try:
        assert server.ask("/events/pause", "", post=True)[0] == 403
        # The comparison of a table is the command `verify`: it reads the table from the database, any number of times.
        assert server.ask("/table/default.t/compare", post=True)[0] == 403
        page = server.ask("/table/default.t?format=html")[1]
        assert "<form" not in page and "admin.token_file" in page
    finally:
        server.close()


def test_without_a_cache_the_reason_is_told(tmp_path: Path) -> None:
    server = Running(tmp_path, cache__enabled=False)
    try:
        cache = server.status()["cache"]
        assert isinstance(cache, dict)
        assert (cache["enabled"], cache["off_reason"]) == (False, "cache.enabled is false")
        assert json.loads(server.ask("/jsonmetrics")[1]) == {"events-processor.status": "DISABLED"}
        assert server.ask("/events/pause", TOKEN, post=True)[0] == 409
        server.client.create_database(Database(name="shop"))
        assert server.client.get_database("shop").name == "shop"
    finally:
        server.close()


def test_a_chosen_port_that_is_taken_is_refused_and_the_default_one_gives_way(running: Running, tmp_path: Path) -> None:
    assert running.service.management_address is not None
    (tmp_path / "other").mkdir()
    with pytest.raises(StartupError, match="management port"):
        Running(tmp_path / "other", admin__port=running.service.management_address[1])
    (tmp_path / "third").mkdir()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # another server has it already: equally good
            taken.bind(("127.0.0.1", 9085))
            taken.listen()
        server = Running(tmp_path / "third", admin__port=None)
        try:
            assert server.service.management_address is not None
            assert server.service.management_address[1] != 9085
            assert server.ask("/livez")[0] == 200
        finally:
            server.close()


def test_the_management_port_may_not_be_the_clients_port() -> None:
    with pytest.raises(ConfigurationError, match=r"admin\.port must differ"):
        load(command_line={"admin.port": 9083}, environment={})


def test_the_command_line_asks_and_commands_a_running_server(running: Running, tmp_path: Path) -> None:
    assert running.service.management_address is not None
    where = ("--management", running.management)

    running.client.get_all_databases()
    status, text = hms_cache(tmp_path, "status", *where)
    assert status == 0
    assert "ACTIVE" in text and "get_all_databases" in text
    assert json.loads(hms_cache(tmp_path, "status", "--json", *where)[1])["events"]["status"] == "ACTIVE"
    commanded = ("--token-file", str(tmp_path / "token"))
    assert hms_cache(tmp_path, "events", "pause", *where, *commanded) == (0, "PAUSED: paused by an operator\n")
    refused, text = hms_cache(tmp_path, "events", "pause", *where, *commanded)
    assert refused == 1 and "cannot pause" in text and "Traceback" not in text
    assert hms_cache(tmp_path, "events", "seek", "0", *where, *commanded)[0] == 0
    assert hms_cache(tmp_path, "events", "resync", *where, *commanded)[0] == 0
    nobody, text = hms_cache(tmp_path, "status", "--management", "http://127.0.0.1:1")
    assert nobody == 1 and "no answer from" in text
