"""One process reads for all workers of a server: each item once, and no worker waits for one that requests nothing."""

from __future__ import annotations

import gc
import os
import resource
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from hms_cache.app import warming_reader
from hms_cache.app.warming_process import WarmingProcess, WarmingProcessLost
from hms_cache.app.warming_reader import AnswerLoop
from hms_cache.cache.entries import Facet
from hms_cache.cache.memory_files import MemoryFiles, is_available
from hms_cache.cache.partitions import shared_blocks
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.partitions.shared_blocks import is_shared
from hms_cache.cache.warming.snapshot_reads import Loaded, LoadRequest, SnapshotRead
from hms_cache.metadata.object_names import TableName
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.wire import encode_struct
from tests.cache.blocks.partitions import KEYS, ordinary
from tests.cache.blocks.test_shared_blocks import memory_files_open

LONG_S = 60.0
TABLES = [LoadRequest(TableName("hive", "d", f"t{number}"), Facet.PARTITIONS) for number in range(6)]
PARTITIONS = list(ordinary(300))


class Database:
    """Reads a set of partitions for each requested item, and records the requests."""

    def __init__(self) -> None:
        self.reads: list[tuple[str, ...]] = []
        self.failure: Exception | None = None
        self.went_in = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def read(self, wanted: Sequence[LoadRequest]) -> SnapshotRead:
        self.reads.append(tuple(one.key.table for one in wanted if isinstance(one.key, TableName)))
        self.went_in.set()
        assert self.may_go_on.wait(LONG_S)
        if self.failure is not None:
            raise self.failure
        loaded = [Loaded(one, one.facet, PartitionSet(KEYS, PARTITIONS, complete=True)) for one in wanted]
        return SnapshotRead(len(self.reads), loaded, 7, "here")


class Reading:
    """The process that reads, on a thread, and the workers for which it reads."""

    def __init__(self, callers: int, *, sends_files: bool = False) -> None:
        pipes = [Pipe() for _ in range(callers)]
        self.database = Database()
        self.callers = [WarmingProcess(ours) for ours, _ in pipes]
        self.answering = AnswerLoop([theirs for _, theirs in pipes], self.database.read, sends_files)
        self._thread = threading.Thread(target=self.answering.run)
        self._thread.start()

    def end(self) -> None:
        self.database.may_go_on.set()
        for caller in self.callers:
            caller.close()
        self._thread.join(LONG_S)
        assert not self._thread.is_alive(), "it ends when nobody asks any more"


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests about workers that request nothing."""
    monkeypatch.setattr(warming_reader, "FIRST_MAX_WAIT_S", 0.2)
    monkeypatch.setattr(warming_reader, "MAX_WAIT_S", 0.05)


@pytest.fixture
def long_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests in which all workers make requests, however slow the machine is."""
    monkeypatch.setattr(warming_reader, "FIRST_MAX_WAIT_S", LONG_S)
    monkeypatch.setattr(warming_reader, "MAX_WAIT_S", LONG_S)


@pytest.fixture
def reading() -> Iterator[Reading]:
    made = Reading(3)
    yield made
    made.end()


@pytest.mark.usefixtures("long_patience")
def test_what_all_ask_for_is_read_once(reading: Reading) -> None:
    def warm(caller: WarmingProcess) -> list[int]:
        return [caller.read([one]).fence for one in TABLES]

    with ThreadPoolExecutor(3) as threads:
        fences = list(threads.map(warm, reading.callers))
    assert fences == [list(range(1, len(TABLES) + 1))] * 3
    assert reading.database.reads == [(f"t{number}",) for number in range(len(TABLES))]


@pytest.mark.usefixtures("long_patience")
def test_who_is_behind_is_read_for_first_and_then_all_are_together_again(reading: Reading) -> None:
    """The requested item was read for the others before its slots were taken: this would be useless for it."""
    first, second, third = reading.callers

    def warm(caller: WarmingProcess, wanted: Sequence[LoadRequest]) -> list[int]:
        return [caller.read([one]).fence for one in wanted]

    with ThreadPoolExecutor(3) as threads:
        two = [threads.submit(warm, one, TABLES) for one in (first, second)]
        behind = threads.submit(warm, third, [TABLES[1], *TABLES[1:]])
        assert all(one.result(LONG_S) for one in (*two, behind))
    # `t1` alone for the third, since `t0` comes first for the others; afterwards, each is read for all three.
    assert sorted(reading.database.reads[:2]) == [("t0",), ("t1",)]
    assert reading.database.reads[2:] == [("t1",), ("t2",), ("t3",), ("t4",), ("t5",)]


