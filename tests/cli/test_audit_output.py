"""Audit lines in a rotated file, and with a real rsyslog; the handling of lines that cannot be written."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from hmsclient.genthrift.hive_metastore.ttypes import NoSuchObjectException

from tests.cli.test_serve import serving
from tests.conftest import ServerStarter
from tests.servers import MAX_WAIT_S, ServerProcess, metastore_client

FILE_BYTES = 64 * 1024
LONG = "x" * 3_900
"""Of a name: a line of it takes a sixteenth of a file."""


def _call(server: ServerProcess, *names: str) -> None:
    with metastore_client(server.port) as client:
        for name in names:
            with pytest.raises(NoSuchObjectException):
                client.get_database(name)


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + MAX_WAIT_S
    while not holds():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.02)


def _lost(server: ServerProcess) -> float:
    listening = re.search(r"management port on (\S+)", server.log)
    assert listening is not None
    with urlopen(f"http://{listening[1]}/metrics", timeout=MAX_WAIT_S) as answer:
        text = answer.read().decode()
    found = re.search(r"^hms_cache_audit_lines_lost_total (\S+)$", text, re.MULTILINE)
    assert found is not None
    return float(found[1])


def test_a_full_file_is_rotated_and_no_line_is_lost(start_server: ServerStarter, tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    settings = {"server.audit_file": file, "server.audit_file_bytes": FILE_BYTES, "server.audit_files_kept": 3}
    server = start_server("sqlite", **settings, **{"server.audit": "all"})
    _call(server, *(f"{number:02d}{LONG}" for number in range(40)))
    assert server.stop() == 0
    files = [file, *(file.with_name(f"audit.log.{number}") for number in (1, 2, 3))]
    held = [one.read_text() for one in files if one.exists()]
    assert len(held) == 3 and all(len(text) <= FILE_BYTES for text in held)
    told = re.findall(r"get_database\D*(\d\d)x", "".join(reversed(held)))
    assert told == [f"{number:02d}" for number in range(40)]
    assert all(stat.S_IMODE(one.stat().st_mode) == 0o600 for one in files if one.exists())
    assert "ugi=" not in server.log, "instead of the log"


def test_the_oldest_file_is_deleted(start_server: ServerStarter, tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    settings = {"server.audit_file": file, "server.audit_file_bytes": FILE_BYTES, "server.audit_files_kept": 1}
    server = start_server("sqlite", **settings, **{"server.audit": "all"})
    _call(server, *(f"{number:02d}{LONG}" for number in range(40)))
    assert server.stop() == 0
    assert sorted(one.name for one in tmp_path.glob("audit.log*")) == ["audit.log", "audit.log.1"]
    assert f"39{LONG[:100]}" in file.read_text()


def test_after_sighup_a_file_that_another_program_renamed_is_begun_anew(
    start_server: ServerStarter, tmp_path: Path
) -> None:
    file, renamed = tmp_path / "audit.log", tmp_path / "of_yesterday"
    server = start_server("sqlite", **{"server.audit_file": file, "server.audit": "all"})
    _call(server, "before")
    _until(lambda: "before" in file.read_text(), "the line is written")
    file.rename(renamed)
    os.kill(server.process_id, signal.SIGHUP)
    _until(lambda: "reloaded" in server.log, "the server reloads")
    _call(server, "after")
    _until(lambda: "after" in file.read_text(), "the line is in the new file")
    assert "after" not in renamed.read_text()


def test_a_reload_that_fails_leaves_the_lines_where_they_went(start_server: ServerStarter, tmp_path: Path) -> None:
    file, renamed = tmp_path / "audit.log", tmp_path / "still_written"
    server = start_server("sqlite", **{"server.audit_file": file, "server.audit": "all"})
    _call(server, "before")
    _until(lambda: "before" in file.read_text(), "the line is written")
    file.rename(renamed)
    file.mkdir()
    os.kill(server.process_id, signal.SIGHUP)
    _until(lambda: "not reloaded: the audit log" in server.log, "the server says why not")
    _call(server, "after")
    _until(lambda: "after" in renamed.read_text(), "the line is in the file that is open")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
def test_on_a_full_disk_calls_are_answered_and_lost_lines_are_counted_and_told(start_server: ServerStarter) -> None:
    server = start_server("sqlite", **{"server.audit_file": "/dev/full", "server.audit": "all", "admin.port": 0})
    _call(server, "one", "two", "three")
    _until(lambda: _lost(server) >= 3, "lost lines are counted")
    assert server.log.count("audit lines are lost") == 1 and "/dev/full" in server.log


def test_a_file_that_cannot_be_opened_stops_the_start(start_server: ServerStarter, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"audit log .*absent/audit\.log cannot be opened"):
        start_server("sqlite", **{"server.audit_file": tmp_path / "absent" / "audit.log"})


def test_each_worker_has_a_file_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    settings = ("--set", "admin.port=0", "--set", f"server.audit_file={file}", "--set", "server.audit=all")
    with serving("--port", "0", "--workers", "2", *settings, cwd=tmp_path, is_forked=True) as (_, port):
        for number in range(8):  # a connection each: any worker may accept it
            with metastore_client(port) as client, pytest.raises(NoSuchObjectException):
                client.get_database(f"wanted{number}")
        files = [file.with_name(f"audit.log.worker{worker}") for worker in (0, 1)]
        _until(
            lambda: sum(one.read_text().count("wanted") for one in files) == 8, "each call has a line in one of them"
        )
    assert not file.exists()


@contextmanager
def _rsyslog(directory: Path, port: int) -> Iterator[Path]:
    """A real one, with its own socket and UDP port; `received` contains what it gets."""
    program = shutil.which("rsyslogd") or "/usr/sbin/rsyslogd"
    if not Path(program).exists():
        if os.environ.get("HMS_CACHE_REQUIRE_DATABASES") == "1":
            pytest.fail("no rsyslogd: install Debian's rsyslog")
        pytest.skip("no rsyslogd: install Debian's rsyslog")
    received, socket_path = directory / "received", directory / "log"
    template = "%syslogfacility-text% %syslogseverity-text% %programname% %msg%\\n"
    (directory / "rsyslog.conf").write_text(
        'module(load="imuxsock" SysSock.Use="off")\nmodule(load="imudp")\n'
        f'input(type="imuxsock" Socket="{socket_path}")\ninput(type="imudp" address="127.0.0.1" port="{port}")\n'
        f'template(name="told" type="string" string="{template}")\n'
        f'*.* action(type="omfile" file="{received}" template="told")\n'
    )
    process = subprocess.Popen(
        [program, "-n", "-f", str(directory / "rsyslog.conf"), "-i", str(directory / "pid")], stdin=subprocess.DEVNULL
    )
    try:
        _until(socket_path.exists, "rsyslog listens")
        yield received
    finally:
        process.terminate()
        process.wait(MAX_WAIT_S)


@pytest.mark.parametrize("by", ["socket", "UDP"])
def test_syslog_gets_each_line_as_of_authpriv(start_server: ServerStarter, tmp_path: Path, by: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    directory = tmp_path / "s"
    directory.mkdir()
    with _rsyslog(directory, port) as received:
        where = str(directory / "log") if by == "socket" else f"127.0.0.1:{port}"
        server = start_server("sqlite", **{"server.audit_syslog": where, "server.audit": "all"})
        _call(server, "wanted\ttwice\n")
        _until(lambda: received.exists() and "wanted" in received.read_text(), "rsyslog has the line")
        line = next(one for one in received.read_text().splitlines() if "wanted" in one)
        assert line.startswith("authpriv info hms-cache ") and "ugi=" in line
        assert "ugi=" not in server.log
