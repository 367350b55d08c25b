"""``server.workers`` processes on the same ports: each a whole server, and so a full member of the set of servers.

The kernel spreads connections over the processes (SO_REUSEPORT). What one of them writes, the others learn from the
notification log as they do from servers on other machines; how far each has come they tell each other in a page of
shared memory, so that a client may change from one to another (`WorkerPositions`). The parent starts them,
passes signals on, replaces one that ends, and serves nobody itself.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import FrameType

from hms_cache.admin.siblings import Siblings
from hms_cache.app.child_processes import end_with_parent
from hms_cache.app.management import hold_management_port
from hms_cache.app.process import run
from hms_cache.cache.worker_positions import WorkerPositions
from hms_cache.config import Configuration, ServerSettings
from hms_cache.config.settings import DEFAULT_ORIGIN
from hms_cache.errors import StartupError

_log = logging.getLogger(__name__)

LoadWithPort = Callable[[int | None], Configuration]
"""Loads the configuration; with a number given, that is the port."""

_RESTART_PAUSE_S = 1.0
"""Between the end of a worker and its successor: a worker that cannot live shall not burn the machine."""

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_START_TIMEOUT_S = 120.0

#: `sun_path` less its zero byte: 107 bytes on Linux, 103 on BSD and macOS.
_LONGEST_SOCKET_PATH_BYTES = 103

#: Where socket files go when TMPDIR is too deep for them, or cannot be written.
_SHORT_DIRECTORIES = ("/tmp", "/var/tmp", "/dev/shm")


class _Workers:
    """The children by process id. Only the parent's main thread touches it."""

    def __init__(
        self, load: LoadWithPort, configured: ServerSettings, held_ports: Sequence[int], siblings: Siblings
    ) -> None:
        """`held_ports`: others than the configured ones where those are 0; the main one first."""
        self._load = load
        self._configured = configured
        self._held_ports = held_ports
        self._siblings = siblings
        self._positions = WorkerPositions(siblings.count)
        self.running: dict[int, tuple[int, int]] = {}
        """Process id to the worker's index and the end of the pipe that tells of its readiness."""

    def start(self, index: int) -> int:
        """Forks one; its process id. No thread runs in the parent, so a fork is safe."""
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(reading)
            self._serve(writing, replace(self._siblings, own_index=index))
        os.close(writing)
        self.running[process] = index, reading
        return process

    def _serve(self, writing: int, siblings: Siblings) -> None:
        """In the child, for its whole life."""
        status = 1
        try:
            end_with_parent()
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
            run(
                lambda: self._load_again(siblings),
                announce=lambda uri: _tell(writing, uri),
                siblings=siblings,
                positions=self._positions,
            )
            status = 0
        except Exception:
            _log.exception("a worker failed")
        finally:
            os._exit(status)

    def _load_again(self, siblings: Siblings) -> Configuration:
        """In the child, at its start and at each reload. The ports stay, the parent holds them; one worker says so."""
        if siblings.own_index == 0 and self._load(None).settings.server.port != self._configured.port:
            _log.warning("these need a restart: server.port")
        return self._with_held_ports(self._load(self._held_ports[0]))

    def _with_held_ports(self, loaded: Configuration) -> Configuration:
        """With the ports of the listeners; listeners that are others than at the start are for a restart."""
        server = loaded.settings.server
        if server.listeners != self._configured.listeners:
            return loaded
        listeners = tuple(
            one.model_copy(update={"port": port})
            for one, port in zip(server.listeners, self._held_ports[1:], strict=True)
        )
        server = server.model_copy(update={"listeners": listeners})
        return replace(loaded, settings=loaded.settings.model_copy(update={"server": server}))

    def wait_until_ready(self, process: int) -> str | None:
        """The URI that the worker serves, None when it ended before or took too long."""
        _, reading = self.running[process]
        ready, _, _ = select.select([reading], [], [], _START_TIMEOUT_S)
        return os.read(reading, 4096).decode() or None if ready else None

    def signal(self, number: int) -> None:
        """Passes a signal on to all."""
        for process in self.running:
            os.kill(process, number)

    def forget(self, process: int) -> int | None:
        """The index of the worker, which is no more; None: it was none of ours."""
        found = self.running.pop(process, None)
        if found is None:
            return None
        os.close(found[1])
        return found[0]


def _tell(writing: int, uri: str) -> None:
    os.write(writing, uri.encode())
    os.close(writing)


