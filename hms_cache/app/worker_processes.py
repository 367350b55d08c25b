"""``server.workers`` processes on the same ports: each is a complete server, and a full member of the set of servers.

The kernel distributes connections over the processes (SO_REUSEPORT). Each learns of the others' writes from the
notification log, as from servers on other machines. They publish their positions in shared memory, so that a client may
switch between them (`WorkerPositions`). The parent starts them, forwards signals, replaces a worker that ends, and
serves no clients itself.
"""

from __future__ import annotations

import encodings.idna  # noqa: F401 -- each worker would load it at its first host name
import logging
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from hms_cache.admin.siblings import Siblings
from hms_cache.app.child_processes import end_with_parent, ending, exit_process, show_crashes
from hms_cache.app.database import open_database
from hms_cache.app.log_output import set_up_logging
from hms_cache.app.management import hold_management_port
from hms_cache.app.process import Inherited, print_ready, run, tune_interpreter
from hms_cache.app.signals import CHILD_ENDED, RELOAD, STOP, Signals, fork
from hms_cache.app.system.ports import OTHER_SERVER, holding_socket
from hms_cache.app.system.temporary_directories import temporary_directory
from hms_cache.app.warming_process import SharedWarming
from hms_cache.app.worker_heartbeats import HangWatch, Heartbeat, Heartbeats, is_stopped
from hms_cache.cache import memory_files
from hms_cache.cache.worker_positions import WorkerPositions
from hms_cache.config import Configuration, finite_s
from hms_cache.config.settings import DEFAULT_ORIGIN
from hms_cache.config.site_file import settings_by_site_key
from hms_cache.errors import HmsCacheError, PortError, StartupError
from hms_cache.metrics import Metrics
from hms_cache.store.engine.database import Database

_log = logging.getLogger(__name__)

Load = Callable[[], Configuration]

_RESTART_PAUSE_S = 1.0
"""Pause between the end of a worker and the start of its successor: a worker that fails at once must not use up the
machine."""

_START_TIMEOUT_S = 120.0

_RECHECK_INTERVAL_S = 0.1

_ANSWER_TIMEOUT_S = 10.0
"""How long a successor waits for a worker to report the result of a reload; a worker that hangs does not report it."""

_ABORT_GRACE_S = 10.0
"""How long a hanging worker may take to end after SIGABRT (it writes its stacks and, if the system is configured so, a
core file) before it is killed."""

_APPLIED, _REFUSED = b"+", b"-"
"""A worker's report about a reload, sent after the line with its URI."""

_IN_ORDER = (0, *(-number for number in STOP))
"""Exit codes of a worker that ends as requested; a negative one if the signal itself ended it before it had started."""

#: Size of `sun_path` without its terminating zero byte: 107 bytes on Linux, 103 on BSD and macOS.
_LONGEST_SOCKET_PATH_BYTES = 103

#: Directories for socket files if the path of TMPDIR is too long or not writable.
_SHORT_DIRECTORIES = ("/tmp", "/var/tmp", "/dev/shm")