@pytest.mark.usefixtures("patience")
def test_nobody_waits_for_long_for_one_that_does_not_ask(reading: Reading) -> None:
    first, second, third = reading.callers
    with ThreadPoolExecutor(2) as threads:
        for _ in range(3):
            assert {one.result(LONG_S).fence for one in [threads.submit(x.read, TABLES[:1]) for x in (first, second)]}
    assert third.read(TABLES[:1]).loaded


@pytest.mark.usefixtures("long_patience")
def test_nobody_waits_for_one_that_is_gone(reading: Reading) -> None:
    first, second, third = reading.callers
    second.close()
    third.close()
    assert first.read(TABLES[:2]).fence == 1
    with pytest.raises(DatabaseUnavailable, match="the server stops"):
        second.read(TABLES[:1])


@pytest.mark.usefixtures("patience")
def test_who_asks_while_it_reads_is_not_given_what_may_be_too_old() -> None:
    """The snapshot began before its slots were taken: events between the two would be missed."""
    reading = Reading(2)
    reading.database.may_go_on.clear()
    with ThreadPoolExecutor(2) as threads:
        early = threads.submit(reading.callers[0].read, TABLES[:1])
        assert reading.database.went_in.wait(LONG_S)
        later = threads.submit(reading.callers[1].read, TABLES[:1])
        reading.database.may_go_on.set()
        assert (early.result(LONG_S).fence, later.result(LONG_S).fence) == (1, 2)
    reading.end()


@pytest.mark.usefixtures("long_patience")
@pytest.mark.parametrize(
    ("failure", "then"),
    [
        (DatabaseUnavailable("it is away", connection_lost=True), DatabaseUnavailable),
        (ValueError("a defect"), WarmingProcessLost),
    ],
)
def test_what_goes_wrong_is_told_to_all(failure: Exception, then: type[Exception], reading: Reading) -> None:
    reading.database.failure = failure

    def read(caller: WarmingProcess) -> Exception:
        with pytest.raises(then) as raised:
            caller.read(TABLES[:1])
        return raised.value

    with ThreadPoolExecutor(3) as threads:
        told = list(threads.map(read, reading.callers))
    assert all(str(failure) in str(one) for one in told)
    assert [getattr(one, "connection_lost", None) for one in told] == [getattr(failure, "connection_lost", None)] * 3
    reading.database.failure = None
    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(lambda one: one.read(TABLES[:1]).fence, reading.callers)) == [2, 2, 2]


