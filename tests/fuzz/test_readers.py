"""Readers of foreign data: any input results in a value or a declared exception, in bounded memory and work.

``HMS_CACHE_FUZZ_S``: seconds of the long run per target, 200 by default (an hour for all).
"""

from __future__ import annotations

import os
import sys
import time
import tracemalloc
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS, Target, seeds_of

LONG_RUN_S = float(os.environ.get("HMS_CACHE_FUZZ_S", "200"))
HANGS_AFTER_S = 20.0
"""CPU time of one input; the longest take some two seconds under tracemalloc."""
EXAMPLES = 60
SHORT_RUN_S = 1.0
FUZZED_FOR_A_TIME = ("wire", "filter", "kryo", "tjson", "write_ids", "txn_ids", "database_url", "names")
"""Readers of what any client may send, and of URLs: the short soak has a time for these, and some inputs for others."""
MAX_BYTES = 20_000
NAMES = sorted(TARGETS)


def inputs(target: Target, seeds: tuple[bytes, ...]) -> st.SearchStrategy[bytes]:
    """Pieces in any order, some of them many times; seeds with changed, cut, doubled and inserted bytes."""
    pieces = st.one_of(st.sampled_from(target.pieces), st.binary(max_size=4))
    run = st.tuples(pieces, st.sampled_from([1, 1, 1, 1, 2, 40, 400])).map(lambda pair: pair[0] * pair[1])
    made = st.lists(run, max_size=25).map(b"".join)
    if not seeds:
        return made.map(lambda data: data[:MAX_BYTES])
    edit = st.tuples(st.integers(0, 1 << 16), st.integers(0, 24), run)
    mutated = st.tuples(st.sampled_from(seeds), st.lists(edit, max_size=6)).map(lambda pair: _edited(*pair))
    return st.one_of(made, mutated).map(lambda data: data[:MAX_BYTES])


def _edited(data: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for place, removed, put in edits:
        at = place % (len(data) + 1)
        data = data[:at] + put + data[at + removed :]
    return data


def check(target: Target, data: bytes) -> None:
    """Reads one input, and checks its memory and that it ends."""
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    started_s = time.thread_time()
    with suppress(*target.declared):
        target.read(data)
    spent_s = time.thread_time() - started_s
    _, peak = tracemalloc.get_traced_memory()
    limit = target.fixed_bytes + target.bytes_per_byte * len(data)
    assert peak - before <= limit, f"{len(data)} bytes took {peak - before} bytes of memory: {data[:200]!r}"
    assert spent_s < HANGS_AFTER_S, f"{len(data)} bytes took {spent_s} s: {data[:200]!r}"


def fuzz(name: str, examples: int, number: int) -> None:
    """Tries inputs of one target; `number` makes those of a round different from the previous ones."""
    target = TARGETS[name]
    with suppress(*target.declared):
        target.read(b"a")  # builds parsers, which remain

    @settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck), derandomize=False
    )
    @given(data=inputs(target, seeds_of(name)))
    def run(data: bytes) -> None:
        check(target, data)

    tracemalloc.start()
    try:
        seed(number)(run)()
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", NAMES)
def test_inputs_of_the_corpus(name: str) -> None:
    target = TARGETS[name]
    tracemalloc.start()
    try:
        for data in seeds_of(name):
            check(target, data)
    finally:
        tracemalloc.stop()


def fuzz_for(name: str, duration_s: float, number: int) -> None:
    """Rounds of other inputs each, numbered from `number`, until the time is over."""
    end_s = time.monotonic() + duration_s
    while time.monotonic() < end_s:
        fuzz(name, 150, number)
        number += 1


def first_number() -> int:
    """Of the rounds: always the same in continuous integration."""
    return 1 if os.environ.get("HMS_CACHE_FIXED_EXAMPLES") == "1" else time.time_ns()


@pytest.mark.soak
@pytest.mark.parametrize("name", [name for name in NAMES if name not in FUZZED_FOR_A_TIME])
def test_some_inputs(name: str) -> None:
    fuzz(name, EXAMPLES, first_number())


@pytest.mark.soak
@pytest.mark.parametrize("name", FUZZED_FOR_A_TIME)
def test_inputs_for_seconds(name: str) -> None:
    fuzz_for(name, SHORT_RUN_S, first_number())


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(LONG_RUN_S * 2 + 600)
@pytest.mark.parametrize("name", NAMES)
def test_inputs_for_minutes(name: str) -> None:
    fuzz_for(name, LONG_RUN_S, time.time_ns())


@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
def test_twice_the_input_takes_twice_the_work(name: str) -> None:
    target = TARGETS[name]
    with suppress(*target.declared):
        target.read(b"a")
    repeated = [*target.pieces, *(first + second for first in target.pieces[:3] for second in target.pieces[:3])]
    for piece in repeated:
        once, twice = (_lines_run(target, (piece * (size // len(piece)))[:size]) for size in (500, 1_000))
        assert twice <= 2.5 * once + 5_000, f"{piece!r}: {once} lines for 500 bytes, {twice} for 1,000"


def _lines_run(target: Target, data: bytes) -> int:
    count = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(*target.declared):
            target.read(data)
    finally:
        sys.settrace(before)
    return count