class _Workers:
    """The child processes. Used only by the parent's main thread."""

    def __init__(
        self,
        load: Load,
        configuration: Configuration,
        held_ports: Sequence[int],
        siblings: Siblings,
        signals: Signals,
        warming: SharedWarming,
        metrics: Metrics,
        database: Database,
    ) -> None:
        """`held_ports`: the actual ports where the configured ones are 0, the main one first. `metrics`, `database`:
        inherited by each worker."""
        self._warming = warming
        self._metrics = metrics
        self._database = database
        self._load = load
        self._in_force = configuration
        """The configuration with which workers start: equal for all workers, whatever the files contain by then."""
        self._offered: Configuration | None = None
        """The configuration of the last reload, until a worker has reported whether it is usable."""
        self._offered_at_s = 0.0
        self._reload_reports: set[bytes] = set()
        """Reports of workers about it, including workers that have ended since."""
        self._configured = configuration.settings.server
        self._held_ports = held_ports
        self._siblings = siblings
        self._signals = signals
        self._positions = WorkerPositions(siblings.count)
        self._running: dict[int, tuple[int, int]] = {}
        """The worker's index, and the read end of the pipe for readiness and reloads, by process id."""
        self._due: list[tuple[float, int]] = []
        """Due time and index of workers to restart."""
        self._heartbeats = Heartbeats(siblings.count)
        self._hang_watch = HangWatch(configuration.settings.server.worker_timeout_s, is_stopped)
        self._next_check_s = 0.0
        self._ending: dict[int, float] = {}
        """Hanging workers that have been ordered to end, with their deadlines."""
        self._lost = [0] * siblings.count
        """Number of unexpected ends, by index."""
        self._awaited = 0
        """The process that was last waited for until it was ready; until then its pipe contains more than reports."""
        self._is_stopping = False
        self._badly_ended = 0
        """Number of workers that ended badly during the shutdown."""

    def start_all(self) -> str | None:
        """Starts the workers one after the other. Returns the URI that they serve; None if a stop was requested
        meanwhile.

        Raises StartupError, with no worker left.
        """
        uri = ""
        # The first one creates what is missing (an embedded database's schema); the others find it.
        for index in range(self._siblings.count):
            while not self._is_reload_settled():
                self._handle_signals(self._signals.received(_RECHECK_INTERVAL_S))
            if self._is_stopping:
                return None
            try:
                process = self._start(index)
            except OSError as error:
                self._give_up()
                raise StartupError(f"worker {index} cannot be started: {error.strerror or error}") from error
            uri = self._wait_until_ready(process)
            if self._is_stopping:
                return None
            if not uri:
                os.kill(process, signal.SIGKILL)
                self._give_up()
                raise StartupError("a worker did not start", remedy="Its own message stands above.")
        return uri

    def watch(self) -> None:
        """Forwards signals and restarts workers, until all have ended because of a stop.

        Raises HmsCacheError if one of them did not end in order.
        """
        while self._is_any_running():
            self._handle_signals(self._signals.received(self._pause_s()))
            self._fill_places()
            self._end_hanging()
        if self._badly_ended:
            raise HmsCacheError(f"{self._badly_ended} of the workers did not end in order: see the log")

    def _pause_s(self) -> float | None:
        """How long to wait for signals before other work is due; None: no limit."""
        due_times_s = [due_s for due_s, _ in self._due]
        if finite_s(self._hang_watch.interval_s) is not None and not self._is_stopping:
            due_times_s.append(self._next_check_s)
        return max(0.0, min(due_times_s) - time.monotonic()) if due_times_s else None

    def _end_hanging(self) -> None:
        """Ends workers whose event loop is blocked. Not during a shutdown, which may take long and is left to its
        initiator."""
        now_s = time.monotonic()
        if self._is_stopping or now_s < self._next_check_s:
            return
        self._next_check_s = now_s + self._hang_watch.interval_s
        beats = {process: self._heartbeats.beats(index) for process, (index, _) in self._running.items()}
        self._ending = {process: end_s for process, end_s in self._ending.items() if process in beats}
        for process in self._hang_watch.hanging(now_s, beats):
            if process not in self._ending:
                index, _ = self._running[process]
                _log.error(
                    "worker %d (process %d) has made no progress for %g s (setting server.worker_timeout_s);"
                    " it is killed",
                    index,
                    process,
                    self._in_force.settings.server.worker_timeout_s,
                )
                self._ending[process] = now_s + _ABORT_GRACE_S
                os.kill(process, signal.SIGABRT)  # it writes the stacks of its threads
            elif now_s >= self._ending[process]:
                os.kill(process, signal.SIGKILL)

    def _is_any_running(self) -> bool:
        """Collects workers that have ended first: their signal may have been received already."""
        self._reap()
        return bool(self._running or self._due)

    def _start(self, index: int) -> int:
        """Forks a worker; returns its process id. No thread runs in the parent, so a fork is safe. Raises OSError."""
        reading, writing = os.pipe()
        parent = os.getpid()
        # The previous worker has used this counter.
        heartbeat = self._heartbeats.slot(index)
        try:
            process = fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            raise
        if process == 0:
            os.close(reading)
            siblings = replace(self._siblings, own_index=index, lost_before=self._lost[index])
            self._serve(writing, siblings, parent, heartbeat)
        self._warming.close_ends_of(index)
        os.close(writing)
        os.set_blocking(reading, False)
        self._running[process] = index, reading
        return process

    def _serve(self, writing: int, siblings: Siblings, parent: int, heartbeat: Heartbeat) -> NoReturn:
        """The child's main function."""
        status = 1
        try:
            end_with_parent(parent)
            run(
                self._loading(siblings),
                announce=lambda uri: _write_report(writing, f"{uri}\n".encode()),
                report_reload=lambda is_applied: _write_report(writing, _APPLIED if is_applied else _REFUSED),
                inherited=Inherited(
                    siblings,
                    self._positions,
                    heartbeat,
                    self._warming.take(siblings.own_index),
                    self._metrics,
                    self._database,
                ),
            )
            status = 0
        except Exception:
            _log.exception("a worker failed")
        finally:
            exit_process(status)

    def _loading(self, siblings: Siblings) -> Load:
        """Called in the child: loads the configuration in force first, and at each reload the current one."""
        first = [self._with_held_ports(self._in_force)]

        def load() -> Configuration:
            if first:
                return first.pop()
            loaded = self._load()
            # The ports do not change, since the parent holds them; one worker logs that.
            if siblings.own_index == 0 and loaded.settings.server.port != self._configured.port:
                _log.warning("these need a restart: server.port")
            return self._with_held_ports(loaded)

        return load

    def _with_held_ports(self, loaded: Configuration) -> Configuration:
        """The configuration with the ports that are held. Changed listeners need a restart."""
        server = loaded.settings.server.model_copy(update={"port": self._held_ports[0]})
        if server.listeners == self._configured.listeners:
            listeners = tuple(
                one.model_copy(update={"port": port})
                for one, port in zip(server.listeners, self._held_ports[1:], strict=True)
            )
            server = server.model_copy(update={"listeners": listeners})
        return replace(loaded, settings=loaded.settings.model_copy(update={"server": server}))

    def _wait_until_ready(self, process: int) -> str:
        """The URI that the worker serves; empty if it ended before, took too long, or a stop was requested."""
        _, reading = self._running[process]
        self._awaited = process
        end_s = time.monotonic() + _START_TIMEOUT_S
        while (remaining_s := end_s - time.monotonic()) > 0:
            is_readable, received = self._signals.received_or_readable(reading, remaining_s)
            self._handle_signals(received)
            if is_readable or self._is_stopping:
                self._awaited = 0
                return _line(reading) if is_readable else ""
        return ""

    def _give_up(self) -> None:
        """Ends all workers, including those that serve already."""
        self._stop()
        while self._is_any_running():
            self._signals.received()

    def _stop(self) -> None:
        self._is_stopping = True
        self._due.clear()
        self._signal_all(signal.SIGTERM)

    def _handle_signals(self, received: frozenset[int]) -> None:
        if received & STOP:
            self._stop()
        elif RELOAD in received:
            self._listen_to_all()
            self._reload_reports.clear()  # reports about earlier reloads
            # Before the workers reload: after they have logged it, the file may change again.
            self._reload()
            self._signal_all(RELOAD)

    def _signal_all(self, number: signal.Signals) -> None:
        """None of these ids belongs to another process by now: only `_reap` waits for ended workers."""
        for process in self._running:
            os.kill(process, number)

    def _reload(self) -> None:
        """Loads the configuration for workers started from now on; it applies if a running worker reports that it is
        usable."""
        try:
            loaded = self._load()
        except Exception:
            return
        applied, _ = self._in_force.reloadable_changes(loaded.settings)
        self._offered, self._offered_at_s = self._in_force.with_changes(loaded, applied), time.monotonic()
        set_up_logging(self._offered.settings.log)

    def _is_reload_settled(self) -> bool:
        """Whether the result of the last reload is known. It applies if at least one worker has accepted it."""
        if self._offered is None:
            return True
        self._listen_to_all()
        if _APPLIED in self._reload_reports:
            self._in_force = self._offered
        elif _REFUSED not in self._reload_reports and self._running and self._may_answer():
            return False
        self._offered = None
        return True

    def _may_answer(self) -> bool:
        return time.monotonic() - self._offered_at_s < _ANSWER_TIMEOUT_S

    def _listen_to_all(self) -> None:
        for process, (_, reading) in self._running.items():
            self._listen_to(process, reading)

    def _listen_to(self, process: int, reading: int) -> None:
        """Collects the worker's reports about reloads since the last check."""
        if process != self._awaited:
            with suppress(BlockingIOError):
                self._reload_reports.add(os.read(reading, 4096)[-1:])

    def _reap(self) -> None:
        """Handles workers that have ended."""
        while self._running:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            found = self._running.pop(process, None)
            if found is None:
                self._warming.ended(process)
                continue  # not a worker: the first process of a container also inherits orphans
            index, reading = found
            self._listen_to(process, reading)
            os.close(reading)
            self._has_ended(index, process, os.waitstatus_to_exitcode(status))

    def _has_ended(self, index: int, process: int, code: int) -> None:
        how = ending(code)
        if not self._is_stopping:
            _log.error("worker %d (process %d) %s; it is replaced", index, process, how)
            self._lost[index] += 1
            self._due.append((time.monotonic() + _RESTART_PAUSE_S, index))
        elif code not in _IN_ORDER:
            _log.error("worker %d (process %d) %s", index, process, how)
            self._badly_ended += 1

    def _fill_places(self) -> None:
        now_s = time.monotonic()
        if self._due and min(self._due)[0] <= now_s and not self._is_reload_settled():
            self._due = [(max(due_s, now_s + _RECHECK_INTERVAL_S), index) for due_s, index in self._due]
            return
        for due_s, index in [one for one in self._due if one[0] <= now_s]:
            self._due.remove((due_s, index))
            try:
                self._start(index)
            except OSError as error:  # the others continue
                _log.error("worker %d cannot be started, and is tried again: %s", index, error)
                self._due.append((now_s + _RESTART_PAUSE_S, index))


