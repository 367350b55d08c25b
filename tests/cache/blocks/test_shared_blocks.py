"""Blocks in memory that processes share return the same answers as before, and do not use the memory of other
servers."""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import pickle
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hms_cache.cache.memory_files import ALIGNMENT_BYTES, RETRY_PAUSE_S, MemoryFiles, is_available, places_of
from hms_cache.cache.partitions import shared_blocks
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.partitions.shared_blocks import is_shared
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition
from tests.cache.blocks.partitions import KEYS, ordinary, partition, partitions
from tests.cache.blocks.sharing import share
from tests.cache.blocks.test_partition_set import by_name, check
from tests.manual_clock import ManualClock

pytestmark = pytest.mark.skipif(not is_available(), reason="the system has no sealed files in memory")

SOME = memoryview(b"some bytes"), memoryview(b""), memoryview(bytes(100_000))


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_blocks, "SMALLEST_BYTES", 0)


def memory_files_open() -> int:
    """Files in memory that this process has open, including those that mappings hold open."""
    gc.collect()
    found = 0
    for one in Path("/proc/self/fd").iterdir():
        try:
            found += os.readlink(one).startswith("/memfd:")
        except FileNotFoundError:
            continue
    return found


@pytest.mark.usefixtures("any_size")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(held=st.lists(partitions(), max_size=12), others=st.lists(partitions(), max_size=3))
def test_a_shared_block_answers_as_it_did(held: list[Partition], others: list[Partition], tmp_path: Path) -> None:
    model = by_name(held)
    whole = PartitionSet(KEYS, held, complete=True)
    alone = whole.memory_bytes()
    assert share(whole, MemoryFiles(tmp_path, 100)) == 1
    assert is_shared(whole.segments[0].block) == bool(held)
    assert whole.memory_bytes() == alone
    check(whole, model)
    copied = PartitionSet.from_parts(whole.parts())
    check(copied, model)
    # A new block is built from a shared one and from changes.
    whole.put(others)
    rebuild = whole.begin_rebuild()
    rebuild.run()
    assert whole.finish_rebuild(rebuild)
    check(whole, {**model, **by_name(others)})


def test_equal_blocks_lie_in_one_file(tmp_path: Path) -> None:
    one, other = (MemoryFiles(tmp_path, 100) for _ in range(2))
    sets = [PartitionSet(KEYS, ordinary(2_000), complete=True) for _ in range(2)]
    before = memory_files_open()
    assert share(sets[0], one) == share(sets[1], other) == 1
    assert (one.created, one.reused, other.created, other.reused) == (1, 0, 0, 1)
    assert len(list(tmp_path.iterdir())) == 1
    assert share(sets[0], one) == 0, "it lies there already"
    for held in sets:
        check(held, by_name([*ordinary(2_000)]))
    # The process that created it may release it first.
    del held, sets[0]
    gc.collect()
    check(sets[0], by_name([*ordinary(2_000)]))
    sets.clear()
    gc.collect()
    assert memory_files_open() == before


def test_small_blocks_stay_where_they_are(tmp_path: Path) -> None:
    assert share(PartitionSet(KEYS, ordinary(50), complete=True), MemoryFiles(tmp_path, 100)) == 0
    assert list(tmp_path.iterdir()) == []


def test_different_blocks_lie_in_different_files(tmp_path: Path) -> None:
    files = MemoryFiles(tmp_path, 100)
    models = []
    for number in range(2):
        some = [*ordinary(2_000)]
        some[1_999] = partition(some[1_999].values, number + 5)
        models.append((PartitionSet(KEYS, some, complete=True), some))
    for held, _ in models:
        share(held, files)
    assert files.created == 2
    for held, some in models:
        check(held, by_name(some))


def test_no_more_files_are_held_than_may_be(tmp_path: Path) -> None:
    files = MemoryFiles(tmp_path, 2)
    held = [files.hold([memoryview(bytes([number]) * 10)]) for number in range(3)]
    assert [one is None for one in held] == [False, False, True]
    assert (files.created, files.failed, files.is_paused, files.bytes) == (2, 1, True, 2 * ALIGNMENT_BYTES)
    held.clear()
    gc.collect()
    assert files.hold([memoryview(b"other")]) is not None


