"""How long a second client waits during each attack, in separate processes, and whether /livez answers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.call_attacks import make_tables
from tests.hostile.observed_server import ObservedServer, observed_server
from tests.hostile.repeated import NAMES
from tests.servers import metastore_client

pytestmark = [pytest.mark.soak, pytest.mark.long]

ROOT = Path(__file__).parents[2]

DURATION_S = 6.0

MAX_MS = 50.0
"""Of 99 of 100 calls of `getName`."""

LOOKS_S = 0.1
"""Between two questions for /livez."""

ATTACKS_AT_LEAST = 2


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObservedServer]:
    with observed_server(
        tmp_path_factory.mktemp("each_attack"), **{"server.max_connections_per_address": 200}
    ) as running:
        with metastore_client(running.port) as client:
            make_tables(client)
        yield running


def started(module: str, *arguments: object) -> subprocess.Popen[str]:
    """A process that has reported that it is ready, and ends with its input."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("attack", NAMES)
def test_a_second_client_hardly_waits(server: ObservedServer, attack: str) -> None:
    with started("tests.hostile.repeated", attack, server.port, server.management_port) as attacker:
        try:
            with started("tests.hostile.honest", server.port, 1, "getName") as honest:
                end_s = time.monotonic() + DURATION_S
                while time.monotonic() < end_s:
                    assert server.is_alive()
                    time.sleep(LOOKS_S)
                waits = json.loads(honest.communicate(timeout=120)[0])
        finally:
            attacks = int(attacker.communicate(timeout=120)[0])
    assert honest.returncode == attacker.returncode == 0
    sys.stdout.write(
        f"{attack}: {attacks} times; getName p50 {waits['p50_ms']:.2f}, p99 {waits['p99_ms']:.2f}, "
        f"most {waits['max_ms']:.2f} ms of {waits['count']} calls\n"
    )
    assert attacks >= ATTACKS_AT_LEAST
    assert waits["p99_ms"] < MAX_MS