def _line(reading: int) -> str:
    """Reads what has been written up to the end of the line, but no more, since reports may follow."""
    line = b""
    while (one := os.read(reading, 1)) not in (b"", b"\n"):
        line += one
    return line.decode()


def _write_report(writing: int, what: bytes) -> None:
    with suppress(OSError):  # the parent has ended, and this worker ends with it
        os.write(writing, what)


def run_workers(load: Load) -> None:
    """Serves with `server.workers` processes until SIGTERM or SIGINT, which drains all of them; SIGHUP reloads all of
    them.

    Prints one ``ready thrift://HOST:PORT`` when all of them listen. Raises ``ConfigurationError`` or ``StartupError``,
    and ``HmsCacheError`` if workers did not end in order.
    """
    configuration = load()
    set_up_logging(configuration.settings.log)
    show_crashes()
    # Objects created before the fork take their memory only once.
    metrics = Metrics()
    database = open_database(configuration.settings, metrics.database)
    settings_by_site_key()
    tune_interpreter()
    settings = configuration.settings.server
    with ExitStack() as held:
        # Before ports are held and signals handled, because they are forked.
        warming = held.enter_context(_shared_warming(configuration))
        signals = held.enter_context(closing(Signals()))
        signals.install(CHILD_ENDED)
        holders = [held.enter_context(_hold_port(one.host, one.port)) for one in settings.ports()]
        ports = [holder.getsockname()[1] for holder in holders]
        workers = _Workers(
            load, configuration, ports, _siblings(configuration, held), signals, warming, metrics, database
        )
        uri = workers.start_all()
        if uri is not None:
            print_ready(uri)
        workers.watch()