def test_a_system_that_gives_no_file_is_not_asked_for_each_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    files = MemoryFiles(tmp_path, 100, clock.monotonic_s)
    held = PartitionSet(KEYS, ordinary(2_000), complete=True)
    requested = []

    def refuse(name: str, flags: int) -> int:
        requested.append(name)
        raise OSError(errno.ENOSYS, "not in this sandbox")

    with monkeypatch.context() as patched:
        patched.setattr(os, "memfd_create", refuse)
        assert share(held, files) == share(held, files) == 0
        assert len(requested) == 1
        check(held, by_name([*ordinary(2_000)]))
    clock.advance(RETRY_PAUSE_S)
    assert share(held, files) == 1


def test_memory_that_nobody_looks_into_is_given_back_with_its_name(tmp_path: Path) -> None:
    files = MemoryFiles(tmp_path, 100)
    before = memory_files_open()
    mapped = files.hold(SOME)
    assert mapped is not None and memory_files_open() > before
    first = {one.name for one in tmp_path.iterdir()}
    del mapped
    gc.collect()
    assert memory_files_open() == before
    kept = files.hold([memoryview(b"other")])
    assert kept is not None
    assert not first & {one.name for one in tmp_path.iterdir()}


def test_nobody_can_change_what_is_shared(tmp_path: Path) -> None:
    files = MemoryFiles(tmp_path, 100)
    mapped = files.hold(SOME)
    (link,) = tmp_path.iterdir()
    assert mapped is not None
    file = os.open(link, os.O_RDWR)
    try:
        for change in (lambda: os.write(file, b"x"), lambda: os.ftruncate(file, 5), lambda: os.ftruncate(file, 2**20)):
            with pytest.raises(PermissionError):
                change()
    finally:
        os.close(file)
    mapped[0:4] = b"mine"
    other = MemoryFiles(tmp_path, 100).hold(SOME)
    assert other is not None and other[:10] == b"some bytes"


def _plain_file(path: Path) -> None:
    places, size = places_of(SOME)
    data = bytearray(size)
    for place, run in zip(places, SOME, strict=True):
        data[place : place + run.nbytes] = run
    path.write_bytes(data)


def _unsealed(path: Path) -> int:
    file = os.memfd_create("unsealed", os.MFD_ALLOW_SEALING)
    os.ftruncate(file, places_of(SOME)[1])
    os.symlink(f"/proc/{os.getpid()}/fd/{file}", path)
    return file


def _other_bytes(path: Path) -> int:
    file = _unsealed(path)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, 0xF)
    return file


@pytest.mark.parametrize("kind", ["file", "pipe", "directory", "dangling", "loop", "unsealed", "other bytes", "socket"])
def test_a_name_that_leads_elsewhere_is_not_followed(kind: str, tmp_path: Path) -> None:
    files = MemoryFiles(tmp_path, 100)
    mapped = files.hold(SOME)
    assert mapped is not None
    (link,) = tmp_path.iterdir()
    link.unlink()
    file = None
    match kind:
        case "file":
            _plain_file(link)
        case "pipe":
            os.mkfifo(link)
        case "directory":
            link.mkdir()
        case "dangling":
            link.symlink_to("/proc/self/fd/99999")
        case "loop":
            link.symlink_to(link.name)
        case "unsealed":
            file = _unsealed(link)
        case "other bytes":
            file = _other_bytes(link)
        case _:
            link.symlink_to(f"/proc/{os.getpid()}/fd/{os.eventfd(0)}")
    again = MemoryFiles(tmp_path, 100)
    held = again.hold(SOME)
    assert held is not None and held[:10] == b"some bytes"
    assert (again.created, again.reused) == (1, 0)
    if file is not None:
        os.close(file)
    if kind != "directory":  # the next process finds the new one
        last = MemoryFiles(tmp_path, 100)
        assert last.hold(SOME) is not None and (last.created, last.reused) == (0, 1)


