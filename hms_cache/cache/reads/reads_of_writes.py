"""Reads that a write rests on: whatever `max_staleness` allows others, they show what was committed when it arrived.

A partition that is appended takes its columns from the table, a drop by expressions takes its names from the
partitions: what memory may answer to a reader for a while would become part of the catalog for good.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Thread(threading.local):
    writes = False


_thread = _Thread()


def for_write(function: Callable[P, T]) -> Callable[P, T]:
    """The function, whose reads on the thread that calls it are answered with a proof (see the module)."""

    @functools.wraps(function)
    def proving(*arguments: P.args, **options: P.kwargs) -> T:
        before, _thread.writes = _thread.writes, True
        try:
            return function(*arguments, **options)
        finally:
            _thread.writes = before

    return proving


def serves_a_write() -> bool:
    """Whether the reads of this thread are a write's."""
    return _thread.writes
