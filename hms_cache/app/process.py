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

#: How long a computing thread may delay others. With Python's 5 ms the event loop, which answers hot reads in
#: microseconds, would be delayed by that after each of its waits while a call or a load computes; a heartbeat, which
#: waits about ten times, as often. A thread switch costs a twentieth of this.
_SWITCH_INTERVAL_S = 0.0001

#: Number of additional objects after which the interpreter searches new objects for cycles, and number of such
#: collections after which it searches older ones. An answer of 10,000 partitions from the database creates 60,000
#: objects, all in use: with Python's 700, a third of its CPU time was spent on garbage collection. Cycles are rare
#: here; 50,000 objects are some 10 MB that may wait.
_GARBAGE_THRESHOLDS = (50_000, 20, 10)


def print_ready(uri: str) -> None:
    """Prints on standard output that the server is ready. A failure does not stop the server."""
    try:
        sys.stdout.write(f"ready {uri}\n")
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError) as error:  # full disk, closed pipe, or closed standard output
        _log.warning("standard output cannot be written (%s): ready %s", error, uri)


@frozen
class Inherited:
    """What a worker process inherits from its parent: its place among the others, and shared objects."""

    siblings: Siblings
    positions: WorkerPositions
    """Shared by all workers."""
    heartbeat: Heartbeat
    """Monitored by the parent."""
    warming: Sequence[WarmingProcess]
    """Processes that read for all workers; if empty, this process creates its own."""
    metrics: Metrics
    database: Database
    """Not connected yet."""


def run(
    load: Callable[[], Configuration],
    announce: Callable[[str], None] = print_ready,
    report_reload: Callable[[bool], None] = lambda is_applied: None,
    inherited: Inherited | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT, then drains and returns. SIGHUP reloads the configuration.

    ``announce`` is called with the URI when the server is ready, ``report_reload`` with the result of each reload;
    ``inherited``: set in one of several workers. Raises ``ConfigurationError`` or ``StartupError`` before the start,
    with nothing left running.
    """
    configuration = load()
    set_up_logging(configuration.settings.log)
    worker = inherited.siblings.own_index if inherited is not None else None
    use_audit_output(open_audit_output(configuration.settings.server, configuration.settings.log, worker))
    show_crashes()
    # workers inherit it from their parent: a garbage collection would copy each page that they share
    if worker is None:
        tune_interpreter()
    tune_allocator()
    # Before the first thread starts, because they are forked.
    given = inherited.warming if inherited is not None else ()
    with (
        nullcontext(given) if given else warming_processes(configuration.settings) as warming,
        closing(Signals()) as signals,
    ):
        # Before the start, so that a signal that arrives meanwhile also shuts the process down in order.
        signals.install()
        service = _service(configuration, inherited, warming)
        uri = service.start()
        try:
            announce(uri)
            while not signals.wait():
                _reload(service, load, worker, report_reload)
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
    """Tunes Python's interpreter for a server: thread switches and garbage collection.

    Existing objects, mostly modules, are excluded from further collections.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE_THRESHOLDS)


def _reload(
    service: Service, load: Callable[[], Configuration], worker: int | None, report: Callable[[bool], None]
) -> None:
    """Applies the settings that a running server can apply, and logs those that need a restart. An invalid
    configuration changes nothing.

    `report` is called with the result before it is logged: a reader of the log may end this process, and its successor
    starts with what was reported.
    """
    try:
        configuration = load()
    except ConfigurationError as error:
        report(False)
        for problem in error.problems:
            _log.error("not reloaded: %s", problem)
        return
    except Exception:
        report(False)
        _log.exception("not reloaded")  # the server continues after any error
        return
    audit_output = None
    try:
        audit_output = open_audit_output(configuration.settings.server, configuration.settings.log, worker)
        applied, refused = service.reload(configuration)
    except StartupError as error:
        report(False)
        close_audit_output(audit_output or [])
        _log.error("not reloaded: %s", error)
        return
    except Exception:
        report(False)
        close_audit_output(audit_output or [])
        _log.exception("not reloaded, or only in part")
        return
    use_audit_output(audit_output)
    report(True)
    set_up_logging(configuration.settings.log)
    _log.info("reloaded: %s", ", ".join(applied) or "nothing that a running server can take has changed")
    if refused:
        _log.warning("these need a restart: %s", ", ".join(refused))
