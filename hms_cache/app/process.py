"""``hms-cache serve`` as a process: log output, the service, signals, exit."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

from hms_cache.admin.siblings import Siblings
from hms_cache.app.log_output import set_up_logging
from hms_cache.app.service import Service
from hms_cache.config import Configuration
from hms_cache.errors import ConfigurationError

_log = logging.getLogger(__name__)

#: How long a thread that computes may keep the others waiting. With Python's 5 ms the event loop, which answers hot
#: reads in microseconds, would wait so long after each of its waits whenever a call or a load is being worked on.
_SWITCH_INTERVAL_S = 0.0005


def print_ready(uri: str) -> None:
    """Tells on standard output that clients may come."""
    sys.stdout.write(f"ready {uri}\n")
    sys.stdout.flush()


def run(
    load: Callable[[], Configuration],
    announce: Callable[[str], None] = print_ready,
    siblings: Siblings | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then drain and return. SIGHUP loads the configuration again.

    ``announce`` is given the URI when clients may come; ``siblings`` is the place among several workers. Raises
    ``ConfigurationError`` or ``StartupError`` before that, with nothing left running.
    """
    configuration = load()
    set_up_logging(configuration.settings.log)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    stopping = threading.Event()
    reloading = threading.Event()
    woken = threading.Event()

    def on_stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()
        woken.set()

    def on_reload(_number: int, _frame: FrameType | None) -> None:
        reloading.set()
        woken.set()

    # Before the start, so that a signal that arrives meanwhile ends the process in order, too.
    signal.signal(signal.SIGTERM, on_stop)
    signal.signal(signal.SIGINT, on_stop)
    signal.signal(signal.SIGHUP, on_reload)
    service = Service(configuration, siblings=siblings)
    uri = service.start()
    try:
        announce(uri)
        while not stopping.is_set():
            woken.wait()
            woken.clear()
            if reloading.is_set() and not stopping.is_set():
                reloading.clear()
                _reload(service, load)
        _log.info("stopping")
    finally:
        service.stop()


def _reload(service: Service, load: Callable[[], Configuration]) -> None:
    """Take what a running server can take; tell what needs a restart. A bad configuration changes nothing."""
    try:
        configuration = load()
    except ConfigurationError as error:
        for problem in error.problems:
            _log.error("not reloaded: %s", problem)
        return
    taken, refused = service.reload(configuration)
    set_up_logging(configuration.settings.log)
    _log.info("reloaded: %s", ", ".join(taken) or "nothing that a running server can take has changed")
    if refused:
        _log.warning("these need a restart: %s", ", ".join(refused))
