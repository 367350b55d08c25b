"""When the server's certificate ends: for monitoring, and in the log when it is soon."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack

from prometheus_client import Gauge

from hms_cache.app.background import BackgroundTask
from hms_cache.app.security.certificates import ENDS_SOON_S, end_of_certificate_s
from hms_cache.clock import Clock
from hms_cache.config import Settings

_log = logging.getLogger(__name__)

DAY_S = 86_400.0

_LOOK_INTERVAL_S = 3600.0
_STOP_TIMEOUT_S = 5.0


class CertificateEnd:
    """Of the certificate that new connections are shown."""

    def __init__(self, settings: Settings, gauge: Gauge, clock: Clock) -> None:
        """Raises StartupError for files that cannot be used."""
        self._gauge = gauge
        self._clock = clock
        self._told_s = float("-inf")
        self._take(end_of(settings))

    def renewed(self, settings: Settings) -> Callable[[], None]:
        """For a reload: as the files are now; what is returned takes it. Raises StartupError, with nothing taken."""
        ends_s = end_of(settings)
        return lambda: self._take(ends_s)

    def _take(self, ends_s: float | None) -> None:
        self._ends_s = ends_s
        self._gauge.set(ends_s or 0)

    def start(self, stack: ExitStack) -> None:
        """Look every hour; what has to be stopped again goes onto the stack."""
        task = BackgroundTask("hms-certificate", self.look)
        task.start()
        stack.callback(task.stop, _STOP_TIMEOUT_S)

    def look(self) -> float:
        """Tells once a day when the end is near, or was; returns when to look again."""
        ends_s, now_s = self._ends_s, self._clock.monotonic_s()
        if ends_s is not None and now_s - self._told_s >= DAY_S:
            left_s = ends_s - self._clock.epoch_s()
            if left_s < ENDS_SOON_S:
                self._told_s = now_s
                if left_s < 0:
                    _log.error("the certificate has ended: clients refuse it. Put a new one in place, and send SIGHUP")
                else:
                    _log.warning(
                        "the certificate ends in %d days. Put a new one in its place, and send SIGHUP", left_s // DAY_S
                    )
        return _LOOK_INTERVAL_S


def end_of(settings: Settings) -> float | None:
    """None where no port has TLS."""
    has_tls = any(one.tls_enabled for one in settings.server.ports())
    has_tls = has_tls or (settings.admin.enabled and settings.admin.tls_enabled)
    return end_of_certificate_s(settings.server) if has_tls else None
