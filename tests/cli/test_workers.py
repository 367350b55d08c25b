"""Several processes on one port: together they are one metastore."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

import pytest
from hmsclient.genthrift.hive_metastore.ttypes import Database
from prometheus_client.parser import text_string_to_metric_families

from hms_cache.app.management import hold_management_port
from hms_cache.app.worker_processes import _hold_port
from hms_cache.errors import StartupError
from tests.admin.running import hms_cache
from tests.cli import test_serve
from tests.cli.test_serve import MAX_WAIT_S, children, client
from tests.consistency.observers import wait_until

serving = partial(test_serve.serving, is_forked=True)
start = partial(test_serve.start, is_forked=True)


def stop(pid: int, directory: Path) -> None:
    """By SIGSTOP; not during a write to the embedded database in this directory, which would block all others."""

    def is_stopped_outside_of_a_write() -> bool:
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: "State:\tT" in Path(f"/proc/{pid}/status").read_text(), "it is stopped")
        embedded = sqlite3.connect(directory / "hms-cache.db", timeout=0)
        with closing(embedded) as connection, suppress(sqlite3.OperationalError):
            connection.execute("BEGIN IMMEDIATE")
            return True
        os.kill(pid, signal.SIGCONT)
        return False

    wait_until(is_stopped_outside_of_a_write, "it does not write")


def management_of(process: subprocess.Popen[str]) -> str:
    """The management port, from the log."""
    assert process.stderr is not None
    while "management port on " not in (line := process.stderr.readline()):
        assert line, "it ended"
    return f"http://{line.split('management port on ')[1].strip()}"


@pytest.fixture
def sockets() -> Iterator[Path]:
    """A directory with a short path: that of a socket may have 107 bytes, and those under `tmp_path` have more."""
    with TemporaryDirectory(dir="/tmp") as directory:
        yield Path(directory)


def test_workers_reach_each_other_with_a_deep_directory_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sockets: Path
) -> None:
    deep = tmp_path / ("deep" * 25)
    deep.mkdir()
    (tmp_path / "token").write_text("open sesame\n")
    monkeypatch.setenv("TMPDIR", str(deep))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(sockets))
    settings = ("--set", "admin.port=0", "--set", f"admin.token_file={tmp_path / 'token'}")
    with serving("--port", "0", "--workers", "2", *settings, cwd=tmp_path) as (process, _):
        given = ("--management", management_of(process), "--token-file", str(tmp_path / "token"))
        status, text = hms_cache(tmp_path, "flush", *given)
        assert status == 0 and text.count("flushed everything") == 2, text
        (found,) = sockets.glob("hms-cache-*")
        assert found.stat().st_mode & 0o077 == 0, "nobody else may enter"
        assert list(deep.glob("hms-cache-*")) == []
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_S) == 0
    assert not found.exists()


@pytest.mark.soak
def test_a_command_reaches_all_workers_and_tells_whom_it_did_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sockets: Path
) -> None:
    (tmp_path / "token").write_text("open sesame\n")
    monkeypatch.setenv("TMPDIR", str(sockets))
    settings = ("--set", "admin.port=0", "--set", f"admin.token_file={tmp_path / 'token'}")
    with serving("--port", "0", "--workers", "2", *settings, cwd=tmp_path) as (process, _):
        url = management_of(process)
        given = ("--management", url, "--token-file", str(tmp_path / "token"))
        status, text = hms_cache(tmp_path, "sync", "--wait", "30s", *given)
        assert status == 0 and "worker 0: in sync" in text and "worker 1: in sync" in text
        status, text = hms_cache(tmp_path, "events", "pause", *given)
        assert status == 0 and "worker 0: PAUSED" in text and "worker 1: PAUSED" in text
        status, text = hms_cache(tmp_path, "sync", "--wait", "0.2s", "--event", "99", *given)
        assert status == 1 and text.count("not in sync") == 2
        assert hms_cache(tmp_path, "events", "resume", *given)[0] == 0

        with urlopen(f"{url}/metrics", timeout=MAX_WAIT_S) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
        samples = [sample for family in families for sample in family.samples]
        assert {sample.labels["worker"] for sample in samples} == {"0", "1"}
        assert len({(sample.name, *sorted(sample.labels.items())) for sample in samples}) == len(samples)
        for worker in (0, 1):
            with urlopen(f"{url}/status?worker={worker}", timeout=MAX_WAIT_S) as answer:
                assert json.load(answer)["worker"] == worker

        (found,) = sockets.glob("hms-cache-*")
        (found / "worker-0.sock").unlink()
        (found / "worker-1.sock").unlink()
        status, text = hms_cache(tmp_path, "flush", *given)
        assert status == 1 and text.count("flushed everything") == text.count("not reached: worker") == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_S) == 0


def test_workers_share_a_port_and_a_catalog(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[server]\nport = 0\n")
    settings = ("--config", "c.toml", "--set", "admin.port=0")
    with serving("--workers", "2", *settings, cwd=tmp_path) as (process, port):
        assert len(children(process.pid)) == 2
        for number in range(12):
            with client(port) as one:
                one.create_database(Database(name=f"d{number}", description="", parameters={}))
            with client(port) as other:
                assert f"d{number}" in other.get_all_databases(), "whichever worker is asked"
        (tmp_path / "c.toml").write_text("[server]\nport = 1\n")
        process.send_signal(signal.SIGHUP)
        assert process.stderr is not None
        while "these need a restart: server.port" not in (line := process.stderr.readline()):
            assert line, "it ended"
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_S) == 0


def log_until(process: subprocess.Popen[str], wanted: str) -> str:
    """The log from here to a line with this text."""
    assert process.stderr is not None
    told = ""
    while wanted not in told:
        line = process.stderr.readline()
        assert line, f"it ended: {told}"
        told += line
    return told


def test_a_killed_worker_is_replaced(tmp_path: Path) -> None:
    with serving("--port", "0", "--workers", "2", "--set", "admin.port=0", cwd=tmp_path) as (process, port):
        management = management_of(process)
        victim = min(children(process.pid))
        os.kill(victim, signal.SIGKILL)
        assert process.stderr is not None
        told = log_until(process, f"(process {victim}) was ended by SIGKILL; it is replaced")
        assert " ERROR hms_cache.app.worker_processes: " in told.splitlines()[-1]
        log_until(process, "listening on")
        assert len(children(process.pid)) == 2 and victim not in children(process.pid)
        with client(port) as one:
            assert one.get_all_databases() == ["default"]
        with urlopen(f"{management}/metrics", timeout=MAX_WAIT_S) as answer:
            families = {family.name: family for family in text_string_to_metric_families(answer.read().decode())}
        assert sorted(sample.value for sample in families["hms_cache_workers_lost"].samples) == [0, 1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_S) == 0


@pytest.mark.soak
def test_metrics_tell_of_a_worker_that_hangs(tmp_path: Path) -> None:
    """They were those of the others, as if there were no more."""
    with serving("--port", "0", "--workers", "2", "--set", "admin.port=0", cwd=tmp_path) as (process, _):
        management = management_of(process)

        def unreachable() -> list[float]:
            with suppress(OSError):  # the kernel gave the connection to the one that hangs
                with urlopen(f"{management}/metrics", timeout=8) as answer:
                    text = answer.read().decode()
                families = {family.name: family for family in text_string_to_metric_families(text)}
                return [sample.value for sample in families["hms_cache_workers_unreachable"].samples]
            return []

        assert unreachable() == [0, 0]
        hanging = min(children(process.pid))
        os.kill(hanging, signal.SIGSTOP)
        wait_until(lambda: unreachable() == [1], "it is missed")
        os.kill(hanging, signal.SIGCONT)
        wait_until(lambda: unreachable() == [0, 0], "it is there again")
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_S) == 0


CAN_HANG = """
import ctypes, signal
from hms_cache.app import worker_processes
watch = worker_processes.HangWatch
worker_processes.HangWatch = lambda timeout_s, is_stopped: watch(timeout_s / 10, is_stopped)
signal.signal(signal.SIGUSR2, lambda *_: ctypes.PyDLL(None).sleep(1000))
"""
"""At SIGUSR2 a process never lets go of the interpreter again: none of its threads does anything any more."""


@pytest.mark.soak
def test_a_worker_that_hangs_is_ended_and_replaced(tmp_path: Path) -> None:
    """The kernel continued to assign connections to it, whose clients waited for ever."""
    settings = ("--set", "admin.port=0", "--set", "server.worker_timeout_s=20")
    given = ("--port", "0", "--workers", "2", *settings)
    with serving(*given, cwd=tmp_path, before=CAN_HANG) as (process, port):
        victim = min(children(process.pid))
        stopped = max(children(process.pid))
        stop(stopped, tmp_path)
        os.kill(victim, signal.SIGUSR2)
        told = log_until(process, f"(process {victim}) was ended by SIGABRT; it is replaced")
        assert "has made no progress for 20 s (setting server.worker_timeout_s); it is killed" in told
        assert "Fatal Python error: Aborted" in told and "most recent call first" in told, "the stacks of its threads"
        log_until(process, "listening on")
        assert stopped in children(process.pid) and len(children(process.pid)) == 2, "it was stopped on purpose"
        os.kill(stopped, signal.SIGCONT)
        with client(port) as one:
            assert one.get_all_databases() == ["default"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_S) == 0


def test_a_failed_test_leaves_no_worker_however_it_left_it(tmp_path: Path) -> None:
    """A stopped worker kept the log open, which was read to its end, without a limit."""
    with pytest.raises(ZeroDivisionError), serving("--port", "0", "--workers", "2", cwd=tmp_path) as (process, _):
        stopped = min(children(process.pid))
        stop(stopped, tmp_path)
        raise ZeroDivisionError
    wait_until(lambda: not Path(f"/proc/{stopped}").exists(), "it is gone")


def test_a_worker_that_is_killed_while_it_is_to_stop_is_told(tmp_path: Path) -> None:
    with serving("--port", "0", "--workers", "2", "--set", "admin.port=0", cwd=tmp_path) as (process, _):
        victim = min(children(process.pid))
        stop(victim, tmp_path)  # it does not get the stop
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: children(process.pid) == {victim}, "the other one stops")
        os.kill(victim, signal.SIGKILL)
        _, errors = process.communicate(timeout=MAX_WAIT_S)
    assert f"(process {victim}) was ended by SIGKILL" in errors
    assert "1 of the workers did not end in order" in errors
    assert process.returncode == 1


@pytest.mark.soak
def test_a_worker_starts_with_what_is_in_force(tmp_path: Path) -> None:
    """Another database, or a mistake, in the file is for a restart or a reload, and neither was requested."""
    settings = tmp_path / "c.toml"
    settings.write_text("[database]\nurl = 'sqlite:///one.db'\n[log]\nslow_call_s = 7\n")
    given = ("--config", "c.toml", "--port", "0", "--workers", "2", "--set", "admin.port=0")
    with serving(*given, cwd=tmp_path) as (process, port):
        management = management_of(process)
        with client(port) as one:
            one.create_database(Database(name="here", description="", parameters={}))
        settings.write_text("[database]\nurl = 'sqlite:///one.db'\n[log]\nslow_call_s = 8\n")
        process.send_signal(signal.SIGHUP)
        for _ in range(2):
            log_until(process, "reloaded: log.slow_call_s")
        for content in ("[database]\nurl = 'sqlite:///two.db'\n", "[nonsense"):
            settings.write_text(content)
            for victim in children(process.pid):
                os.kill(victim, signal.SIGKILL)
            for _ in range(2):
                log_until(process, "management port on")
            for _ in range(12):
                with client(port) as one:
                    assert one.get_all_databases() == ["default", "here"], "whichever worker is asked"
            for worker in (0, 1):
                with urlopen(f"{management}/config?worker={worker}", timeout=MAX_WAIT_S) as answer:
                    shown = json.load(answer)["settings"]["log.slow_call_s"]
                assert (shown["value"], shown["origin"]) == ("8", "c.toml")
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_S) == 0


@pytest.mark.soak
def test_a_worker_starts_without_what_the_others_have_refused(tmp_path: Path) -> None:
    """It could not start, once a second, as long as the file was unchanged."""
    settings = tmp_path / "c.toml"
    before = "[log]\nslow_call_s = 7\n"
    settings.write_text(before)
    given = ("--config", "c.toml", "--port", "0", "--workers", "2", "--set", "admin.port=0")
    with serving(*given, cwd=tmp_path) as (process, port):
        management = management_of(process)
        for content, outcome in (
            (f"[server]\naudit_file = '{tmp_path}/none/audit.log'\n[log]\nslow_call_s = 8\n", "not reloaded: "),
            ("[log]\nslow_call_s = 9\n", "reloaded: log.slow_call_s"),
        ):
            settings.write_text(content)
            process.send_signal(signal.SIGHUP)
            for _ in range(2):
                log_until(process, outcome)
            os.kill(min(children(process.pid)), signal.SIGKILL)
            log_until(process, "management port on")
            with client(port) as one:
                assert one.get_all_databases() == ["default"]
            for worker in (0, 1):
                with urlopen(f"{management}/config?worker={worker}", timeout=MAX_WAIT_S) as answer:
                    shown = json.load(answer)["settings"]["log.slow_call_s"]
                assert shown["value"] == ("7" if outcome.startswith("not") else "9")
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_S) == 0


NO_FORK = """
import os
calls, fork = [], os.fork


