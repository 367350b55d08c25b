"""``hms-cache serve`` as a process: log output, the service, signals, exit."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext

from hms_cache.admin.siblings import Siblings
from hms_cache.app.audit_output import close_audit_output, open_audit_output, use_audit_output
from hms_cache.app.child_processes import show_crashes
from hms_cache.app.log_output import set_up_logging
from hms_cache.app.service import Service
from hms_cache.app.signals import Signals
from hms_cache.app.system.allocator import tune_allocator
from hms_cache.app.warming_process import WarmingProcess, warming_processes
from hms_cache.app.worker_heartbeats import Heartbeat
from hms_cache.cache.worker_positions import WorkerPositions
from hms_cache.config import Configuration
from hms_cache.errors import ConfigurationError, StartupError
from hms_cache.metrics import Metrics
from hms_cache.store.engine.database import Database
from hms_cache.values import frozen

_log = logging.getLogger(__name__)

#: How long a thread that computes may keep the others waiting. With Python's 5 ms the event loop, which answers hot
#: reads in microseconds, would wait so long after each of its waits whenever a call or a load is being worked on; a
#: heartbeat, which waits some ten times, as often. A change of threads costs a twentieth of this.
_SWITCH_INTERVAL_S = 0.0001

#: How many objects more than before make the interpreter look for cycles among the new ones, and how many such looks
#: make it look among older ones. An answer of 10,000 partitions from the database makes 60,000 objects, all of them in
#: use: with Python's 700 a third of its CPU time went into looking for garbage that is not there. Cycles are rare here;
#: 50,000 objects are some 10 MB that may wait.
_GARBAGE_THRESHOLDS = (50_000, 20, 10)


def print_ready(uri: str) -> None:
    """Tells on standard output that clients may come. That nobody can be told is no reason to serve nobody."""
    try:
        sys.stdout.write(f"ready {uri}\n")
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError) as error:  # a full disk, a reader that has gone; it is closed
        _log.warning("standard output cannot be written (%s): ready %s", error, uri)


@frozen
class Inherited:
    """What a worker process has from its parent: its place among the others, and what is made once for all of them."""

    siblings: Siblings
    positions: WorkerPositions
    """Shared by all workers."""
    heartbeat: Heartbeat
    """The parent listens to it."""
    warming: Sequence[WarmingProcess]
    """They read for all workers; none: this one makes its own."""
    metrics: Metrics
    database: Database
    """Nothing is connected yet."""


def run(
    load: Callable[[], Configuration],
    announce: Callable[[str], None] = print_ready,
    tell_reload: Callable[[bool], None] = lambda is_taken: None,
    inherited: Inherited | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then drain and return. SIGHUP loads the configuration again.

    ``announce`` is given the URI when clients may come, ``tell_reload`` whether a reload was taken; ``inherited``: as
    one of several workers. Raises ``ConfigurationError`` or ``StartupError`` before that, with nothing left running.
    """
    configuration = load()
    set_up_logging(configuration.settings.log)
    worker = inherited.siblings.own_index if inherited is not None else None
    use_audit_output(open_audit_output(configuration.settings.server, configuration.settings.log, worker))
    show_crashes()
    if worker is None:  # workers have it from their parent: a look for cycles would copy each page that they share
        tune_interpreter()
    tune_allocator()
    # Before the first thread starts: they are forked.
    given = inherited.warming if inherited is not None else ()
    with (
        nullcontext(given) if given else warming_processes(configuration.settings) as warming,
        closing(Signals()) as signals,
    ):
        # Before the start, so that a signal that arrives meanwhile ends the process in order, too.
        signals.take()
        service = _service(configuration, inherited, warming)
        uri = service.start()
        try:
            announce(uri)
            while not signals.wait():
                _reload(service, load, worker, tell_reload)
            _log.info("stopping")
        finally:
            service.stop()


def _service(configuration: Configuration, inherited: Inherited | None, warming: Sequence[WarmingProcess]) -> Service:
    if inherited is None:
        return Service(configuration, warming=warming)
    return Service(
        configuration,
        inherited.metrics,
        inherited.siblings,
        warming,
        inherited.positions,
        inherited.heartbeat,
        inherited.database,
    )


def tune_interpreter() -> None:
    """Sets what Python's interpreter does by itself for a server: when threads take turns, when cycles are looked for.

    What is there by now, modules above all, stays to the end: no look for cycles goes through it again.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE_THRESHOLDS)


def _reload(
    service: Service, load: Callable[[], Configuration], worker: int | None, tell: Callable[[bool], None]
) -> None:
    """Take what a running server can take; log what needs a restart. A bad configuration changes nothing.

    `tell` is given whether it was taken, before the log is: who reads there that it was may end this process, and the
    one after it starts with what was told.
    """
    try:
        configuration = load()
    except ConfigurationError as error:
        tell(False)
        for problem in error.problems:
            _log.error("not reloaded: %s", problem)
        return
    except Exception:
        tell(False)
        _log.exception("not reloaded")  # whatever is wrong with it, clients are served
        return
    audit_output = None
    try:
        audit_output = open_audit_output(configuration.settings.server, configuration.settings.log, worker)
        taken, refused = service.reload(configuration)
    except StartupError as error:
        tell(False)
        close_audit_output(audit_output or [])
        _log.error("not reloaded: %s", error)
        return
    except Exception:
        tell(False)
        close_audit_output(audit_output or [])
        _log.exception("not reloaded, or only in part")
        return
    use_audit_output(audit_output)
    tell(True)
    set_up_logging(configuration.settings.log)
    _log.info("reloaded: %s", ", ".join(taken) or "nothing that a running server can take has changed")
    if refused:
        _log.warning("these need a restart: %s", ", ".join(refused))
