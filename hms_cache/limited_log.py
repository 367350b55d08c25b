"""Log lines about repeated failures: at most one every ten seconds, with the number of lines left out."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from hms_cache.clock import elapsed_s

INTERVAL_S = 10.0
"""Interval between lines of one kind: an outage of an hour gives a few hundred lines, however many clients are
affected."""

MAX_TRACED = 100
"""Maximum number of kinds of errors that are logged with a traceback."""

MAX_ERROR_CHARACTERS = 500
"""Maximum length of an error's text in a line: the text may come from a client."""


class LimitedLog:
    """Writes to a logger. Thread-safe.

    Lines with the same text, before its arguments are filled in, are of one kind. The texts are constants of the
    program, so there are few kinds.
    """

    def __init__(self, logger: logging.Logger, now_s: Callable[[], float] = elapsed_s) -> None:
        self._logger = logger
        self._now_s = now_s
        self._lock = threading.Lock()
        self._of_kind: dict[str, tuple[float, int]] = {}
        """Per kind: when the next line may be written, and how many were left out since the last one."""
        self._traced: set[tuple[str, type[BaseException]]] = set()

    def warning(self, text: str, *arguments: object, exc_info: BaseException | None = None) -> None:
        """Logs a warning. A line with a traceback is never left out: a caller passes one only for the first error."""
        self._write(logging.WARNING, text, arguments, exc_info)

    def error(self, text: str, *arguments: object, exc_info: BaseException | None = None) -> None:
        """Logs an error, otherwise like `warning`."""
        self._write(logging.ERROR, text, arguments, exc_info)

    def fault(self, text: str, error: BaseException, *arguments: object) -> None:
        """Logs an error with the exception at the end of the line. The first exception of each type has a traceback."""
        kind = text, type(error)
        with self._lock:
            is_first = kind not in self._traced and len(self._traced) < MAX_TRACED
            if is_first:
                self._traced.add(kind)
        shown = f"{type(error).__name__}: {error}"[:MAX_ERROR_CHARACTERS]
        self._write(logging.ERROR, f"{text}: %s", (*arguments, shown), error if is_first else None)

    def _write(self, level: int, text: str, arguments: tuple[object, ...], trace: BaseException | None) -> None:
        now_s = self._now_s()
        with self._lock:
            next_s, left_out = self._of_kind.get(text, (now_s, 0))
            if now_s < next_s and trace is None:
                self._of_kind[text] = next_s, left_out + 1
                return
            self._of_kind[text] = now_s + INTERVAL_S, 0
        more = f" ({left_out} more of such since the last line)" if left_out else ""
        template = f"{text}%s"
        self._logger.log(level, template, *arguments, more, exc_info=trace)