def _shared_warming(configuration: Configuration) -> closing[SharedWarming]:
    settings = configuration.settings
    sends_files = settings.server.workers_share_memory and memory_files.is_available()
    return closing(SharedWarming(settings, settings.server.workers, sends_files=sends_files))


def _siblings(configuration: Configuration, held: ExitStack) -> Siblings:
    """What the workers need to find each other. Resources to release are pushed onto the stack."""
    settings = configuration.settings.admin
    count = configuration.settings.server.workers
    shares = configuration.settings.server.workers_share_memory and configuration.settings.cache.enabled
    memory = _memory_directory(held) if shares else None
    if not settings.enabled:
        return Siblings(count=count, memory_directory=memory)
    is_chosen = configuration.origin("admin.port") != DEFAULT_ORIGIN
    holder = held.enter_context(hold_management_port(settings.host, settings.port, is_chosen=is_chosen))
    return Siblings(0, count, _socket_directory(count, held), holder.getsockname()[1], memory)


def _memory_directory(held: ExitStack) -> Path | None:
    """The directory through which the workers find each other's files in memory; it contains only small links."""
    if not memory_files.is_available():
        _log.info("the workers share no memory: this system has no sealed files in memory")
        return None
    try:
        return held.enter_context(temporary_directory("hms-memory-", tempfile.gettempdir()))
    except OSError as error:
        _log.warning("the workers share no memory: no directory for links: %s", error.strerror or error)
        return None


def _socket_directory(count: int, held: ExitStack) -> Path | None:
    """The directory of the workers' socket files: the first one that is writable and whose path is short enough."""
    problems: list[str] = []
    for parent in dict.fromkeys((tempfile.gettempdir(), os.environ.get("XDG_RUNTIME_DIR"), *_SHORT_DIRECTORIES)):
        if not parent:
            continue
        with ExitStack() as trial:
            try:
                made = trial.enter_context(temporary_directory("hms-cache-", parent))
            except OSError as error:
                problems.append(f"{parent}: {error.strerror or error}")
                continue
            longest = Siblings(count - 1, count, made).own_path
            if len(os.fsencode(str(longest))) <= _LONGEST_SOCKET_PATH_BYTES:
                held.push(trial.pop_all())
                return made
        problems.append(f"{parent}: too long for the path of a socket")
    _log.warning("commands will reach one worker only: no directory for socket files: %s", "; ".join(problems))
    return None


def _hold_port(host: str, port: int) -> socket.socket:
    """Reserves the port for all workers. Raises StartupError."""
    try:
        return holding_socket(host, port)
    except (OSError, UnicodeError) as error:
        raise PortError(f"{host}:{port}", error, if_in_use=OTHER_SERVER) from error
