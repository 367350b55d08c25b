"""What a server's process asks of the interpreter."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator

import pytest

from hms_cache.app.process import tune_interpreter


@pytest.fixture
def interpreter() -> Iterator[None]:
    """As it was before, afterwards."""
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval)


class _Node:
    other: _Node | None = None


@pytest.mark.usefixtures("interpreter")
def test_a_large_answer_starts_no_search_for_cycles_and_cycles_are_found_all_the_same() -> None:
    tune_interpreter()
    assert gc.isenabled() and gc.get_freeze_count() > 0
    before = [one["collections"] for one in gc.get_stats()]
    answer = [[number] for number in range(10_000)]
    assert sum(one["collections"] for one in gc.get_stats()) - sum(before) <= 1
    one, other = _Node(), _Node()
    one.other, other.other = other, one
    found = weakref.ref(one)
    del one, other
    answer += [[number] for number in range(3 * gc.get_threshold()[0])]
    assert found() is None
