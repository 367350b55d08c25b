"""200 hostile connections of all kinds beside 4 honest clients: memory, waiting times, and what remains afterwards.

Attackers come from other machines, so here they have a processor of their own, with this process; the server and the
honest clients have another. The quiet server is measured in the same layout, and so is a server that does nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hostile.attacks import ATTACKS, MAX_WAIT_S
from tests.hostile.crowd import CONNECTIONS
from tests.hostile.observed_server import LIMITS, memory_bound, observed_server

ROOT = Path(__file__).parents[2]

Waits = dict[str, float]
"""What `tests.hostile.honest` prints."""

TOLERATED_MS = 1.0
"""A wait up to this is none, whatever the quiet server's was: timers, and processors that wake up, are no better."""

QUIET_S = 10.0
QUIET_UNJUDGED_S = 2.0

JUDGED_FROM_S = 60
"""Waiting times of a shorter run are printed only, and no other server's beside them: they are as much those of the
machine's other work."""

LOOKS_S = 0.1
"""Between two looks at the server, in quiet and in the crowd."""

PROCESSORS = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else [0]

OF_THE_SERVER, OF_THE_CROWD = PROCESSORS[-1:], PROCESSORS[:-1] or PROCESSORS


@contextmanager
def on(processors: list[int]) -> Iterator[None]:
    """This thread and what it starts run on that processor; on any processor if the system cannot restrict them."""
    if sys.platform != "linux":
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def honest_clients(port: int) -> Iterator[Waits]:
    """They send requests until the end, when the result is filled in."""
    found: Waits = {}
    command = [sys.executable, "-m", "tests.hostile.honest", str(port)]
    with on(OF_THE_SERVER):
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    try:
        yield found
    finally:
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    found.update(json.loads(output))


def quiet(port: int, duration_s: float, look: Callable[[], None]) -> Waits:
    """How long honest clients wait without a crowd."""
    with honest_clients(port) as found:
        end_s = time.monotonic() + duration_s
        while time.monotonic() < end_s:
            look()
            time.sleep(LOOKS_S)
    return found


def crowded(port: int, duration_s: float, look: Callable[[], None]) -> tuple[Waits, int, int]:
    """How long they wait beside a crowd, while `look` is called again and again. Returns its attacks and connections,
    too."""
    with honest_clients(port) as found:
        command = [sys.executable, "-m", "tests.hostile.crowd", str(port), str(duration_s)]
        crowd = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        try:
            while crowd.poll() is None:
                look()
                time.sleep(LOOKS_S)
        finally:
            if crowd.poll() is None:
                crowd.kill()
            output, _ = crowd.communicate(timeout=120)
    assert crowd.returncode == 0
    attacks, max_open = map(int, output.split())
    return found, attacks, max_open


@contextmanager
def control_server() -> Iterator[int]:
    """The port of a server that does nothing: what is slow there is due to the machine."""
    command = [sys.executable, "-m", "tests.hostile.control_server"]
    with on(OF_THE_SERVER):
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.communicate(timeout=120)


def told(name: str, waits: Waits) -> str:
    """A line of the report."""
    values = " ".join(f"{key.removesuffix('_ms')} {value:.2f}" for key, value in waits.items() if key != "count")
    return f"  {name:32} {values} ms of {waits['count']:.0f} calls\n"


@pytest.mark.soak
@pytest.mark.parametrize("duration_s", [9, pytest.param(60, marks=pytest.mark.long)])
def test_a_crowd_of_hostile_clients(duration_s: int, tmp_path: Path) -> None:
    with on(OF_THE_CROWD):
        attack_and_judge(duration_s, tmp_path)


def attack_and_judge(duration_s: int, directory: Path) -> None:
    is_authorized = duration_s >= JUDGED_FROM_S
    of_nobody = ""
    if is_authorized:
        with control_server() as port:
            of_nobody = told("a server that does nothing", quiet(port, QUIET_S, lambda: None))
            of_nobody += told("  and crowded", crowded(port, duration_s, lambda: None)[0])
    with observed_server(directory, on(OF_THE_SERVER)) as server:
        bytes_held: list[int] = []

        def look() -> None:
            bytes_held.append(server.resident_bytes())
            assert server.is_alive()

        quiet_waits = quiet(server.port, QUIET_S if is_authorized else QUIET_UNJUDGED_S, look)
        quiet_bytes = server.resident_bytes()
        crowded_waits, attacks, max_open = crowded(server.port, duration_s, look)
        bound = memory_bound(LIMITS, quiet_bytes)
        sys.stdout.write(
            f"{attacks} attacks, {max_open} connections; memory {quiet_bytes >> 20} MiB quiet, "
            f"{max(bytes_held) >> 20} MiB at most of {bound >> 20}\n"
            + told("quiet", quiet_waits)
            + told("crowded", crowded_waits)
            + of_nobody
        )
        assert attacks > 2 * len(ATTACKS) and max_open > CONNECTIONS / 4
        assert max(bytes_held) <= bound
        if is_authorized:
            assert crowded_waits["p99_ms"] <= max(3 * quiet_waits["p99_ms"], TOLERATED_MS)
        end_s = time.monotonic() + MAX_WAIT_S
        while left := server.metrics()["hms_cache_connections"]:
            assert time.monotonic() < end_s, f"{left} connections are left"
            time.sleep(0.02)
        metrics = server.metrics()
        for name in ("calls_in_flight", "buffered_bytes", "session_bytes"):
            assert metrics[f"hms_cache_{name}"] == 0, name
        while left := server.client_sockets():
            # Also those of the requests above: a thread of the management port closes each after its reply.
            assert time.monotonic() < end_s, f"{left} sockets are left"
            time.sleep(0.02)
