"""Real failovers: the replica is promoted while one event is lost, and another write gets its id (P7).

No answer is wrong, calls fail within their limits, and memory answers again afterwards.
"""

from __future__ import annotations

import os
import re
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.world import create_database, table
from tests.consistency import mutants
from tests.consistency.failover import TABLES, VERSION, Epochs, Pair
from tests.consistency.observers import management_port, wait_until
from tests.consistency.proxy import Proxy, proxy_to
from tests.consistency.runs import STALENESS_S
from tests.consistency.workload import Client
from tests.databases import ServerMissing
from tests.servers import ServerProcess

LONGEST_CALL_S = 30.0
"""One statement that hangs (2 s and a margin of 10 s for the socket), once more on a new connection."""

SETTINGS: dict[str, object] = {
    "cache.warm": "off",
    "events.poll_interval_s": 0.2,
    "database.connect_timeout_s": 2,
    "database.check_connect_timeout_s": 1,
    "database.check_timeout_s": 1,
    "database.statement_timeout_s": 2,
    "database.retry_total_s": 10,
    "warehouse.files": "leave",
}
NOTICED_S = 10.0
"""Readers that ask for no proof: until the poller has noticed, by a statement that hangs (1 s and a margin of 1 s) or a
connection that cannot be opened, and by the next one on a new connection."""


class Reader:
    """Reads one table's version repeatedly, on one connection, which is opened again when it breaks."""

    def __init__(self, port: int, name: str) -> None:
        self.name = name
        self.outcomes: list[tuple[float, float, str | Exception]] = []
        """(began, ended, version or exception)"""
        self.stopping = threading.Event()
        self._port = port
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        client = Client([self._port])
        while not self.stopping.is_set():
            began_s = time.monotonic()
            outcome: str | Exception
            try:
                outcome = client.connections[0].get_table("d", self.name).parameters[VERSION]
            except Exception as error:
                outcome = error
            self.outcomes.append((began_s, time.monotonic(), outcome))
            if isinstance(outcome, TTransportException):
                client.close()
                client = Client([self._port])
            # A client does not retry at once, and the servers need the processors, too.
            self.stopping.wait(0.05 if isinstance(outcome, Exception) else 0.002)
        client.close()


