"""Log output on standard error: text lines, or one JSON object per line. Secrets are masked."""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import queue
import threading
import time
from contextlib import suppress
from typing import Any, TextIO

from hms_cache.call_context import call_context
from hms_cache.config import LogSettings
from hms_cache.config.secrets import redacted
from hms_cache.server.line_texts import single_line

#: Parent of this program's loggers; libraries log beside it, from level warning.
PROGRAM_LOGGER = "hms_cache"


MAX_TRACE_CHARACTERS = 32 * 1024
"""Maximum length of a logged trace: the text of its error may repeat megabytes of a client's request."""


class _TraceFormatter(logging.Formatter):
    """Removes the middle of a trace that is too long, and keeps its beginning and its error."""

    def formatException(self, ei: Any) -> str:
        trace = redacted(super().formatException(ei))  # before truncation: a partial secret would not be recognized
        if len(trace) <= MAX_TRACE_CHARACTERS:
            return trace
        half = MAX_TRACE_CHARACTERS // 2
        left_out = f"… ({len(trace) - 2 * half} characters left out) …"
        return f"{trace[:half]}{left_out}{trace[-half:]}"


class TextFormatter(_TraceFormatter):
    """``2026-01-02 03:04:05,678 INFO hms_cache.app: message``, in UTC like the database's clock.

    During a call, ``[CONNECTION.CALL]`` precedes the message.
    """

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(call)s%(message)s")

    def format(self, record: logging.LogRecord) -> str:
        # Formatted by the thread that logs: the handler does not queue records.
        identifier = call_context.identifier
        record.call = f"[{identifier}] " if identifier else ""
        return redacted(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line without its trace. Line breaks are escaped: many messages contain names chosen by clients."""
        record.message = single_line(redacted(record.message))  # escaped, a secret would not be recognized
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:
        """The trace, indented, so that none of its lines, nor of the error's text, can be taken for a log line."""
        return "\n".join(f"    {single_line(line)}" for line in super().formatException(ei).splitlines())


class JsonFormatter(_TraceFormatter):
    """``{"time": …, "level": …, "logger": …, "message": …}``, with ``"call"`` and ``"trace"`` if there are any."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, str | float] = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redacted(record.getMessage()),
        }
        if call_context.call:
            line["call"] = call_context.identifier
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return redacted(json.dumps(line, ensure_ascii=False))


#: Maximum number of unwritten lines logged by event loops: several seconds at the maximum rate.
_WAITING_LINES = 10_000


class _LogHandler(logging.StreamHandler[TextIO]):
    """Standard error. Lines of an event loop are written by a separate thread: a slow reader of the log would block
    everything that the loop serves. Lines above the limit are dropped, and counted in the next line."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: queue.Queue[str | None] = queue.Queue(_WAITING_LINES)
        self._writer: threading.Thread | None = None
        self._lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        if asyncio._get_running_loop() is None:
            super().emit(record)
            return
        # Logging calls this with the handler's lock held: one thread at a time.
        if self._writer is None:
            writer = threading.Thread(target=self._write, name="hms-log", daemon=True)
            try:
                writer.start()
            except RuntimeError:  # the system has no more threads at the moment
                super().emit(record)
                return
            self._writer = writer
            atexit.register(self.close)
        line = self.format(record)
        if self._lost:
            line = f"{line}\n{self._lost} lines before this one were lost"
        try:
            self._waiting.put_nowait(line)
            self._lost = 0
        except queue.Full:
            self._lost += 1

    def close(self) -> None:
        """Writes waiting lines, for at most two seconds."""
        writer, self._writer = self._writer, None
        if writer is not None and writer is not threading.current_thread():
            with suppress(queue.Full):
                self._waiting.put(None, timeout=2.0)
                writer.join(2.0)
        super().close()

    def _write(self) -> None:
        while (line := self._waiting.get()) is not None:
            with suppress(OSError, ValueError):
                self.stream.write(line + self.terminator)
                self.stream.flush()


def formatter_of(settings: LogSettings) -> logging.Formatter:
    """The formatter for the configured format."""
    return JsonFormatter() if settings.format == "json" else TextFormatter()


def set_up_logging(settings: LogSettings) -> None:
    """Sends all log records to standard error in the configured format. May be called again after a reload."""
    handler = _LogHandler()
    handler.setFormatter(formatter_of(settings))
    root = logging.getLogger()
    _set_level(root, logging.WARNING)
    # Replaced in one step: a line that is logged meanwhile, for example an audit line, is written by one or the other.
    former, root.handlers = root.handlers, [handler]
    for one in former:
        one.close()
    set_log_level(settings)


def set_log_level(settings: LogSettings) -> None:
    """Applies ``log.level``; audit lines are always logged, since ``server.audit`` controls them."""
    _set_level(logging.getLogger(PROGRAM_LOGGER), logging.getLevelNamesMapping()[settings.level.upper()])
    _set_level(logging.getLogger(f"{PROGRAM_LOGGER}.audit"), logging.INFO)


def _set_level(logger: logging.Logger, level: int) -> None:
    """Only if it differs: a change clears the caches of all loggers, which are in memory pages that workers share."""
    if logger.level != level:
        logger.setLevel(level)
