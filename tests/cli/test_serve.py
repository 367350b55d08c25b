"""``hms-cache serve`` as a process: ready line, a client, signals, exit status, refusals."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hmsclient import HMSClient
from hmsclient.genthrift.hive_metastore.ttypes import Database, NoSuchObjectException
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from tests.conftest import ServerLookup
from tests.consistency.observers import wait_until
from tests.prepared.commands import run_command
from tests.prepared.processes import prepared_python
from tests.servers import ServerProcess

MAX_WAIT_S = 60.0

FIRST_PROCESS = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")
"""What starts a program as number 1 of a namespace of its own, as containers do; it ends with whoever started it."""


def start(
    *arguments: str, cwd: Path, before: str = "", is_forked: bool = False, **environment: str
) -> subprocess.Popen[str]:
    """`before`: what the process runs first. `is_forked`: not by the system, where that makes no difference."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HMS_CACHE")}
    if is_forked and not before and (prepared := prepared_python()).is_like(kept | environment):
        return prepared.start(ServerProcess.program, ["serve", *arguments], cwd, kept | environment)  # type: ignore[return-value]
    return subprocess.Popen(
        [sys.executable, "-c", f"{before}\nfrom hms_cache.cli.main import main; main()", "serve", *arguments],
        cwd=cwd,
        env=kept | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def serving(
    *arguments: str, cwd: Path, before: str = "", is_forked: bool = False, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server that is ready, and its port. Killed with its workers at the end unless it has ended; it must not have
    crashed."""
    process = start(*arguments, cwd=cwd, before=before, is_forked=is_forked, **environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("ready thrift://"), process.stderr.read() if process.stderr and not line else line
        yield process, int(line.rpartition(":")[2])
    finally:
        ended = process.poll()
        if ended is None:
            # A stopped process never notices that its parent is gone, and keeps open what is read below.
            for each in (*children(process.pid), process.pid):
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
        process.communicate(timeout=MAX_WAIT_S)
    assert ended is None or ended >= 0 or ended == -signal.SIGKILL, f"it was ended by signal {-ended}"


def children(pid: int) -> set[int]:
    """Process ids of a process's children."""
    try:
        return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
    except OSError:
        return set()  # it has just ended, or there is no /proc


@contextmanager
def client(port: int) -> Iterator[HMSClient]:
    transport = TBufferedTransport(TSocket("127.0.0.1", port))
    transport.open()
    try:
        yield HMSClient(TBinaryProtocol(transport))
    finally:
        transport.close()


def end(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
    process.send_signal(number)
    _, errors = process.communicate(timeout=MAX_WAIT_S)
    return process.returncode, errors


def test_without_options_it_serves_sqlite_in_the_working_directory(tmp_path: Path) -> None:
    with serving("--port", "0", cwd=tmp_path) as (process, port):
        with client(port) as metastore:
            assert metastore.get_all_databases() == ["default"]
            metastore.create_database(Database(name="shop"))
            location = metastore.get_database("shop").locationUri
        assert end(process)[0] == 0
    assert (tmp_path / "hms-cache.db").exists()
    assert location == f"file:{tmp_path}/warehouse/shop.db"
    with serving("--port", "0", cwd=tmp_path) as (process, port):
        with client(port) as metastore:
            assert metastore.get_all_databases() == ["default", "shop"]
            with pytest.raises(NoSuchObjectException):
                metastore.get_database("absent")
        assert end(process, signal.SIGINT)[0] == 0


def test_an_open_connection_does_not_keep_it_from_ending(tmp_path: Path) -> None:
    with serving("--port", "0", cwd=tmp_path, is_forked=True) as (process, port), client(port) as metastore:
        assert metastore.getName() == "new db based metaserver"
        status, errors = end(process)
        assert status == 0
        assert "Traceback" not in errors


def test_a_taken_port_is_told_with_a_remedy(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = start("--port", str(taken.getsockname()[1]), cwd=tmp_path, is_forked=True)
        _, errors = process.communicate(timeout=MAX_WAIT_S)
    assert process.returncode == 1
    assert "cannot listen on 127.0.0.1" in errors
    assert "--port 0" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("host", ["nowhere.invalid", "192.0.2.1"])
@pytest.mark.parametrize(
    "others",
    [
        ["--set", "admin.enabled=false"],
        ["--set", "server.workers=2", "--set", "admin.enabled=false"],
        ["--set", "server.host=127.0.0.1", "--set", "admin.port=0", "--set", "admin.host={host}"],
    ],
    ids=["thrift", "workers", "management"],
)
def test_a_host_of_another_machine_is_not_called_a_port_that_is_taken(
    tmp_path: Path, host: str, others: list[str]
) -> None:
    arguments = ["--set", f"server.host={host}", *(other.format(host=host) for other in others)]
    process = start("--port", "0", *arguments, cwd=tmp_path, is_forked=True)
    _, errors = process.communicate(timeout=MAX_WAIT_S)
    assert process.returncode == 1, errors
    assert f"cannot listen on {host}" in errors
    assert "a name or an address of this machine" in errors
    assert "another metastore" not in errors and "picks a free one" not in errors
    assert "Traceback" not in errors


def test_a_bad_configuration_ends_it_before_anything_is_made(tmp_path: Path) -> None:
    process = start("--port", "0", cwd=tmp_path, is_forked=True, HMS_CACHE__CACHE__PEERS="hive2")
    _, errors = process.communicate(timeout=MAX_WAIT_S)
    assert process.returncode == 2
    assert "cache.peers (HMS_CACHE__CACHE__PEERS)" in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.soak]),
        pytest.param("postgresql", marks=[pytest.mark.postgresql, pytest.mark.soak]),
    ],
)
def test_a_database_server_without_a_schema_is_refused_with_the_command_to_run(
    tmp_path: Path, database_servers: ServerLookup, kind: str
) -> None:
    server = database_servers(kind)
    url = server.create_database()
    process = start("--port", "0", "--database", url, cwd=tmp_path, is_forked=True)
    _, errors = process.communicate(timeout=MAX_WAIT_S)
    assert process.returncode == 1
    assert "hms-cache schema init --database" in errors
    initialised = run_command(("schema", "init", "--database", url), tmp_path)
    assert initialised.returncode == 0
    with serving("--port", "0", "--database", url, cwd=tmp_path, is_forked=True) as (process, port):
        with client(port) as metastore:
            assert metastore.get_all_databases() == ["default"]
        assert end(process)[0] == 0
    server.drop_database(url)


