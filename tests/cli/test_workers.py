"""Several processes on one port: together they are one metastore."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from hmsclient.genthrift.hive_metastore.ttypes import Database

from tests.cli.test_serve import PATIENCE_S, client, serving


def children(pid: int) -> set[int]:
    """Process ids of a process's children."""
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def test_workers_share_a_port_and_a_catalog(tmp_path: Path) -> None:
    with serving("--port", "0", "--workers", "2", "--set", "admin.port=0", cwd=tmp_path) as (process, port):
        assert len(children(process.pid)) == 2
        for number in range(12):
            with client(port) as one:
                one.create_database(Database(name=f"d{number}", description="", parameters={}))
            with client(port) as other:
                assert f"d{number}" in other.get_all_databases(), "whichever worker is asked"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def test_a_killed_worker_is_replaced(tmp_path: Path) -> None:
    with serving("--port", "0", "--workers", "2", "--set", "admin.port=0", cwd=tmp_path) as (process, port):
        victim = min(children(process.pid))
        os.kill(victim, signal.SIGKILL)
        assert process.stderr is not None
        while "ended with status" not in (line := process.stderr.readline()):
            assert line, "the parent ended"
        while "ready" not in (line := process.stderr.readline()) and "listening on" not in line:
            assert line, "the parent ended"
        assert len(children(process.pid)) == 2 and victim not in children(process.pid)
        with client(port) as one:
            assert one.get_all_databases() == ["default"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def test_workers_do_not_outlive_their_parent(tmp_path: Path) -> None:
    with serving("--port", "0", "--workers", "2", "--set", "admin.port=0", cwd=tmp_path) as (process, _):
        assert len(children(process.pid)) == 2
        process.kill()
        # Both pipes end only when the last process that holds them has.
        process.communicate(timeout=PATIENCE_S)
