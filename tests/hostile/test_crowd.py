"""200 hostile connections of all kinds beside 4 honest clients: memory, waiting times, and what is left afterwards."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles

import pytest

from tests.hostile.attacks import ATTACKS, PATIENCE_S
from tests.hostile.crowd import CONNECTIONS
from tests.hostile.observed_server import LIMITS, memory_bound, observed_server
from tests.servers import metastore_client

ROOT = Path(__file__).parents[2]

HONEST_CLIENTS = 4

TOLERATED_S = 0.02
"""A wait up to this is none, whatever the quiet server's was: on a busy machine that may be less than a millisecond."""

JUDGED_FROM_S = 60
"""Waiting times of a shorter run are printed only: they are as much those of the machine's other work."""


def waits_s(port: int, stop: threading.Event) -> list[float]:
    """How long each call of an honest client took."""
    waits: list[float] = []
    with metastore_client(port) as client:
        while not stop.wait(0.005):
            started_s = time.perf_counter()
            if len(waits) % 2:
                assert client.getName() == "new db based metaserver"
            else:
                assert client.get_database("default").name == "default"
            waits.append(time.perf_counter() - started_s)
    return waits


def p99_s(port: int, until: threading.Event) -> float:
    """Of all honest clients together."""
    with ThreadPoolExecutor(HONEST_CLIENTS) as pool:
        found = [pool.submit(waits_s, port, until) for _ in range(HONEST_CLIENTS)]
        return quantiles([wait for one in found for wait in one.result()], n=100)[98]


def quiet_p99_s(port: int) -> float:
    """Without a crowd, for four seconds."""
    stop = threading.Event()
    timer = threading.Timer(4, stop.set)
    timer.start()
    return p99_s(port, stop)


def crowded_p99_s(port: int, duration_s: float, look: Callable[[], None]) -> tuple[float, int, int]:
    """Beside a crowd, in which `look` is called again and again; and its attacks, and its connections at most."""
    over = threading.Event()
    command = [sys.executable, "-m", "tests.hostile.crowd", str(port), str(duration_s)]
    crowd = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    with ThreadPoolExecutor(1) as pool:
        measured = pool.submit(p99_s, port, over)
        try:
            while crowd.poll() is None:
                look()
                over.wait(0.1)
        finally:
            over.set()
            if crowd.poll() is None:
                crowd.kill()
        output, _ = crowd.communicate()
        crowded_s = measured.result()
    assert crowd.returncode == 0
    attacks, most_open = map(int, output.split())
    return crowded_s, attacks, most_open


@contextmanager
def control_server() -> Iterator[int]:
    """The port of a server that does nothing: what is slow there is the machine's."""
    command = [sys.executable, "-m", "tests.hostile.control_server"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.communicate()


@pytest.mark.soak
@pytest.mark.parametrize("duration_s", [15, pytest.param(60, marks=pytest.mark.long)])
def test_a_crowd_of_hostile_clients(duration_s: int, tmp_path: Path) -> None:
    with control_server() as port:
        control_quiet_s = quiet_p99_s(port)
        control_crowded_s, _, _ = crowded_p99_s(port, duration_s, lambda: None)
    with observed_server(tmp_path) as server:
        quiet_sockets = server.open_sockets()
        quiet_s = quiet_p99_s(server.port)
        quiet_bytes = server.resident_bytes()
        bytes_held: list[int] = []

        def look() -> None:
            bytes_held.append(server.resident_bytes())
            assert server.is_alive()

        crowded_s, attacks, most_open = crowded_p99_s(server.port, duration_s, look)
        sys.stdout.write(
            f"{attacks} attacks, {most_open} connections; p99 {quiet_s * 1000:.1f} ms quiet, "
            f"{crowded_s * 1000:.1f} ms crowded; of a server that does nothing {control_quiet_s * 1000:.1f} and "
            f"{control_crowded_s * 1000:.1f} ms; memory {quiet_bytes >> 20} MiB quiet, {max(bytes_held) >> 20} MiB at "
            f"most of {memory_bound(LIMITS, quiet_bytes) >> 20}\n"
        )
        assert attacks > 2 * len(ATTACKS) and most_open > CONNECTIONS / 4
        assert max(bytes_held) <= memory_bound(LIMITS, quiet_bytes)
        if duration_s >= JUDGED_FROM_S:
            assert crowded_s <= max(3 * quiet_s, TOLERATED_S)
        end_s = time.monotonic() + PATIENCE_S
        while left := server.metrics()["hms_cache_connections"]:
            assert time.monotonic() < end_s, f"{left} connections are left"
            time.sleep(0.02)
        metrics = server.metrics()
        for name in ("calls_in_flight", "buffered_bytes", "session_bytes"):
            assert metrics[f"hms_cache_{name}"] == 0, name
        assert server.open_sockets() <= quiet_sockets + 1