@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
@pytest.mark.parametrize("command", [("serve", "--port", "0"), ("schema", "init")], ids=" ".join)
def test_a_database_that_does_not_answer_is_named_as_the_reason(
    tmp_path: Path, command: tuple[str, ...], kind: str
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen: connections are refused
        port = taken.getsockname()[1]
        refused = run_command((*command, "--database", f"{kind}://me:secret@127.0.0.1:{port}/metastore"), tmp_path)
    assert refused.returncode == 1
    assert "the metastore database cannot be used now: " in refused.stderr and "database.url" in refused.stderr
    assert "secret" not in refused.stderr and "Pool" not in refused.stderr and "Traceback" not in refused.stderr


def test_signals_that_come_at_any_moment_are_heard(tmp_path: Path) -> None:
    """A handler interrupts the wait for signals anywhere, also where it holds a lock."""
    (tmp_path / "c.toml").write_text("[cache]\nmax_staleness_ms = 0\n")
    with serving("--port", "0", "--config", "c.toml", cwd=tmp_path, is_forked=True) as (process, port):
        reader = threading.Thread(target=lambda: process.stderr.read() if process.stderr else "", daemon=True)
        reader.start()
        for _ in range(20_000):
            process.send_signal(signal.SIGHUP)
        with client(port) as metastore:
            assert metastore.get_all_databases() == ["default"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_S) == 0
        reader.join(MAX_WAIT_S)


def is_first_process_possible() -> bool:
    made = (
        subprocess.run([*FIRST_PROCESS, "true"], capture_output=True, check=False) if sys.platform == "linux" else None
    )
    return made is not None and made.returncode == 0


@pytest.mark.parametrize("command", [("serve", "--port", "0", "--set", "admin.port=0"), ("config", "print")])
def test_the_first_process_of_a_container_is_stopped_while_it_starts(command: tuple[str, ...], tmp_path: Path) -> None:
    """The kernel delivers no signal to it that it has not requested."""
    if not is_first_process_possible():
        pytest.skip("no process of a namespace of its own can be started here (unshare)")
    (tmp_path / "secret").write_text("#!/bin/sh\ntouch asked\nuntil [ -e go ]; do sleep 0.02; done\necho a secret\n")
    (tmp_path / "secret").chmod(0o755)
    given = (*command, "--set", "admin.token_command=./secret")
    program = [sys.executable, "-c", "from hms_cache.cli.main import main; main()", *given]
    outer = subprocess.Popen([*FIRST_PROCESS, *program], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        wait_until((tmp_path / "asked").exists, "it reads its configuration")
        os.kill(int(Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text()), signal.SIGTERM)
        (tmp_path / "go").touch()
        assert outer.stdout is not None and outer.stdout.readline() == "", "it went on"
        assert outer.wait(MAX_WAIT_S) == 128 + signal.SIGTERM
    finally:
        outer.kill()
        outer.wait()


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.soak)])
@pytest.mark.parametrize("output", ["None", "open('/dev/full', 'w')"])
def test_it_serves_although_its_output_cannot_be_written(tmp_path: Path, output: str, workers: str) -> None:
    """The disk with the output is full, or the program that started it has closed it."""
    before = f"import sys; sys.stdout = {output}"
    process = start("--port", "0", "--workers", workers, "--set", "admin.port=0", cwd=tmp_path, before=before)
    assert process.stderr is not None
    while "standard output cannot be written" not in (line := process.stderr.readline()):
        assert line, "it ended"
    with client(int(line.rpartition(":")[2])) as metastore:
        assert metastore.get_all_databases() == ["default"]
    assert end(process)[0] == 0


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.soak)])
def test_a_reload_that_is_asked_for_while_it_starts_is_done_later(tmp_path: Path, workers: str) -> None:
    """SIGHUP ends a process that has not installed a handler."""
    (tmp_path / "secret").write_text("#!/bin/sh\ntouch asked\nuntil [ -e go ]; do sleep 0.02; done\necho a secret\n")
    (tmp_path / "secret").chmod(0o755)
    (tmp_path / "c.toml").write_text("[log]\nslow_call_s = 7\n")
    given = ("--port", "0", "--workers", workers, "--config", "c.toml", "--set", "admin.port=0")
    process = start(*given, "--set", "admin.token_command=./secret", cwd=tmp_path, is_forked=True)
    wait_until((tmp_path / "asked").exists, "it reads its configuration")
    process.send_signal(signal.SIGHUP)
    (tmp_path / "go").touch()
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().startswith("ready thrift://")
    while "reloaded: " not in (line := process.stderr.readline()):
        assert line, "it ended"
    status, errors = end(process)
    assert status == 0 and "it is replaced" not in errors


def test_a_reload_takes_what_it_can_and_tells_what_needs_a_restart(tmp_path: Path) -> None:
    settings = tmp_path / "c.toml"
    settings.write_text("[cache]\nmax_staleness_ms = 0\n")
    with serving("--port", "0", "--config", "c.toml", cwd=tmp_path, is_forked=True) as (process, port):
        assert process.stderr is not None
        settings.write_text("[cache]\nmax_staleness_ms = '5s'\n[server]\nthreads = 3\n")
        process.send_signal(signal.SIGHUP)
        told = ""
        while "restart" not in told:
            line = process.stderr.readline()
            assert line, told
            told += line
        assert "reloaded: cache.max_staleness_ms" in told
        assert "need a restart: server.threads" in told
        settings.write_text("[cache]\nmax_stale = 1\n")
        process.send_signal(signal.SIGHUP)
        while "not reloaded" not in told:
            told += process.stderr.readline()
        with client(port) as metastore:
            assert metastore.get_all_databases() == ["default"]
        assert end(process)[0] == 0