def once_refused() -> int:
    calls.append(1)
    if len(calls) == 3:
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return fork()


os.fork = once_refused
"""


@pytest.mark.soak
def test_the_others_go_on_while_no_worker_can_be_started(tmp_path: Path) -> None:
    """The system has no memory or processes left, which is when workers are killed."""
    given = ("--port", "0", "--workers", "2", "--set", "admin.port=0", "--set", "cache.warm=off")
    with serving(*given, cwd=tmp_path, before=NO_FORK) as (process, port):
        os.kill(min(children(process.pid)), signal.SIGKILL)
        log_until(process, "cannot be started, and is tried again: [Errno 11]")
        with client(port) as one:
            assert one.get_all_databases() == ["default"]
        log_until(process, "listening on")
        assert len(children(process.pid)) == 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_S) == 0


@pytest.mark.soak
def test_ends_of_workers_are_heard_of_whoever_started_the_server(tmp_path: Path) -> None:
    """A program that ignores SIGCHLD passes this on to its children."""
    ignoring = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    given = ("--port", "0", "--workers", "2", "--set", "admin.port=0")
    with serving(*given, cwd=tmp_path, before=ignoring) as (process, _):
        os.kill(min(children(process.pid)), signal.SIGKILL)
        log_until(process, "it is replaced")
        log_until(process, "listening on")
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_S) == 0


def test_a_stop_while_workers_start_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sockets: Path) -> None:
    """The first one waits for the database; its work ends in order, and nothing is left behind."""
    monkeypatch.setenv("TMPDIR", str(sockets))
    with sqlite3.connect(tmp_path / "hms-cache.db", isolation_level=None) as locking:
        locking.execute("BEGIN EXCLUSIVE")
        process = start("--port", "0", "--workers", "2", "--set", "admin.port=0", cwd=tmp_path)
        wait_until(lambda: bool(children(process.pid)), "the first worker")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        locking.execute("ROLLBACK")
    _, errors = process.communicate(timeout=MAX_WAIT_S)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert list(sockets.iterdir()) == []


@pytest.mark.parametrize("hold", [_hold_port, partial(hold_management_port, is_chosen=True)])
def test_a_port_that_is_held_is_taken_before_anybody_listens(hold: Callable[[str, int], socket.socket]) -> None:
    """Two servers that start at the same time, perhaps on two databases, would share the port, and clients reach
    either."""
    with hold("127.0.0.1", 0) as held:
        with pytest.raises(StartupError, match="cannot listen"):
            hold("127.0.0.1", held.getsockname()[1])
        with socket.socket() as worker:
            worker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            worker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            worker.bind(held.getsockname())
            worker.listen()


def test_workers_do_not_outlive_their_parent(tmp_path: Path) -> None:
    with serving("--port", "0", "--workers", "2", "--set", "admin.port=0", cwd=tmp_path) as (process, _):
        assert len(children(process.pid)) == 2
        process.kill()
        # Both pipes end only when the last process that has them open ends.
        process.communicate(timeout=MAX_WAIT_S)


def test_what_a_killed_server_left_is_removed_and_nobody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sockets: Path
) -> None:
    """Directories by which its workers found each other: no server uses them again."""
    monkeypatch.setenv("TMPDIR", str(sockets))
    (foreign := sockets / "hms-cache-of-another-program").mkdir(mode=0o700)
    given = ("--port", "0", "--workers", "2", "--set", "admin.port=0")
    other, third = tmp_path / "other", tmp_path / "third"
    for directory in (other, third):
        directory.mkdir()
    with serving(*given, cwd=other):
        of_the_living = {*sockets.iterdir()} - {foreign}
        with serving(*given, cwd=tmp_path) as (process, _):
            of_the_killed = {*sockets.iterdir()} - {foreign, *of_the_living}
            assert len(of_the_killed) == len(of_the_living) > 0
            process.kill()
            process.communicate(timeout=MAX_WAIT_S)
        assert of_the_killed < {*sockets.iterdir()}
        with serving(*given, cwd=third):
            there = {*sockets.iterdir()}
    assert not of_the_killed & there
    assert {foreign, *of_the_living} < there


def test_a_stop_in_the_pause_before_a_new_worker_is_heard(tmp_path: Path) -> None:
    with serving("--port", "0", "--workers", "2", "--set", "admin.port=0", cwd=tmp_path) as (process, _):
        os.kill(min(children(process.pid)), signal.SIGKILL)
        assert process.stderr is not None
        while "it is replaced" not in (line := process.stderr.readline()):
            assert line, "the parent ended"
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_S) == 0


def test_workers_take_over_ports_that_were_in_use_a_moment_ago(tmp_path: Path) -> None:
    ports = ("--port", "0", "--set", "admin.port=0")
    for _ in range(2):
        with serving("--workers", "2", *ports, cwd=tmp_path) as (process, port):
            management = management_of(process)
            # The server closes them first: its side of them is in TIME_WAIT afterwards, and occupies the ports.
            with client(port) as open_client, socket.create_connection(("127.0.0.1", admin_port(management))) as page:
                assert open_client.get_all_databases() == ["default"]
                page.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                while page.recv(65536):
                    pass
                process.send_signal(signal.SIGTERM)
                assert process.wait(MAX_WAIT_S) == 0
        ports = ("--port", str(port), "--set", f"admin.port={admin_port(management)}")


def admin_port(management: str) -> int:
    """The number in the management port's URL."""
    return int(management.rpartition(":")[2])


def test_workers_do_not_join_the_port_of_another_server(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with serving("--port", "0", "--workers", "2", "--set", "admin.port=0", cwd=tmp_path / "a") as (_, port):
        other = start("--port", str(port), "--workers", "2", "--set", "admin.port=0", cwd=tmp_path / "b")
        _, errors = other.communicate(timeout=MAX_WAIT_S)
        assert other.returncode != 0 and f"cannot listen on 127.0.0.1:{port}" in errors