def test_a_name_that_leads_to_the_database_takes_no_locks_away(tmp_path: Path) -> None:
    """SQLite's locks belong to the process: closing the file once, however it was opened, releases all of them, and two
    processes would write at once. The number of a file that its owner has closed may belong to another file."""
    links = tmp_path / "links"
    links.mkdir()
    assert MemoryFiles(links, 100).hold(SOME) is not None
    gc.collect()
    (link,) = links.iterdir()
    database = tmp_path / "database"
    database.write_bytes(bytes(100))
    with database.open("r+b") as opened:
        link.unlink()
        link.symlink_to(f"/proc/{os.getpid()}/fd/{opened.fileno()}")
        fcntl.lockf(opened, fcntl.LOCK_EX)
        files = MemoryFiles(links, 100)
        assert files.hold(SOME) is not None and (files.created, files.reused) == (1, 0)
        another = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        ran = subprocess.run([sys.executable, "-c", another, str(database)], capture_output=True, timeout=60)
        assert b"BlockingIOError" in ran.stderr


def test_without_a_directory_it_is_this_processes_alone(tmp_path: Path) -> None:
    files = MemoryFiles(tmp_path / "gone", 100)
    held = files.hold(SOME)
    assert held is not None and held[:10] == b"some bytes"


@pytest.fixture
def another(tmp_path: Path) -> Iterator[int]:
    """A process that holds a set in shared memory, until it is killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            held = PartitionSet(KEYS, ordinary(2_000), complete=True)
            share(held, MemoryFiles(tmp_path, 100))
            os.write(writing, b"+")
            signal.pause()
        finally:
            os._exit(1)
    os.close(writing)
    assert os.read(reading, 1) == b"+"
    os.close(reading)
    yield child
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_processes_share_pages_and_one_that_is_killed_takes_nothing_along(another: int, tmp_path: Path) -> None:
    files = MemoryFiles(tmp_path, 100)
    held = PartitionSet(KEYS, ordinary(2_000), complete=True)
    assert share(held, files) == 1
    assert (files.created, files.reused) == (0, 1)
    mapped = [
        set(re.findall(r" (\d+) +/memfd:\S+", Path(f"/proc/{process}/maps").read_text()))
        for process in ("self", another)
    ]
    assert mapped[0] & mapped[1], "the same file"
    os.kill(another, signal.SIGKILL)
    os.waitid(os.P_PID, another, os.WEXITED | os.WNOWAIT)
    check(held, by_name([*ordinary(2_000)]))
    # Its name no longer exists: the next process creates the file again.
    later = MemoryFiles(tmp_path, 100)
    again = PartitionSet(KEYS, ordinary(2_000), complete=True)
    assert share(again, later) == 1
    assert (later.created, later.reused) == (1, 0)


def test_equal_changes_in_another_order_make_equal_blocks(tmp_path: Path) -> None:
    files = MemoryFiles(tmp_path, 100)
    kept = []
    for seed in range(3):
        held = PartitionSet(KEYS, ordinary(2_000), complete=True)
        changed = [partition(one.values, number=99) for one in [*ordinary(2_000)][::7]]
        random.Random(seed).shuffle(changed)
        held.put(changed)
        rebuild = held.begin_rebuild()
        rebuild.run()
        assert held.finish_rebuild(rebuild)
        share(held, files)
        kept.append(held)  # and with it its file
        assert (files.created, files.reused) == (1, seed)


def test_a_shared_block_can_be_sent_to_another_process(tmp_path: Path) -> None:
    held = PartitionSet(KEYS, ordinary(2_000), complete=True)
    assert share(held, MemoryFiles(tmp_path, 100)) == 1
    travelled = pickle.loads(pickle.dumps(held))
    assert not is_shared(travelled.segments[0].block)
    check(travelled, by_name([*ordinary(2_000)]))
