"""Hive 4.0.1's engine replicates a database of our server, whole and then change by change."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.clients.hive import engine
from tests.clients.hive.test_hive_engine import our_settings
from tests.conftest import ServerStarter

STATEMENTS = Path(__file__).with_name("replication.sql").read_text()
"""Each question about the replica is followed by the same one about its source."""

_STATEMENTS = frozenset(line.rstrip(";") for line in STATEMENTS.splitlines())


def answers(printed: list[str]) -> list[tuple[str, list[str]]]:
    """Statements in their order, each with the lines that follow it."""
    told: list[tuple[str, list[str]]] = []
    known = {one.replace("{directory}", "DIRECTORY") for one in _STATEMENTS}
    for line in printed:
        if line in known:
            told.append((line, []))
        elif told:
            told[-1][1].append(line)
    return told


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.timeout(1800)
def test_a_replica_has_what_its_source_has(start_server: ServerStarter, tmp_path: Path) -> None:
    directory = tmp_path / "ours"
    server = start_server("mariadb", **our_settings(directory))
    printed = engine.run(STATEMENTS, server.uri, directory)
    (tmp_path / "ours.txt").write_text("\n".join(printed))
    assert not [line for line in printed if line.startswith("FAILED")]
    told = answers(printed)
    compared = 0
    for (of_replica, replica), (of_source, source) in pairwise(told):
        if "dst." in of_replica and of_source == of_replica.replace("dst.", "src."):
            assert replica == source, of_replica
            compared += bool(source)
    assert compared > 12
    last_ids = [int(lines[0]) for statement, lines in told if statement == "repl status dst"]
    assert len(last_ids) == 5 and last_ids == sorted(set(last_ids))
    described = [lines[0] for statement, lines in told if statement == "describe database extended dst"]
    assert not [line for line in described if "repl.source.for" in line or "bootstrap.dump.state" in line]
