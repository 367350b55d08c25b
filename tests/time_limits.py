"""Limits the time of tests: a test fails at its limit, and its process ends if the test still does not end."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

GRACE_S = 120.0
"""For what a test at its limit still does: fixtures stop servers, which have 90 s."""

LONGEST_S = 1200.0
"""Limit of a test that is not ``long``: all of them together have less than an hour and a half."""

_errors = pytest.StashKey[int]()


def note_errors(config: pytest.Config) -> None:
    """Duplicates standard error as it is now, before it is captured."""
    config.stash[_errors] = os.dup(2)


def limit_of(item: pytest.Item) -> float:
    """Returns the limit in seconds: from its mark, the command line, or the settings, in this order, like
    pytest-timeout."""
    mark = item.get_closest_marker("timeout")
    given = mark.args[0] if mark is not None else item.config.getoption("timeout")
    return float(item.config.getini("timeout") if given is None else given)


def refuse_too_long(items: list[pytest.Item]) -> None:
    """Raises `pytest.UsageError` if a mark sets a longer limit than an ordinary test may have."""
    for item in items:
        mark, is_long = item.get_closest_marker("timeout"), item.get_closest_marker("long") is not None
        if mark is not None and mark.args[0] > LONGEST_S and not (is_long and item.get_closest_marker("soak")):
            raise pytest.UsageError(f"{item.nodeid} may take {mark.args[0]} s: at most {LONGEST_S:g}, or mark it long")


@contextmanager
def ended_after_limit(item: pytest.Item, grace_s: float = GRACE_S) -> Iterator[None]:
    """End this process, with the stacks of its threads on standard error, if the test runs so long after its limit.

    pytest-timeout raises an exception in the main thread, once. Who catches it to wait for a thread that never ends, as
    the end of a `with ThreadPoolExecutor()` does, waited for ever. Not without a limit, nor in a debugger.
    """
    if limit_of(item) <= 0 or item.config.getoption("usepdb"):
        yield
        return
    faulthandler.dump_traceback_later(limit_of(item) + grace_s, exit=True, file=item.config.stash[_errors])
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
