"""A server that is stopped or killed, and started again with its cache dump."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from hms_cache.app import dumping
from hms_cache.app.service import Service
from hms_cache.cache.dump import writing
from tests.app.test_service import client, configured
from tests.cache.world import partition, table
from tests.consistency.observers import wait_until
from tests.servers import metastore_client, server_process

TABLES = [f"t{number}" for number in range(20)]


def start(tmp_path: Path, **settings: Any) -> tuple[Service, str]:
    """A server with a dump, and its URI."""
    given = {"cache__dump_file": str(tmp_path / "dump"), "cache__warm": "off", "cache__refill": "none", **settings}
    service = Service(configured(tmp_path, admin__enabled=True, admin__port=0, **given))
    return service, service.start()


def cache_of(service: Service) -> Any:
    assert service.admin_sources is not None
    return service.admin_sources.cache


def read_all(uri: str) -> list[Any]:
    with client(uri) as metastore:
        found: list[Any] = [metastore.get_table("default", name) for name in TABLES]
        found.append(metastore.get_all_tables("default"))
        found.append(metastore.get_partitions("default", "p", -1))
        return found


def make_tables(uri: str) -> None:
    with client(uri) as metastore:
        for name in TABLES:
            metastore.create_table(table("default", name))
        metastore.create_table(table("default", "p", keys=(("day", "string"),)))
        metastore.add_partitions([partition(table("default", "p"), (str(day),)) for day in range(30)])


def test_a_server_that_is_stopped_starts_with_what_it_held(tmp_path: Path) -> None:
    service, uri = start(tmp_path)
    make_tables(uri)
    first = read_all(uri)
    service.stop()
    assert (tmp_path / "dump").exists()
    service, uri = start(tmp_path)
    cache = cache_of(service)
    wait_until(lambda: cache.freshness.may_serve(), "the poller's first step")
    assert read_all(uri) == first
    assert cache.loader.loads == 0
    assert service.reads_by_outcome() == {"hit": 22}
    assert service.metrics.cache.dump_discarded._value.get() == 0
    service.stop()


def test_what_is_dropped_on_command_does_not_come_back(tmp_path: Path) -> None:
    """The database was changed by hand, and a resync is to apply what no event contains: the dump holds the state
    before."""
    service, uri = start(tmp_path)
    make_tables(uri)
    read_all(uri)
    service.stop()
    assert (tmp_path / "dump").exists()
    for command in ("all", "one", "partitions", "rules", "reset"):
        service, uri = start(tmp_path)
        read_all(uri)
        cache = cache_of(service).shared
        key = next(iter(cache.tables))
        match command:
            case "all":
                cache.forget_all()
            case "one":
                cache.forget(key)
            case "partitions":
                cache.forget_partitions(key, (("1",),))
            case "reset":  # a resync, or another history of the log: the earlier state may belong to it
                cache.reset("a test", cache.position)
            case _:
                service.reload(configured(tmp_path, admin__enabled=True, admin__port=0, cache__exclude="x.*"))
        assert not (tmp_path / "dump").exists(), command
        read_all(uri)
        service.stop()
        assert (tmp_path / "dump").exists(), "what is held since is written"


def test_a_dump_taken_before_a_command_does_not_take_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service, uri = start(tmp_path)
    make_tables(uri)
    read_all(uri)
    write = writing.write_dump

    def command_meanwhile(*arguments: Any) -> int:
        cache_of(service).shared.forget_all()
        return write(*arguments)

    monkeypatch.setattr(dumping, "write_dump", command_meanwhile)
    service.stop()
    assert not list(tmp_path.glob("dump*"))


def test_a_dump_taken_after_a_command_was_told_lacks_what_it_drops(tmp_path: Path) -> None:
    """A dump captured between the command and the drop would restore what is dropped."""
    service, uri = start(tmp_path)
    make_tables(uri)
    read_all(uri)
    cache = cache_of(service).shared
    remove = cache.forgetting_listener

    def removed_and_written_again() -> None:
        remove()
        remove.__self__._write_last()
        shutil.copy(tmp_path / "dump", tmp_path / "copy")

    cache.forgetting_listener = removed_and_written_again
    for key in list(cache.tables):
        cache.forget(key)
    service.stop()
    shutil.move(tmp_path / "copy", tmp_path / "dump")
    service, uri = start(tmp_path)
    assert not cache_of(service).shared.tables
    service.stop()


def test_what_was_let_in_by_other_rules_is_not_read(tmp_path: Path) -> None:
    service, uri = start(tmp_path)
    make_tables(uri)
    read_all(uri)
    service.stop()
    service, uri = start(tmp_path, cache__exclude="default.t1")
    assert cache_of(service).shared.position == -1 or not cache_of(service).shared.tables
    assert service.metrics.cache.dump_discarded._value.get() == 1
    read_all(uri)
    service.stop()


def test_a_dump_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    service, uri = start(tmp_path, cache__dump_file=str(tmp_path / "missing" / "dump"))
    make_tables(uri)
    read_all(uri)
    service.stop()
    assert b'hms_cache_cache_dump_writes_total{outcome="failed"} 1' in service.metrics.text()


@pytest.mark.parametrize("kind", ["text", "directory", "link", "short"])
def test_another_file_of_that_name_stays_as_it_is(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "precious"
    match kind:
        case "directory":
            path.mkdir()
        case "link":
            (tmp_path / "real").write_text("precious")
            path.symlink_to(tmp_path / "real")
        case _:
            path.write_text("precious" * (100 if kind == "text" else 1))
    before = path.stat().st_mtime_ns
    service, uri = start(tmp_path, cache__dump_file=str(path))
    make_tables(uri)
    read_all(uri)
    cache_of(service).shared.forget_all()
    service.stop()
    assert path.stat().st_mtime_ns == before and (kind != "link" or path.is_symlink())


@pytest.mark.soak
@pytest.mark.parametrize(
    "database_kind",
    ["sqlite", "mariadb", pytest.param("postgresql", marks=pytest.mark.long)],
    indirect=True,
)
def test_a_server_killed_at_any_moment_answers_as_the_database_does(
    initialized_database_url: str, tmp_path: Path
) -> None:
    """It writes a dump each second, while another client changes tables; it is killed at random."""
    chance = random.Random(3)
    settings: dict[str, object] = {
        "cache.dump_file": str(tmp_path / "dump"),
        "cache.dump_interval_s": 1,
        "cache.dump_bytes_per_s": 1024**2,
    }
    with server_process(tmp_path / "other", initialized_database_url, {"cache.enabled": "false"}) as other:
        with metastore_client(other.port) as truth:
            for name in TABLES:
                truth.create_table(table("default", name))
            for round_ in range(3):
                with server_process(tmp_path / f"one{round_}", initialized_database_url, settings) as one:
                    with metastore_client(one.port) as requested:
                        for _ in range(chance.randrange(20, 200)):
                            name = chance.choice(TABLES)
                            if chance.random() < 0.3:
                                changed = truth.get_table("default", name)
                                changed.parameters = {**changed.parameters, "n": str(chance.random())}
                                truth.alter_table("default", name, changed)
                            assert requested.get_table("default", name) == truth.get_table("default", name)
                        for name in TABLES:
                            assert requested.get_table("default", name) == truth.get_table("default", name)
                    wait_until(lambda: (tmp_path / "dump").exists(), "a dump")
                    one.kill()
                for name in chance.sample(TABLES, 3):
                    changed = truth.get_table("default", name)
                    changed.parameters = {**changed.parameters, "n": str(chance.random())}
                    truth.alter_table("default", name, changed)
        assert any("dump is read" in path.read_text() for path in tmp_path.rglob("*.log"))
