"""Expiry of the server's certificate and of revocation lists, for monitoring and as a warning in the log."""

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

_CHECK_INTERVAL_S = 3600.0
_STOP_TIMEOUT_S = 5.0


class _End(ABC):
    """Something that expires and is read from files."""

    task: ClassVar[str]
    soon_s: ClassVar[float]
    """Time before the expiry from which it is logged."""
    what: ClassVar[str]
    what_then: ClassVar[str]

    def __init__(self, settings: Settings, gauge: Gauge, clock: Clock) -> None:
        """Raises StartupError if files cannot be used."""
        self._gauge = gauge
        self._clock = clock
        self._reported_s = float("-inf")
        self._apply(self._read(settings))

    @abstractmethod
    def _read(self, settings: Settings) -> float | None:
        """The expiry in seconds since 1970; None: never, or not configured. Raises StartupError."""

    def renewed(self, settings: Settings) -> Callable[[], None]:
        """For a reload: reads the current files, and returns a function that applies the result. Raises StartupError
        without a change."""
        ends_s = self._read(settings)
        return lambda: self._apply(ends_s)

    def _apply(self, ends_s: float | None) -> None:
        self._ends_s = ends_s
        self._gauge.set(ends_s or 0)

    def start(self, stack: ExitStack) -> None:
        """Checks every hour. Actions for the shutdown are pushed onto the stack."""
        task = BackgroundTask(self.task, self.check)
        task.start()
        stack.callback(task.stop, _STOP_TIMEOUT_S)

    def check(self) -> float:
        """Logs once a day if the expiry is near or past. Returns the pause until the next check."""
        ends_s, now_s = self._ends_s, self._clock.monotonic_s()
        if ends_s is not None and now_s - self._reported_s >= DAY_S:
            remaining_s = ends_s - self._clock.epoch_s()
            if remaining_s < self.soon_s:
                self._reported_s = now_s
                if remaining_s < 0:
                    _log.error("%s has ended: %s. Put a new one in place, and send SIGHUP", self.what, self.what_then)
                else:
                    _log.warning(
                        "%s ends in %d days. Put a new one in its place, and send SIGHUP",
                        self.what,
                        remaining_s // DAY_S,
                    )
        return _CHECK_INTERVAL_S


class CertificateEnd(_End):
    """Expiry of the certificate that new connections get."""

    task = "hms-certificate"
    soon_s = ENDS_SOON_S
    what = "the certificate"
    what_then = "clients refuse it"

    def _read(self, settings: Settings) -> float | None:
        return end_of(settings)


class RevocationListEnd(_End):
    """Expiry of the first of the lists by which client certificates are checked. Authorities issue a new one every week
    or day, and let the old one overlap: a day before its expiry the new one is late."""

    task = "hms-revocation-lists"
    soon_s = DAY_S
    what = "a list of server.tls_client_crl_file"
    what_then = "clients with a certificate are refused"

    def _read(self, settings: Settings) -> float | None:
        file = settings.server.tls_client_crl_file
        return end_of_revocation_lists_s(file) if file is not None else None


def end_of(settings: Settings) -> float | None:
    """The expiry; None if no port has TLS."""
    has_tls = any(one.tls_enabled for one in settings.server.ports())
    has_tls = has_tls or (settings.admin.enabled and settings.admin.tls_enabled)
    return end_of_certificate_s(settings.server) if has_tls else None