def run_workers(load: LoadWithPort) -> None:
    """Serves with `server.workers` processes until SIGTERM or SIGINT, which drains them all; SIGHUP reloads them all.

    Prints one ``ready thrift://HOST:PORT`` when all of them listen. Raises ``ConfigurationError`` or ``StartupError``.
    """
    configuration = load(None)
    settings = configuration.settings.server
    with ExitStack() as held:
        holders = [held.enter_context(_hold_port(one.host, one.port)) for one in settings.ports()]
        ports = [holder.getsockname()[1] for holder in holders]
        workers = _Workers(load, settings, ports, _siblings(configuration, held))
        _run(workers, settings.workers)


def _siblings(configuration: Configuration, held: ExitStack) -> Siblings:
    """What the workers need to find each other; what has to be given back at the end goes onto the stack."""
    settings = configuration.settings.admin
    count = configuration.settings.server.workers
    if not settings.enabled:
        return Siblings(count=count)
    is_chosen = configuration.origin("admin.port") != DEFAULT_ORIGIN
    holder = held.enter_context(hold_management_port(settings.host, settings.port, is_chosen=is_chosen))
    return Siblings(0, count, _socket_directory(count, held), holder.getsockname()[1])


def _socket_directory(count: int, held: ExitStack) -> Path | None:
    """Where the workers' socket files are: in the first place that has room for them, in path length, too."""
    problems: list[str] = []
    for parent in dict.fromkeys((tempfile.gettempdir(), os.environ.get("XDG_RUNTIME_DIR"), *_SHORT_DIRECTORIES)):
        if not parent:
            continue
        try:
            made = tempfile.TemporaryDirectory(prefix="hms-cache-", dir=parent, ignore_cleanup_errors=True)
        except OSError as error:
            problems.append(f"{parent}: {error.strerror or error}")
            continue
        longest = Siblings(count - 1, count, Path(made.name)).own_path
        if len(os.fsencode(str(longest))) <= _LONGEST_SOCKET_PATH_BYTES:
            return Path(held.enter_context(made))
        made.cleanup()
        problems.append(f"{parent}: too long for the path of a socket")
    _log.warning("commands will reach one worker only: no directory for socket files: %s", "; ".join(problems))
    return None


def _run(workers: _Workers, count: int) -> None:
    stopping: list[int] = []

    def on_stop(number: int, _frame: FrameType | None) -> None:
        stopping.append(number)
        workers.signal(signal.SIGTERM)

    def on_reload(number: int, _frame: FrameType | None) -> None:
        workers.signal(number)

    # The first one makes what is missing (an embedded database's schema); the others find it.
    for index in range(count):
        uri = workers.wait_until_ready(workers.start(index))
        if uri is None:
            workers.signal(signal.SIGKILL)
            raise StartupError("a worker did not start", remedy="Its own message stands above.")
    signal.signal(signal.SIGTERM, on_stop)
    signal.signal(signal.SIGINT, on_stop)
    signal.signal(signal.SIGHUP, on_reload)
    sys.stdout.write(f"ready {uri}\n")
    sys.stdout.flush()
    while workers.running:
        process, status = os.wait()
        ended = workers.forget(process)
        if ended is not None and not stopping:
            _log.error("worker %d ended with status %d; another one takes its place", process, status)
            _pause(stopping)
            # A stop that comes from here on is heard when the new worker is among those that it is passed on to.
            signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
            try:
                if not stopping:
                    workers.start(ended)
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)


def _pause(stopping: list[int]) -> None:
    """Until a successor may start, or the server is asked to stop."""
    end_s = time.monotonic() + _RESTART_PAUSE_S
    while not stopping and time.monotonic() < end_s:
        time.sleep(_RESTART_PAUSE_S / 20)


def _hold_port(host: str, port: int) -> socket.socket:
    """Reserves the port for all workers: bound with SO_REUSEPORT and never listened on. Raises StartupError.

    SO_REUSEADDR, too: connections of a server before this one may still be ending (TIME_WAIT) for a minute.
    """
    try:
        # Sharing is allowed to every process of this user: another server's port must not be joined.
        with _bound(host, port, shared=False) as alone:
            alone.listen()
        return _bound(host, port, shared=True)
    except OSError as error:
        raise StartupError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            remedy="Is another metastore running there? Choose another port: --port 0 picks a free one.",
        ) from error


def _bound(host: str, port: int, *, shared: bool) -> socket.socket:
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound
