"""``hms-cache top``: one snapshot of a running server, and the live view in a terminal of its own."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hmsclient.genthrift.hive_metastore import ttypes

from hms_cache.cli.terminal import plain_console
from hms_cache.cli.top import Reading, _operations, rates
from tests.admin.running import Running, hms_cache

LIMIT_S = 60
PROGRAM = (sys.executable, "-c", "from hms_cache.cli.main import main; main()")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    server = Running(tmp_path)
    yield server
    server.close()


def status(worker: int, hits: int, calls: int) -> dict[str, object]:
    call = {"method": "get_table", "count": calls, "decoded": calls // 2, "mean_s": 0.002 * (worker + 1)}
    return {"worker": worker, "cache": {"reads": {"hit": hits}}, "calls": [call] if calls else []}


def test_rates_are_of_all_workers_and_never_negative() -> None:
    before = Reading(10.0, (status(0, 100, 10), status(1, 50, 0)), ())
    now = Reading(12.0, (status(0, 160, 30), status(1, 90, 10)), ())
    assert rates(before.reads(), now.reads(), 2.0) == {"hit": 50.0}
    assert rates(before.calls(), now.calls(), 2.0) == {"get_table": 15.0}
    assert now.mean_s("get_table") == pytest.approx((15 * 0.002 + 5 * 0.004) / 20)
    assert rates({"hit": 500}, {"hit": 3}, 1.0) == {"hit": 0}, "a worker was started anew"


def test_loads_are_of_all_workers() -> None:
    def page(busy_s: float) -> dict[str, object]:
        row = {"name": "ann", "busy_s": busy_s, "calls": 2, "loads": 1, "sent_bytes": 10}
        return {"users": [row], "addresses": [], "tables": []}

    now = Reading(12.0, (status(0, 1, 1),), (), operations=(page(1.0), page(2.0)))
    assert now.loads("users") == {"ann": {"busy_s": 3.0, "calls": 4, "loads": 2, "sent_bytes": 20, "reads": 0}}


def test_one_picture(running: Running, tmp_path: Path) -> None:
    running.client.create_database(ttypes.Database(name="shop"))
    exit_status, text = hms_cache(tmp_path, "top", "--once", "--interval", "0.2", "--management", running.management)
    assert exit_status == 0
    assert "create_database" in text and "ACTIVE" in text and "reads" in text
    assert "load by user" in text and "anonymous" in text and "load by address" in text
    exit_status, text = hms_cache(tmp_path, "top", "--once", "--management", "http://127.0.0.1:1")
    assert exit_status == 1 and "no answer from" in text and "Traceback" not in text


HOSTILE = "[/red]:dog:\x1b]0;owned\x07"
SHOWN = r"[/red]:dog:\x1b]0;owned\x07"
"""A name that a client chose, and as it is to be shown: no markup, no picture, nothing that a terminal obeys."""


def test_names_of_clients_are_shown_and_not_obeyed(running: Running, tmp_path: Path) -> None:
    running.client.set_ugi(HOSTILE, [])
    for _ in range(3):
        running.client.get_all_databases()
    exit_status, text = hms_cache(tmp_path, "top", "--once", "--interval", "0.2", "--management", running.management)
    assert (exit_status, "Traceback" in text) == (0, False), text
    assert "[/red]" in text
    assert "\x1b]" not in text and "\x07" not in text


def test_owners_of_locks_are_shown_and_not_obeyed(running: Running, tmp_path: Path) -> None:
    one = ttypes.LockComponent(
        type=ttypes.LockType.EXCLUSIVE, level=ttypes.LockLevel.TABLE, dbname="shop", tablename="t"
    )
    running.client.lock(ttypes.LockRequest(component=[one], user=HOSTILE, hostname=HOSTILE))
    exit_status, text = hms_cache(tmp_path, "locks", "list", "--management", running.management)
    assert exit_status == 0
    assert text.count(SHOWN) == 2
    assert "\x1b" not in text


@pytest.mark.parametrize("of", ["name", "subject", "requested_by"])
def test_what_runs_is_shown_and_not_obeyed(of: str) -> None:
    operation = {"name": "a", "subject": "b", "requested_by": "c", "running_s": 1.0, "done": 0, "total": None} | {
        of: HOSTILE
    }
    console = plain_console()
    with console.capture() as captured:
        console.print(_operations([operation]), width=200)
    assert SHOWN in captured.get()


def test_the_live_view_ends_with_ctrl_c(running: Running, tmp_path: Path) -> None:
    leader, terminal = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, "top", "--interval", "0.2", "--management", running.management],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=tmp_path,
        start_new_session=True,
        preexec_fn=lambda: _take_terminal(terminal),
        env=os.environ | {"TERM": "xterm", "COLUMNS": "120", "LINES": "40"},
    )
    os.close(terminal)
    try:
        shown = b""
        while b"ACTIVE" not in shown:
            assert select.select([leader], [], [], LIMIT_S)[0], shown.decode(errors="replace")
            shown += os.read(leader, 65536)
        os.write(leader, b"\x03")
        while True:
            try:
                if not os.read(leader, 65536):
                    break
            except OSError:  # Linux says so when the other end is closed
                break
        assert process.wait(LIMIT_S) == 0
    finally:
        process.kill()
        os.close(leader)


def _take_terminal(terminal: int) -> None:
    """In the child: Ctrl-C on it becomes SIGINT, which shells have their background jobs ignore."""
    import fcntl
    import signal
    import termios

    signal.signal(signal.SIGINT, signal.SIG_DFL)

    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
