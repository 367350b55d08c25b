"""What the process writes to standard error: lines for people, or a JSON object per line. Secrets are masked."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from hms_cache.config import LogSettings
from hms_cache.config.secrets import redacted
from hms_cache.metrics.call_trace import call_trace
from hms_cache.server.line_texts import single_line

#: The root of this program's loggers; libraries log beside it, from warnings up.
PROGRAM_LOGGER = "hms_cache"


class TextFormatter(logging.Formatter):
    """``2026-01-02 03:04:05,678 INFO hms_cache.app: message``, UTC like the database's clock.

    While a call is answered, ``[CONNECTION.CALL]`` stands before the message.
    """

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(call)s%(message)s")

    def format(self, record: logging.LogRecord) -> str:
        # Formatted by the thread that logs: a handler does not pass records on.
        identifier = call_trace.identifier
        record.call = f"[{identifier}] " if identifier else ""
        return redacted(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line without its trace: names that clients chose are in many of them, and shall not begin another."""
        record.message = single_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:
        """The trace, indented: no line of it, nor of the text of its error, passes for a line of the log."""
        return "\n".join(f"    {single_line(line)}" for line in super().formatException(ei).splitlines())


class JsonFormatter(logging.Formatter):
    """``{"time": …, "level": …, "logger": …, "message": …}``, with ``"call"`` and ``"trace"`` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, str | float] = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if call_trace.call:
            line["call"] = call_trace.identifier
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return redacted(json.dumps(line, ensure_ascii=False))


def set_up_logging(settings: LogSettings) -> None:
    """Send all log records to standard error in the chosen form. May be called again, after a reload."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if settings.format == "json" else TextFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    set_log_level(settings)


def set_log_level(settings: LogSettings) -> None:
    """Let through what ``log.level`` says; audit lines always, since ``server.audit`` decides about them."""
    logging.getLogger(PROGRAM_LOGGER).setLevel(settings.level.upper())
    logging.getLogger(f"{PROGRAM_LOGGER}.audit").setLevel(logging.INFO)