@pytest.mark.usefixtures("patience")
def test_one_that_takes_no_answer_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is stopped (SIGSTOP) while it waits: the others must not wait for it for ever."""
    monkeypatch.setattr(warming_reader, "SEND_TIMEOUT_S", 1)
    ours, theirs = Pipe()
    stopped, its = Pipe()
    database = Database()
    answering = AnswerLoop([its, theirs], database.read, False)
    thread = threading.Thread(target=answering.run)
    thread.start()
    for _ in range(2):  # its answer has megabytes, and nobody reads the second one: the first is in the way
        stopped.send(tuple(TABLES * 40))
    other = WarmingProcess(ours)
    assert other.read(TABLES[:1]).loaded
    assert other.read(TABLES[:1]).loaded
    other.close()
    stopped.close()
    thread.join(LONG_S)
    assert not thread.is_alive()


# Files in memory


files_in_memory = pytest.mark.skipif(not is_available(), reason="the system has no sealed files in memory")


def _inodes() -> set[str]:
    return {
        line.split()[4]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if line.endswith(" (deleted)") and "/memfd:" in line
    }


def _blocks(read: SnapshotRead) -> list[bool]:
    return [is_shared(segment.block) for one in read.loaded for segment in one.value.segments]


def _answer(read: SnapshotRead) -> list[str]:
    return [encode_struct(each).hex() for one in read.loaded for each in one.value.all().structs()]


@files_in_memory
@pytest.mark.usefixtures("long_patience")
@pytest.mark.parametrize("memory", ["shared", "full", "none"])
def test_partitions_come_as_files_that_all_map(memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_blocks, "SMALLEST_BYTES", 0)
    reading = Reading(2, sends_files=True)
    most = {"shared": 100, "full": 1, "none": 0}[memory]
    places = [MemoryFiles(tmp_path, most) if memory != "none" else None for _ in range(2)]
    before = memory_files_open()
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda one, place: one.read(TABLES[:3], place), reading.callers, places))
    expected = [encode_struct(one).hex() for one in PartitionSet(KEYS, PARTITIONS, complete=True).all().structs()]
    for one in found:
        assert _answer(one) == expected * 3
        assert (one.fence, one.highest_id, one.server_identity) == (1, 7, "here")
        assert _blocks(one) == {"shared": [True] * 3, "full": [True, False, False], "none": [False] * 3}[memory]
    if memory == "shared":
        # The three sets are equal, but each is a file of its own; both workers map the same three.
        assert len(_inodes()) == 3
        assert [place.reused for place in places if place is not None] == [3, 3]
        assert len(list(tmp_path.iterdir())) == 1, "what is equal has one name"
        # A process that reads the same for itself later finds it there.
        own = PartitionSet(KEYS, PARTITIONS, complete=True)
        later = MemoryFiles(tmp_path, 100)
        assert shared_blocks.shared_block(own.segments[0].block, later) is not None
        assert (later.reused, later.created) == (1, 0)
        del own, later
    reading.end()
    del found, one, places, reading
    gc.collect()
    assert not _inodes(), "nothing keeps them once nobody holds the partitions"
    assert memory_files_open() == before


@files_in_memory
@pytest.mark.usefixtures("long_patience")
def test_blocks_beyond_the_files_of_one_answer_are_sent_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_blocks, "SMALLEST_BYTES", 0)
    monkeypatch.setattr("hms_cache.cache.warming.sent_reads.MAX_FILES", 130)
    reading = Reading(1, sends_files=True)
    found = reading.callers[0].read(TABLES * 30, MemoryFiles(tmp_path, 1000))
    assert _blocks(found) == [True] * 130 + [False] * 50
    assert len(set(_answer(found))) == len(PARTITIONS)
    reading.end()


@files_in_memory
@pytest.mark.usefixtures("long_patience")
def test_a_file_that_is_not_what_was_sent_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_blocks, "SMALLEST_BYTES", 0)

    def send_others(connection: Connection, files: Sequence[int]) -> None:
        plain = [os.memfd_create("not-sealed") for _ in files]
        send(connection, plain)
        for one in plain:
            os.close(one)

    send = warming_reader._send_files
    monkeypatch.setattr(warming_reader, "_send_files", send_others)
    reading = Reading(1, sends_files=True)
    before = memory_files_open()
    with pytest.raises(WarmingProcessLost, match="not what was sent"):
        reading.callers[0].read(TABLES[:2], MemoryFiles(tmp_path, 100))
    reading.end()  # its thread closes what it has sent
    assert memory_files_open() == before, "those that came are closed"


@contextmanager
def _files_left(count: int) -> Iterator[None]:
    """This process may open this many additional files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(int(one.name) for one in Path("/proc/self/fd").iterdir()) + 1
    taken = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most + count, hard))
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        for one in taken[len(taken) - count :]:
            os.close(one)
        del taken[len(taken) - count :]
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for one in taken:
            os.close(one)


def _received(count: int, left: int) -> tuple[bool, int, int]:
    """Sends this many files to a process that may open that many. Returns whether the receiver ended, how many it has,
    and how many files in memory are open afterwards."""
    ours, theirs = Pipe()
    with ours, ThreadPoolExecutor(1) as threads:
        sent = os.memfd_create("sent")
        threads.submit(warming_reader._send_files, theirs, [sent] * count).result(LONG_S)
        os.close(sent)
        with _files_left(left):
            receiving = threads.submit(warming_reader.receive_files, ours, count)
            is_done = bool(wait([receiving], LONG_S).done)
            theirs.close()
            files = receiving.result() if receiving.exception() is None else []
        for one in files:
            os.close(one)
    return is_done, len(files), memory_files_open()


@pytest.fixture(scope="module")
def own_process() -> Iterator[ProcessPoolExecutor]:
    """A limit of open files applies to the whole process, in which threads of earlier tests may still open some."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        yield process


@files_in_memory
@pytest.mark.parametrize("count", [1, 20, 64, 65, 130])
@pytest.mark.parametrize("left", [1, 2, 11, 64, 65, 100])
def test_files_that_this_process_may_not_open_are_not_waited_for(
    count: int, left: int, own_process: ProcessPoolExecutor
) -> None:
    """One of them is for the socket itself. The system opens as many files of a message as it may, and does not report
    the others."""
    is_done, received, still_open = own_process.submit(_received, count, left).result(2 * LONG_S)
    assert is_done, "it waits for what will not come"
    assert received == (count if count < left else 0)
    assert not still_open
