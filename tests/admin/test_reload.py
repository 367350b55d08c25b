"""What a reload applies, what needs a restart, and what the log says about slow calls."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from hmsclient.genthrift.hive_metastore import ttypes

from hms_cache.app.log_output import JsonFormatter, TextFormatter
from hms_cache.call_context import call_context
from hms_cache.config import load
from tests.admin.running import TOKEN, Running
from tests.admin.test_commands import new_table


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    server = Running(tmp_path, cache__refill="none")
    yield server
    server.close()


def reload(server: Running, directory: Path, **settings: object) -> tuple[list[str], list[str]]:
    """With the settings of `Running` and these."""
    return server.service.reload(
        load(
            command_line={
                "server.port": 0,
                "admin.port": 0,
                "admin.token_file": str(directory / "token"),
                "database.url": f"sqlite:///{directory / 'hms.db'}",
                "warehouse.directory": str(directory / "warehouse"),
                "catalog.client_capability_check": False,
                "cache.refill": "none",
            }
            | {name.replace("__", "."): value for name, value in settings.items()},
            environment={},
        )
    )


def test_the_page_shows_what_is_in_force_and_what_waits(running: Running, tmp_path: Path) -> None:
    taken, refused = reload(running, tmp_path, cache__max_staleness_ms=500, server__threads=3)
    assert (taken, refused) == (["cache.max_staleness_ms"], ["server.threads"])
    page = running.json("/config")
    staleness, threads = page["settings"]["cache.max_staleness_ms"], page["settings"]["server.threads"]
    assert (staleness["value"], staleness["origin"], staleness["pending"]) == ("500", "command line", False)
    assert threads["origin"] == "default" and threads["pending"], "the value in force is shown"
    assert page["pending_restart"] == ["server.threads"]
    assert reload(running, tmp_path, cache__max_staleness_ms=500, server__threads=3) == ([], ["server.threads"])
    reload(running, tmp_path)
    assert running.json("/config")["pending_restart"] == []


def test_a_new_token_is_taken(running: Running, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("another\n")
    assert reload(running, tmp_path) == (["admin.token"], [])
    assert running.ask("/commands/flush", TOKEN, post=True)[0] == 401
    assert running.ask("/commands/flush", "another", post=True)[0] == 200


def test_a_slow_call_is_logged_with_where_its_time_went(
    running: Running, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running.client.create_database(ttypes.Database(name="shop"))
    running.client.create_table(new_table("sales"))
    assert not [line for line in caplog.messages if "slow call" in line]
    assert reload(running, tmp_path, log__slow_call_s="1us") == (["log.slow_call_s"], [])
    running.client.get_table("shop", "sales")
    (line,) = [line for line in caplog.messages if line.startswith("slow call: get_table")]
    assert "(ok)" in line and "table: miss" in line
    assert int(line.split("): ")[1].split(" statements")[0]) >= 1
    for _ in range(2):
        running.client.get_table_objects_by_name("shop", ["sales"])
    lines = [line for line in caplog.messages if line.startswith("slow call: get_table_objects_by_name")]
    assert "tables: hit" in lines[1]


def test_log_lines_carry_the_number_of_their_call(running: Running) -> None:
    record = logging.LogRecord("hms_cache.server", logging.INFO, __file__, 1, "message", (), None)
    assert " hms_cache.server: message" in TextFormatter().format(record)
    call_context.begin(connection=7)
    try:
        assert call_context.identifier.startswith("7.")
        assert f" hms_cache.server: [{call_context.identifier}] message" in TextFormatter().format(record)
        assert json.loads(JsonFormatter().format(record))["call"] == call_context.identifier
    finally:
        call_context.end()
    assert "call" not in json.loads(JsonFormatter().format(record))
