"""Lines about what fails again and again: one each ten seconds, with how many were left out."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from hms_cache.clock import elapsed_s

INTERVAL_S = 10.0
"""A database or a directory that is away for an hour is some hundred lines, however many clients ask meanwhile."""

MAX_TRACED = 100
"""Kinds of errors whose traces a log has; there are few of them."""

LONGEST_TOLD = 500
"""Of an error's text on a line: it may be what a client sent."""


class LimitedLog:
    """Writes to a logger. Thread-safe. Lines of one text, as it is before its arguments are filled in, are of one kind;
    texts are the program's own, and few."""

    def __init__(self, logger: logging.Logger, now_s: Callable[[], float] = elapsed_s) -> None:
        self._logger = logger
        self._now_s = now_s
        self._lock = threading.Lock()
        self._of_kind: dict[str, tuple[float, int]] = {}
        """When the next line may be written, and how many were left out since the last one."""
        self._traced: set[tuple[str, type[BaseException]]] = set()

    def warning(self, text: str, *arguments: object, exc_info: BaseException | None = None) -> None:
        """As of a logger. A line with a trace is never left out: whoever gives one knows that it is the first."""
        self._write(logging.WARNING, text, arguments, exc_info)

    def error(self, text: str, *arguments: object, exc_info: BaseException | None = None) -> None:
        """As `warning`."""
        self._write(logging.ERROR, text, arguments, exc_info)

    def fault(self, text: str, error: BaseException, *arguments: object) -> None:
        """As `error`, with what failed at the end; the first of each type of error has its trace."""
        kind = text, type(error)
        with self._lock:
            is_first = kind not in self._traced and len(self._traced) < MAX_TRACED
            if is_first:
                self._traced.add(kind)
        told = f"{type(error).__name__}: {error}"[:LONGEST_TOLD]
        self._write(logging.ERROR, f"{text}: %s", (*arguments, told), error if is_first else None)

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
