"""Output of audit lines: to standard error with the log, to a rotated file, or to syslog.

The lines come from a thread of their own (`hms_cache.server.audit`), so writing may block on a disk or on syslog's
socket. A line that cannot be written is dropped and counted; this is logged at most once a minute.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler, SysLogHandler
from pathlib import Path
from typing import cast

from hms_cache.app.log_output import PROGRAM_LOGGER, formatter_of
from hms_cache.config import LogSettings
from hms_cache.config.sections import ServerSettings
from hms_cache.errors import StartupError

_log = logging.getLogger(__name__)

_AUDIT_LOGGER = logging.getLogger(f"{PROGRAM_LOGGER}.audit")

_OWNER_ONLY = 0o600
"""Mode of a new file: lines name users and what they read."""

_REPORT_INTERVAL_S = 60.0
"""Minimum time between log lines about lost audit lines."""


class _LostLines:
    """Counts audit lines that could not be written. Changed only by the thread that writes audit lines; read by any."""

    def __init__(self) -> None:
        self.count = 0
        self._reported_s = float("-inf")

    def note(self, where: str, error: BaseException | None) -> None:
        self.count += 1
        now_s = time.monotonic()
        if now_s - self._reported_s >= _REPORT_INTERVAL_S:
            self._reported_s = now_s
            _log.error("audit lines are lost: %s cannot be written: %s (%d so far)", where, error, self.count)


_losses = _LostLines()


def lost_lines() -> int:
    """Number of audit lines that could not be written since the process started."""
    return _losses.count


class _File(RotatingFileHandler):
    """Renames the file when it is full: `audit.log` becomes `audit.log.1`, and so on; the oldest file is deleted."""

    def _open(self) -> TextIOWrapper:
        def opener(path: str, flags: int) -> int:
            return os.open(path, flags, _OWNER_ONLY)

        opened = open(self.baseFilename, self.mode, encoding=self.encoding, opener=opener)  # noqa: SIM115 (kept open)
        return cast(TextIOWrapper, opened)

    def handleError(self, record: logging.LogRecord) -> None:
        _losses.note(self.baseFilename, _current_error())


class _Syslog(SysLogHandler):
    """Facility `authpriv`, severity `info`, as usual for decisions about access."""

    def __init__(self, address: tuple[str, int] | str) -> None:
        super().__init__(address, facility=SysLogHandler.LOG_AUTHPRIV)
        self.append_nul = False
        self.ident = f"hms-cache[{os.getpid()}]: "

    def handleError(self, record: logging.LogRecord) -> None:
        _losses.note(f"syslog at {self.address}", _current_error())


def _current_error() -> BaseException | None:
    return sys.exc_info()[1]


def open_audit_output(settings: ServerSettings, log: LogSettings, worker: int | None = None) -> list[logging.Handler]:
    """Opens the handlers for audit lines, for `use_audit_output`; empty: they go to the log's own output.

    `worker`: the number of this process among several; each then has a file of its own, since two processes cannot
    rotate one file. Raises StartupError, with nothing left open, if the file or the socket cannot be opened.
    """
    handlers: list[logging.Handler] = []
    if settings.audit_syslog:
        handlers.append(_opened_syslog(settings.audit_syslog))
    if settings.audit_file is not None:
        path = settings.audit_file
        if worker is not None:
            path = path.with_name(f"{path.name}.worker{worker}")
        try:
            handlers.append(_opened_file(path, settings.audit_file_bytes, settings.audit_files_kept, log))
        except StartupError:
            close_audit_output(handlers)
            raise
    return handlers


def use_audit_output(handlers: list[logging.Handler]) -> None:
    """Makes audit lines go to these handlers from now on, and closes the previous ones.

    This reopens the file, as rotation by another program requires. A line that is logged meanwhile goes to one or the
    other: the list is replaced in one step.
    """
    former, _AUDIT_LOGGER.handlers = _AUDIT_LOGGER.handlers, handlers
    _AUDIT_LOGGER.propagate = not handlers
    close_audit_output(former)


def close_audit_output(handlers: list[logging.Handler]) -> None:
    """Closes the handlers of `open_audit_output`."""
    for one in handlers:
        one.close()


def _opened_file(path: Path, max_bytes: int, kept: int, log: LogSettings) -> logging.Handler:
    try:
        handler = _File(path, maxBytes=max_bytes, backupCount=kept, encoding="utf-8")
    except OSError as error:
        raise StartupError(
            f"the audit log {path} cannot be opened: {error.strerror}",
            remedy="let the server's user write there, or change server.audit_file",
        ) from error
    handler.setFormatter(formatter_of(log))
    return handler


def _opened_syslog(where: str) -> logging.Handler:
    host, colon, port = where.rpartition(":")
    address: tuple[str, int] | str = (host.strip("[]"), int(port)) if colon and not where.startswith("/") else where
    try:
        return _Syslog(address)
    except (OSError, UnicodeError) as error:  # UnicodeError: an invalid host name
        raise StartupError(
            f"syslog at {where} cannot be reached: {error}", remedy="start it, or change server.audit_syslog"
        ) from error
