"""Tables with very many partitions remain usable at a low cost."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.partitions.selection import select_partitions
from hms_cache.store.contract.partitions import ByFilter, ByNames, ByPartialValues, PartitionSelection
from hms_cache.wire import encode_struct
from tests.cache.blocks.partitions import KEYS, ordinary, page, partition

PAGE = 5_000


def large_set(count: int) -> PartitionSet:
    return PartitionSet.from_pages(KEYS, (page(first, PAGE) for first in range(0, count, PAGE)), complete=True)


def use(held: PartitionSet, count: int, cpu_s: Callable[[str, float], None]) -> None:
    """Selects and changes a few of many partitions. Returns the CPU time of each step."""
    day = [*ordinary(24 * 100)][-24:]
    names = [held.name_of(one.values) for one in day]
    questions: dict[str, PartitionSelection] = {
        "filter": ByFilter(f'dt = "{day[0].values[0]}" and hr >= 14'),
        "by partial values": ByPartialValues((day[0].values[0], "")),
        "by names": ByNames(tuple(names)),
    }
    for label, selection in questions.items():
        started = time.process_time()
        answer = b"".join(select_partitions(held, selection, -1).partitions.encoded_structs().binary_pieces())
        cpu_s(label, time.process_time() - started)
        chosen = sorted((one for one in day if label != "filter" or int(one.values[1]) >= 14), key=name_key)
        assert answer.endswith(b"".join(map(encode_struct, chosen)))
        assert int.from_bytes(answer[1:5], "big") == len(chosen)
    started = time.process_time()
    assert len(b"".join(held.all().encoded_names().binary_pieces())) > 20 * count
    cpu_s("names", time.process_time() - started)
    started = time.process_time()
    changed = partition(day[3].values, number=77)
    held.mark_missing([tuple(day[3].values), tuple(day[4].values)])
    held.fill([*held.missing], [changed])
    assert len(held) == count - 1
    found = select_partitions(held, ByPartialValues((day[0].values[0], "")), -1).partitions
    assert encode_struct(changed) in b"".join(found.encoded_structs().binary_pieces())
    assert len(found) == 23
    cpu_s("change and read", time.process_time() - started)
    assert held.find(day[4].values) is None
    rebuild = held.begin_rebuild()
    rebuild.run()
    assert held.finish_rebuild(rebuild)
    assert len(held) == count - 1
    assert held.find(day[3].values) == changed


def name_key(one: object) -> str:
    return "/".join(one.values)  # type: ignore[attr-defined]


def test_a_table_of_100_000_partitions() -> None:
    use(large_set(100_000), 100_000, lambda label, seconds: None)


@pytest.mark.soak
@pytest.mark.long
def test_a_table_of_a_million_partitions() -> None:
    """The answers are correct. `python -m benchmarks compare` measures the time."""
    spent: dict[str, float] = {}
    use(large_set(1_000_000), 1_000_000, spent.__setitem__)
    print({label: f"{seconds * 1000:.2f} ms" for label, seconds in spent.items()})


GROWTH = """
import gc, json, sys, tracemalloc
from tests.cache.blocks.partitions import KEYS, page
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.warming.process_memory import give_back_freed_memory

count, is_traced = int(sys.argv[1]), sys.argv[2] == "traced"

def held_bytes():
    gc.collect()
    if is_traced:
        return tracemalloc.get_traced_memory()[0]
    give_back_freed_memory()  # as the prewarm does at its end: or what the start needed stands for some of the growth
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def made(count):
    sets = []
    for first in range(0, count, 20_000):
        pages = (page(start, 5_000) for start in range(first, first + 20_000, 5_000))
        sets.append(PartitionSet.from_pages(KEYS, pages, complete=True))
    return sets

kept = made(40_000)
if is_traced:
    tracemalloc.start(1)
before = held_bytes()
held = made(count)
print(json.dumps([held_bytes() - before, sum(one.memory_bytes() for one in held)]))
"""


def growth(count: int, how: str) -> tuple[int, int]:
    """Memory of a process that holds this many more partitions, and the amount that the cache accounts for them."""
    ran = subprocess.run([sys.executable, "-c", GROWTH, str(count), how], capture_output=True, text=True, check=True)
    grown, charged = json.loads(ran.stdout)
    print(f"{grown / count:.0f} bytes {how} per partition, charged with {charged / count:.0f}")
    return grown, charged


@pytest.mark.soak
@pytest.mark.parametrize("count", [40_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_partitions_are_charged_with_what_is_allocated(count: int) -> None:
    grown, charged = growth(count, "traced")
    assert abs(grown - charged) < 0.01 * charged


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("count", [100_000, 1_000_000])
def test_the_process_grows_by_what_partitions_are_charged_with(count: int) -> None:
    """Measured in addition to partitions that are already cached: the first ones need some 10 MB, however many they
    are. A load spreads short-lived objects over the interpreter's arenas of 1 MiB. One object that remains keeps its
    arena, whose free pools the next load uses."""
    grown, charged = growth(count, "resident")
    assert grown / count < 250
    assert abs(grown - charged) < 0.05 * charged + 6 * 2**20
