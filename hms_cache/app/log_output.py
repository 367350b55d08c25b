"""What the process writes to standard error: lines for people, or a JSON object per line. Secrets are masked."""

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

#: The root of this program's loggers; libraries log beside it, from warnings up.
PROGRAM_LOGGER = "hms_cache"


MAX_TRACE_CHARACTERS = 32 * 1024
"""Of a trace that is logged: the text of its error may repeat what a client has sent, megabytes of it."""


class _TraceFormatter(logging.Formatter):
    """Leaves out the middle of a trace that is too long: where it begins and what went wrong stays."""

    def formatException(self, ei: Any) -> str:
        trace = redacted(super().formatException(ei))  # before it is cut: half a secret would not be known
        if len(trace) <= MAX_TRACE_CHARACTERS:
            return trace
        half = MAX_TRACE_CHARACTERS // 2
        left_out = f"… ({len(trace) - 2 * half} characters left out) …"
        return f"{trace[:half]}{left_out}{trace[-half:]}"


class TextFormatter(_TraceFormatter):
    """``2026-01-02 03:04:05,678 INFO hms_cache.app: message``, UTC like the database's clock.

    While a call is answered, ``[CONNECTION.CALL]`` stands before the message.
    """

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(call)s%(message)s")

    def format(self, record: logging.LogRecord) -> str:
        # Formatted by the thread that logs: a handler does not pass records on.
        identifier = call_context.identifier
        record.call = f"[{identifier}] " if identifier else ""
        return redacted(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line without its trace: names that clients chose are in many of them, and shall not begin another."""
        record.message = single_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:
        """The trace, indented: no line of it, nor of the text of its error, passes for a line of the log."""
        return "\n".join(f"    {single_line(line)}" for line in super().formatException(ei).splitlines())


class JsonFormatter(_TraceFormatter):
    """``{"time": …, "level": …, "logger": …, "message": …}``, with ``"call"`` and ``"trace"`` where there is one."""

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


#: Lines that event loops have logged and that are not written yet: seconds of them at the rate at which they come.
_WAITING_LINES = 10_000


class _LogHandler(logging.StreamHandler[TextIO]):
    """Standard error. What an event loop logs is written by a thread: whoever reads the log may be slow, and everything
    that the loop serves would wait for it. Lines above the limit are lost and counted in the next one that is not.
    """

    def __init__(self) -> None:
        super().__init__()
        self._waiting: queue.Queue[str | None] = queue.Queue(_WAITING_LINES)
        self._writer: threading.Thread | None = None
        self._lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        if asyncio._get_running_loop() is None:
            super().emit(record)
            return
        # Logging calls this under the handler's lock: one thread at a time.
        if self._writer is None:
            writer = threading.Thread(target=self._write, name="hms-log", daemon=True)
            try:
                writer.start()
            except RuntimeError:  # the system has no more threads now
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
        """Writes what waits; two seconds at most."""
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
    """Makes the lines of the chosen form."""
    return JsonFormatter() if settings.format == "json" else TextFormatter()


def set_up_logging(settings: LogSettings) -> None:
    """Send all log records to standard error in the chosen form. May be called again, after a reload."""
    handler = _LogHandler()
    handler.setFormatter(formatter_of(settings))
    root = logging.getLogger()
    _set_level(root, logging.WARNING)
    # In one step: a line that is logged meanwhile, by the audit log perhaps, is written by the one or the other.
    former, root.handlers = root.handlers, [handler]
    for one in former:
        one.close()
    set_log_level(settings)


def set_log_level(settings: LogSettings) -> None:
    """Let through what ``log.level`` says; audit lines always, since ``server.audit`` decides about them."""
    _set_level(logging.getLogger(PROGRAM_LOGGER), logging.getLevelNamesMapping()[settings.level.upper()])
    _set_level(logging.getLogger(f"{PROGRAM_LOGGER}.audit"), logging.INFO)


def _set_level(logger: logging.Logger, level: int) -> None:
    """Only where it is another one: all loggers forget what they know then, which are pages that workers share."""
    if logger.level != level:
        logger.setLevel(level)