def _hits(server: ServerProcess) -> float:
    """Reads answered from memory so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{management_port(server)}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    found = re.findall(r'^hms_cache_cache_reads_total{[^}]*outcome="hit"[^}]*} (\S+)$', text, re.MULTILINE)
    return sum(map(float, found))


def _crash(pair: Pair, proxy: Proxy) -> None:
    """The primary is gone, and its address leads to the replica."""
    proxy.cut()
    pair.promote()


def _hang(pair: Pair, proxy: Proxy) -> None:
    """It no longer answers, and closes nothing."""
    pair.hang()
    pair.promote()


def _stall(pair: Pair, proxy: Proxy) -> None:
    """What is sent on open connections is dropped silently (no RST)."""
    proxy.stall()
    pair.promote()


def _demote(pair: Pair, proxy: Proxy) -> None:
    """It accepts no more writes; connections stay open, and are still answered."""
    pair.demote()
    pair.promote()


FAILURES = {"crash": _crash, "hang": _hang, "stall": _stall, "demote": _demote}


def _cases() -> Iterator[Any]:
    for kind in ("mariadb", "postgresql"):
        for failure in FAILURES:
            if (kind, failure) == ("postgresql", "demote"):
                continue  # a restart, which ends its connections: a crash
            for setting in STALENESS_S:
                quick = (kind, failure, setting) == ("mariadb", "crash", "0")
                marks = [getattr(pytest.mark, kind), *([] if quick else [pytest.mark.soak, pytest.mark.long])]
                if not quick and setting == "0" and (kind, failure) in (("mariadb", "demote"), ("postgresql", "stall")):
                    marks.remove(pytest.mark.long)
                yield pytest.param(kind, failure, setting, marks=marks, id=f"{kind}-{failure}-{setting}")


@pytest.mark.parametrize(("kind", "failure", "setting"), list(_cases()))
def test_a_failover_that_loses_an_event(kind: str, failure: str, setting: str, tmp_path: Path) -> None:
    _run(kind, failure, setting, tmp_path, ServerProcess)


class Mutated(ServerProcess):
    program = mutants.program(mutants.identity_not_checked.__name__)


@pytest.mark.mariadb
@pytest.mark.soak
@pytest.mark.long
def test_a_server_that_takes_an_equal_id_for_a_proof_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="t at lost"):
        _run("mariadb", "crash", "0", tmp_path, Mutated)


def _run(kind: str, failure: str, setting: str, tmp_path: Path, server_kind: type[ServerProcess]) -> None:
    with ExitStack() as stack:
        try:
            pair = Pair(kind, tmp_path, stack)
        except ServerMissing as missing:
            if os.environ.get("HMS_CACHE_REQUIRE_DATABASES") == "1":
                pytest.fail(str(missing))
            pytest.skip(str(missing))
        create_database(pair.writer(pair.primary), "d")
        for name in TABLES:
            pair.writer(pair.primary).writes.tables.create_table(table("d", name, **{VERSION: "first"}))
        pair.wait_for_replica()
        address = pair.primary.admin_url
        proxy = stack.enter_context(proxy_to(str(address.host), int(address.port or 0)))
        url = pair.url(pair.primary, proxy.port)
        settings = {**SETTINGS, "cache.max_staleness_ms": setting}
        server = server_kind(tmp_path / "server", url, settings)
        server.start()
        stack.callback(server.stop)
        _fail_over(pair, proxy, server, failure, STALENESS_S[setting])


def _fail_over(pair: Pair, proxy: Proxy, server: ServerProcess, failure: str, staleness_s: float) -> None:
    readers = [Reader(server.port, name) for name in TABLES]
    for reader in readers:
        reader.thread.start()
    wait_until(lambda: all(len(reader.outcomes) > 50 for reader in readers), "the readers read")
    epochs = Epochs()
    epochs.begin(lambda: None, lambda: pair.versions(pair.primary))
    epochs.from_s[0] = float("-inf")
    pair.wait_for_replica()
    pair.stop_replication()
    epochs.begin(lambda: pair.write(pair.primary, "t", "lost"), lambda: pair.versions(pair.primary))
    lost_event_id = pair.last_event_id(pair.primary)
    wait_until(lambda: readers[0].outcomes[-1][2] == "lost", "the event that will be lost is applied")

    def fail_over() -> None:
        FAILURES[failure](pair, proxy)
        pair.write(pair.replica, "u", "other")
        assert pair.last_event_id(pair.replica) == lost_event_id
        target = pair.replica.admin_url
        proxy.switch(str(target.host), int(target.port or 0))
        if failure == "crash":
            proxy.mend()

    failed_s = time.monotonic()
    epochs.begin(fail_over, lambda: pair.versions(pair.replica))
    moved_s = time.monotonic()
    assert epochs.states[-1] == ("first", "other")

    def is_healed() -> bool:
        last = [reader.outcomes[-1] for reader in readers]
        return [one[2] for one in last] == ["first", "other"] and all(one[0] > moved_s for one in last)

    wait_until(is_healed, "reads show the database as it is now")
    healed_s = time.monotonic()
    hits = _hits(server)
    wait_until(lambda: _hits(server) > hits + 20, "memory answers again")
    epochs.begin(lambda: pair.write(pair.replica, "t", "last"), lambda: pair.versions(pair.replica))
    wait_until(lambda: readers[0].outcomes[-1][2] == "last", "events are followed again")
    for reader in readers:
        reader.stopping.set()
        reader.thread.join(LONGEST_CALL_S)
        assert not reader.thread.is_alive(), "a call that does not come back"
    grace_s = staleness_s if staleness_s != float("inf") else NOTICED_S
    for reader in readers:
        _judge(reader, epochs, grace_s, failed_s, healed_s)


def _judge(reader: Reader, epochs: Epochs, grace_s: float, failed_s: float, healed_s: float) -> None:
    shown_after_s = float("inf")
    """When the first answer had come that can only be of after the failover."""
    for began_s, ended_s, outcome in reader.outcomes:
        assert ended_s - began_s < LONGEST_CALL_S, "a call within its limits"
        if isinstance(outcome, Exception):
            assert isinstance(outcome, TApplicationException | TTransportException | ttypes.MetaException), outcome
            assert failed_s - 0.5 < ended_s and began_s < healed_s, f"only the failover fails reads: {outcome}"
            continue
        assert epochs.explains(reader.name, outcome, began_s - grace_s, ended_s), (
            f"{reader.name} at {outcome}, {began_s - failed_s:.3f} to {ended_s - failed_s:.3f} s after the failure;"
            f" the replica was the primary at {epochs.from_s[2] - failed_s:.3f} to {epochs.until_s[1] - failed_s:.3f} s"
        )
        lost = (reader.name, outcome) in (("t", "lost"), ("u", "first"))
        if ended_s > failed_s and not lost:
            shown_after_s = min(shown_after_s, ended_s)
        assert not (lost and began_s > shown_after_s), "what was lost does not come back"
