"""When the server's certificate and the revocation lists end: for monitoring, and in the log when it is soon."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from typing import ClassVar

from prometheus_client import Gauge

from hms_cache.app.background import BackgroundTask
from hms_cache.app.security.certificates import ENDS_SOON_S, end_of_certificate_s
from hms_cache.app.security.revocation import end_of_revocation_lists_s
from hms_cache.clock import Clock
from hms_cache.config import Settings

_log = logging.getLogger(__name__)

DAY_S = 86_400.0

_LOOK_INTERVAL_S = 3600.0
_STOP_TIMEOUT_S = 5.0


class _End(ABC):
    """Of something that ends one day, and is read from files."""

    task: ClassVar[str]
    soon_s: ClassVar[float]
    """How long before the end it is told."""
    what: ClassVar[str]
    what_then: ClassVar[str]

    def __init__(self, settings: Settings, gauge: Gauge, clock: Clock) -> None:
        """Raises StartupError for files that cannot be used."""
        self._gauge = gauge
        self._clock = clock
        self._told_s = float("-inf")
        self._take(self._read(settings))

    @abstractmethod
    def _read(self, settings: Settings) -> float | None:
        """When it ends, in seconds since 1970; None: never, or it is not there. Raises StartupError."""

    def renewed(self, settings: Settings) -> Callable[[], None]:
        """For a reload: as the files are now; what is returned takes it. Raises StartupError, with nothing taken."""
        ends_s = self._read(settings)
        return lambda: self._take(ends_s)

    def _take(self, ends_s: float | None) -> None:
        self._ends_s = ends_s
        self._gauge.set(ends_s or 0)

    def start(self, stack: ExitStack) -> None:
        """Look every hour; what has to be stopped again goes onto the stack."""
        task = BackgroundTask(self.task, self.look)
        task.start()
        stack.callback(task.stop, _STOP_TIMEOUT_S)

    def look(self) -> float:
        """Tells once a day when the end is near, or was; returns when to look again."""
        ends_s, now_s = self._ends_s, self._clock.monotonic_s()
        if ends_s is not None and now_s - self._told_s >= DAY_S:
            left_s = ends_s - self._clock.epoch_s()
            if left_s < self.soon_s:
                self._told_s = now_s
                if left_s < 0:
                    _log.error("%s has ended: %s. Put a new one in place, and send SIGHUP", self.what, self.what_then)
                else:
                    _log.warning(
                        "%s ends in %d days. Put a new one in its place, and send SIGHUP", self.what, left_s // DAY_S
                    )
        return _LOOK_INTERVAL_S


class CertificateEnd(_End):
    """Of the certificate that new connections are shown."""

    task = "hms-certificate"
    soon_s = ENDS_SOON_S
    what = "the certificate"
    what_then = "clients refuse it"

    def _read(self, settings: Settings) -> float | None:
        return end_of(settings)


class RevocationListEnd(_End):
    """Of the first of the lists that clients' certificates are looked up in. Authorities make a new one each week or
    each day, and let the old one be in force some time longer: a day before its end it is late."""

    task = "hms-revocation-lists"
    soon_s = DAY_S
    what = "a list of server.tls_client_crl_file"
    what_then = "clients with a certificate are refused"

    def _read(self, settings: Settings) -> float | None:
        file = settings.server.tls_client_crl_file
        return end_of_revocation_lists_s(file) if file is not None else None


def end_of(settings: Settings) -> float | None:
    """None where no port has TLS."""
    has_tls = any(one.tls_enabled for one in settings.server.ports())
    has_tls = has_tls or (settings.admin.enabled and settings.admin.tls_enabled)
    return end_of_certificate_s(settings.server) if has_tls else None
