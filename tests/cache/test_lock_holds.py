"""How long work in the background locks memory: not longer with more data in memory. Reads wait meanwhile."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest

from hms_cache.admin.commands.subject import Subject
from hms_cache.cache.dump import capture as capturing
from hms_cache.cache.entries import Entry, Facet, Key
from hms_cache.cache.event_rules import Action
from hms_cache.cache.partitions import segment as segments
from hms_cache.cache.partitions import selection as selecting
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.partitions.segment_rows import SegmentRows
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.verification import invariants
from hms_cache.cache.verification.invariants import InvariantViolation
from hms_cache.cache.warming import prewarm
from hms_cache.cache.warming.prewarm import most_used
from hms_cache.cache.warming.refill import BATCH_TABLES
from hms_cache.cache.weights import weight_of
from hms_cache.expressions import ParsedExpression
from hms_cache.metadata.names import matching_names
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.notifications.event_log import LogPosition
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import ByExpression, ByFilter, ByNames, PartitionQuery, PartitionSelection
from hms_cache.store.contract.read_version import ReadVersion
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    Database,
    Function,
    NoSuchObjectException,
    SQLAllTableConstraints,
)
from hms_cache.txn.valid_write_ids import ValidWriteIdList
from tests.cache.blocks.partitions import KEYS, ordinary
from tests.cache.conftest import MakeServer
from tests.cache.test_event_cells import FENCE, new_cache
from tests.cache.test_wide_events import hold_others, other
from tests.cache.world import CATALOG, Server, create_database, encoded, table
from tests.cache.world import partition as ordinary_partition
from tests.manual_clock import ManualClock
from tests.work import CountedLock, instructions

T = TableName(CATALOG, "d", "t")
FEW, MANY = 100, 1_000


def most_under_the_lock(cache: SharedCache, work: Callable[[], object]) -> int:
    lock = CountedLock()
    own, cache._lock = cache._lock, lock  # type: ignore[assignment]
    try:
        work()
    finally:
        cache._lock = own
    return lock.most


def with_tables(count: int) -> SharedCache:
    cache = new_cache()
    hold_others(cache, count)
    return cache


def test_a_dump_locks_no_longer_for_many_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor at its end, when changed entries are omitted; and exactly the changed ones are omitted."""
    monkeypatch.setattr(capturing, "AT_ONCE", 10)
    most = {}
    for count in (FEW, MANY):
        cache = with_tables(count)
        tries = 0

        def place(cache: SharedCache = cache) -> LogPosition:
            """Not reached immediately, and two of the tables change meanwhile."""
            nonlocal tries
            tries += 1
            if tries == 1:
                cache.forget(other(1))
                cache.forget(other(2), frozenset({Facet.CONSTRAINTS}))
            return LogPosition(cache.position - (tries == 1), "digest", "")

        found: list[capturing.Capture | None] = []

        def take(cache: SharedCache = cache, found: list[capturing.Capture | None] = found) -> None:
            found.append(capturing.capture(cache, place, threading.Event()))

        most[count] = most_under_the_lock(cache, take)
        [captured] = found
        assert captured is not None
        left_out = {other(number) for number in range(count)} - {one.key for one in captured.entries}
        assert left_out == {other(1), other(2)}
        assert not cache.change_notes
    assert most[MANY] < 1.5 * most[FEW], most


def test_nothing_is_left_of_a_dump_when_everything_goes_meanwhile() -> None:
    cache = with_tables(3)
    tries = 0

    def place() -> LogPosition:
        nonlocal tries
        tries += 1
        if tries == 1:
            cache.forget_all()
            hold_others(cache, 1)  # read again, possibly at another time
        return LogPosition(FENCE - (tries == 1), "digest", "")

    captured = capturing.capture(cache, place, threading.Event())
    assert captured is not None and not captured.entries


def test_the_list_of_the_most_used_tables_locks_no_longer_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prewarm, "REMEMBERED_TABLES", 7)
    most = {}
    for count in (FEW, MANY):
        cache = with_tables(count)
        for number in range(count):
            cache.tables[other(number)].reads = number % 90
        most[count] = most_under_the_lock(cache, lambda cache=cache: most_used(cache))
        found = most_used(cache)
        assert [int(name.table[1:]) % 90 for name in found] == sorted((n % 90 for n in range(count)), reverse=True)[:7]
    assert most[MANY] <= most[FEW], most


def test_a_refill_locks_no_longer_where_many_tables_wait(servers: MakeServer) -> None:
    most = {}
    for count in (FEW, MANY):
        clock = ManualClock()
        server = servers(clock=clock)
        cache, now_s = server.cache.shared, clock.monotonic_s()
        for number in range(count):
            cache.invalidated[other(number)] = (frozenset({Facet.TABLE}), now_s)
            if number % 5:
                server.cache.refill._cooldowns.begin(other(number), now_s - 1, now_s)
        taken: list[object] = []
        refill = server.cache.refill
        most[count] = most_under_the_lock(
            cache, lambda refill=refill, taken=taken, now_s=now_s: taken.extend(refill._next_batch(now_s))
        )
        assert len(taken) == min(BATCH_TABLES, count // 5)
        assert len(cache.invalidated) == count - len(taken)
    # A batch is taken under it.
    assert most[MANY] < 4 * most[FEW], most


def test_evictions_of_many_tables_do_not_look_at_all_segments_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does one for each load, as in a cache that is full."""
    monkeypatch.setattr(segments, "SEGMENT_PARTITIONS", 3)
    looks = 0

    def looked(held: PartitionSet, oldest: Any = PartitionSet.oldest.fget) -> Any:  # type: ignore[attr-defined]
        nonlocal looks
        looks += 1
        return oldest(held)

    monkeypatch.setattr(PartitionSet, "oldest", property(looked))
    cache = with_tables(FEW)
    held = hold_segments(cache, 30, last_read=2.0)
    for tables in (1, 20, 1, 1):
        cache.budget_bytes = cache.weight - 200 * tables
        cache._evict(keep=Entry(other(-1)))
    assert len(cache.tables) == FEW + 1 - 23
    assert sum(not one.is_bare for one in held.segments) == 10
    assert looks == 1


def test_what_was_read_the_longest_ago_is_evicted_first_whatever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "SEGMENT_PARTITIONS", 3)
    cache = with_tables(4)
    held = hold_segments(cache, 12, last_read=2.0)
    for number, last_read in enumerate((1.0, 2.5, 3.5, 4.5)):
        cache.tables[other(number)].last_read = last_read

    def evict_one() -> str:
        before = set(cache.tables)
        cache.budget_bytes = cache.weight - 1
        cache._evict(keep=Entry(other(-1)))
        gone = before - cache.tables.keys()
        return gone.pop().table if gone else "segment"

    assert [evict_one() for _ in range(2)] == ["t0", "segment"]
    held.touch(3.0)
    assert [evict_one() for _ in range(2)] == ["t1", "segment"]
    # What an event adds was never read.
    held.put(ordinary(1))
    cache.recharge(cache.tables[SEGMENTED], Facet.PARTITIONS, weight_of(held))
    assert [evict_one() for _ in range(3)] == ["segment", "segment", SEGMENTED.table], "with its last one"
    assert [evict_one() for _ in range(2)] == ["t2", "t3"]


@pytest.mark.parametrize("pattern", ["d1*|*7", None])
def test_names_of_databases_are_matched_without_the_lock(pattern: str | None, servers: MakeServer) -> None:
    """A pattern takes time proportional to the names, and other reads wait for the lock."""
    most = {}
    for count in (10, 200):
        server = servers()
        reads = server.store.reads
        names = sorted(f"d{number}" for number in range(count))
        hold(server.cache.shared, CATALOG, Facet.DATABASE_NAMES, names)
        for name in names:
            for facet, value in ((Facet.DATABASE, Database(name)), (Facet.TABLE_NAMES, {}), (Facet.FUNCTIONS, [])):
                hold(server.cache.shared, DatabaseName(CATALOG, name), facet, value)
        some = pattern and "d1|*no_such*"
        with counted_lock(server) as lock:
            assert reads.databases.get_database_names(CATALOG, pattern) == matching_names(names, pattern)
            most["names", count] = lock.most
            assert len(reads.databases.get_databases(CATALOG, some)) == (1 if pattern else count)
            assert reads.tables.get_table_meta(CATALOG, some, "*") == []
            most["some", count] = lock.most
            with pytest.raises(NoSuchObjectException):
                reads.databases.get_database(DatabaseName(CATALOG, "d"))
        assert server.reasons() == [Reason.HIT] * 4
    # What is done once in a process, such as the first read of a setting, is included in one or the other.
    assert most["names", 200] < most["names", 10] + 100, most
    if pattern:
        assert most["some", 200] < most["some", 10] + 100, most


@pytest.mark.parametrize("state", ["whole", "segments", "some missing", "some changed"])
@pytest.mark.parametrize("what", ["partitions", "count", "statistics"])
def test_many_names_are_looked_up_without_the_lock(
    what: str, state: str, servers: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query planner may name all partitions of a table."""
    if state == "segments":
        monkeypatch.setattr(segments, "SEGMENT_PARTITIONS", 30)
    server = servers(CacheOptions(load_at_once_partitions=1_000))
    create_database(server.objects, "d")
    made = table("d", "t", KEYS, transactional="true", transactional_properties="insert_only")
    server.objects.writes.tables.create_table(made)
    values = [("2024-01-01", f"{number}") for number in range(400)]
    server.objects.writes.partitions.add_partitions(T, [ordinary_partition(made, one) for one in values[:-1]])
    server.store.reads.partitions.get_partitions(PartitionQuery(T))
    names = tuple(f"dt={day}/hr={hour}" for day, hour in values)
    version = ReadVersion(valid_write_ids=server.transactions.valid("d.t")[0].to_text())

    def ask(store: MetadataStore, count: int) -> object:
        query = PartitionQuery(T, ByNames(names[-count:]), version=version)
        if what == "statistics":
            of = StatisticsQuery(T, ["a"], version=version)
            return store.reads.statistics.get_partition_column_statistics(of, names[-count:])
        of_partitions = store.reads.partitions
        return of_partitions.get_partition_count(query) if what == "count" else of_partitions.get_partitions(query)

    most = {}
    for count in (120, 400):
        with server.cache.shared.view():
            held = server.cache.shared.tables[T].facets[Facet.PARTITIONS]
            if state in ("some missing", "some changed"):
                held.mark_missing([values[-3], values[-9]])
        for _ in range(2):
            answered = encoded(lambda count=count: ask(server.store, count))
            assert answered == encoded(lambda count=count: ask(server.objects, count))
            if state == "some missing" and what != "statistics":
                break
        if state == "some missing":
            held.mark_missing([values[-3], values[-9]])
        server.reads.clear()
        shared, reading = server.cache.shared, server.cache.reading
        lock, own = CountedLock(), shared._lock
        shared._lock = reading._view = lock  # type: ignore[assignment]
        try:
            assert encoded(lambda count=count: ask(server.store, count)) == answered
        finally:
            shared._lock = reading._view = own
        assert server.reasons() == [Reason.MISS if state == "some missing" else Reason.HIT]
        most[count] = lock.most
    # A look-up takes some ninety. Each segment involved takes its part, and there are thirty names for one.
    assert most[400] - most[120] < 10 * (400 - 120), most


class Compared(str):
    """A value that counts how often it is compared while memory is locked."""

    __slots__ = ()
    lock: ClassVar[threading.Lock]
    count: ClassVar[int] = 0

    def __lt__(self, other: str) -> bool:
        Compared.count += self.lock.locked()
        return str.__lt__(self, other)

    __hash__ = str.__hash__


def test_many_that_changed_are_not_sorted_under_the_lock(servers: MakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for a read nor for the refill. Each sorted tens of thousands if a job writes as many."""
    monkeypatch.setattr(selecting, "MAX_CHECKED", 5)
    server = servers(clock=ManualClock())
    create_database(server.objects, "d")
    made = table("d", "t", KEYS)
    server.objects.writes.tables.create_table(made)
    values = [("2024-01-01", f"{number}") for number in range(20)]
    server.objects.writes.partitions.add_partitions(T, [ordinary_partition(made, one) for one in values])
    query = PartitionQuery(T, ByFilter("hr > 3"))
    for by_refill in (False, True):
        server.store.reads.partitions.get_partitions(query)
        shared = server.cache.shared
        monkeypatch.setattr(Compared, "lock", shared.view(), raising=False)
        with shared.view():
            named = tuple((day, Compared(hour)) for day, hour in values)
            shared._act(shared.tables[T], Facet.PARTITIONS, Action.DROP_NAMED, named)
        monkeypatch.setattr(Compared, "count", 0)
        if by_refill:
            assert server.cache.refill.step() == 1
        answered = encoded(lambda: server.store.reads.partitions.get_partitions(query))
        assert answered == encoded(lambda: server.objects.reads.partitions.get_partitions(query))
        assert Compared.count == 0


FILTER = " or ".join(f"hr = {number}" for number in range(40))
SELECTIONS: dict[str, PartitionSelection] = {
    "filter": ByFilter(FILTER),
    "text of an expression": ByExpression(FILTER.replace("hr = ", "hr=").encode(), plain_text=True),
    "expression": ByExpression(b"no expression that is known" * 10),
    "filter of an unknown key": ByFilter(FILTER + " or no_key = 1"),
    "no filter": ByFilter("hr = = 1"),
}


@pytest.mark.parametrize("state", ["whole", "segments", "some missing", "cold"])
@pytest.mark.parametrize("what", SELECTIONS)
def test_filters_are_read_without_the_lock(
    what: str, state: str, servers: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter of a megabyte takes a second to parse, and as long to bind to the keys of its table."""
    if state == "segments":
        monkeypatch.setattr(segments, "SEGMENT_PARTITIONS", 3)
    server = servers()
    create_database(server.objects, "d")
    made = table("d", "t", KEYS)
    server.objects.writes.tables.create_table(made)
    values = [("2024-01-01", str(number)) for number in range(12)]
    server.objects.writes.partitions.add_partitions(T, [ordinary_partition(made, one) for one in values])
    if state != "cold":
        server.store.reads.partitions.get_partitions(PartitionQuery(T))
    if state == "some missing":
        with server.cache.shared.view():
            server.cache.shared.tables[T].facets[Facet.PARTITIONS].mark_missing([values[3]])
    under_the_lock = []

    def watched(read: Callable[..., object]) -> Callable[..., object]:
        def watch(*arguments: object) -> object:
            under_the_lock.append(server.cache.shared.view().locked())
            return read(*arguments)

        return watch

    for name in ("parse_filter", "parse_expression", "bind"):
        monkeypatch.setattr(selecting, name, watched(getattr(selecting, name)))
    monkeypatch.setattr(ParsedExpression, "bind", watched(ParsedExpression.bind))
    query = PartitionQuery(T, SELECTIONS[what])
    for _ in range(2 if state == "cold" else 1):
        under_the_lock.clear()
        answered = encoded(lambda: server.store.reads.partitions.get_partitions(query))
        assert answered == encoded(lambda: server.objects.reads.partitions.get_partitions(query))
    assert under_the_lock and not any(under_the_lock)


def test_functions_of_a_database_are_matched_without_the_lock(servers: MakeServer) -> None:
    most = {}
    for count in (10, 200):
        server = servers()
        functions = [Function(f"f{number:03d}", "d") for number in range(count)]
        hold(server.cache.shared, DatabaseName(CATALOG, "d"), Facet.FUNCTIONS, functions)
        reads = server.store.reads.functions
        with counted_lock(server) as lock:
            assert reads.get_function_names(DatabaseName(CATALOG, "d"), "f00*|f") == [f"f00{n}" for n in range(10)]
            assert len(reads.get_functions(CATALOG, "d", "f00*|f")) == 10
        assert server.reasons() == [Reason.HIT] * 2
        most[count] = lock.most
    assert most[200] < most[10] + 100, most


def test_a_look_at_the_invariants_locks_for_some_tables_at_a_time() -> None:
    """`verify` of one table started with a scan of the whole cache, and reads waited for it."""
    most = {}
    for count in (FEW, MANY):
        cache = with_tables(count)
        most[count] = most_under_the_lock(cache, lambda cache=cache: invariants.check(cache))
        # What is summed over all is a hundredth of it.
        assert most_under_the_lock(cache, lambda cache=cache: invariants.check(cache, [other(1)])) < 50 * count
        cache.tables[other(count - 1)].tag = ValidWriteIdList.parse(f"d.t:1:{2**63 - 1}::")
        with pytest.raises(InvariantViolation, match=f"t{count - 1}.* has a tag"):
            invariants.check(cache)
        invariants.check(cache, [other(1)])
    assert most[MANY] < 3 * most[FEW], most


def test_a_look_at_the_invariants_locks_for_some_partitions_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "SEGMENT_PARTITIONS", 1_000)
    most = {}
    for count in (FEW, MANY):
        cache = with_tables(1)
        held = hold_segments(cache, count, last_read=1.0)
        most[count] = most_under_the_lock(cache, lambda cache=cache: invariants.check(cache))
        held.segments[0].missing.add(tuple(next(ordinary(1)).values))
        with pytest.raises(InvariantViolation, match="which an event took out"):
            invariants.check(cache)
    assert most[MANY] < 1.5 * most[FEW], most


def test_what_is_evicted_while_it_is_looked_at_contradicts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It changes nothing that was returned, so the entry counts no change."""
    monkeypatch.setattr(segments, "SEGMENT_PARTITIONS", 3)
    cache = with_tables(1)
    held = hold_segments(cache, 12, last_read=1.0)
    names_of = SegmentRows.names

    def names(rows: SegmentRows) -> list[str]:
        """Without the lock; another call needs memory meanwhile."""
        with cache.view():
            if all(one.complete for one in held.segments):
                cache.budget_bytes = cache.weight - 1
                cache._evict(keep=Entry(other(-1)))
        return names_of(rows)

    monkeypatch.setattr(SegmentRows, "names", names)
    invariants.check(cache)
    assert [one.complete for one in held.segments].count(False) == 1


@pytest.mark.parametrize("subject", [Subject(other(5).in_database, other(5)), Subject(DatabaseName(CATALOG, "one"))])
def test_a_command_about_a_table_or_a_database_looks_at_no_others(subject: Subject) -> None:
    work = {}
    for count in (FEW, MANY):
        cache = with_tables(count)
        hold(cache, TableName(CATALOG, "one", "t"), Facet.CONSTRAINTS, SQLAllTableConstraints())
        hold(cache, DatabaseName(CATALOG, "one"), Facet.DATABASE, Database("one"))
        assert [name.table for name in subject.held_tables(cache)] == (["t5"] if subject.table else ["t"])
        assert len(subject.held_databases(cache)) == (0 if subject.table else 1)
        work[count] = instructions(lambda cache=cache: (subject.held_tables(cache), subject.held_databases(cache)))
    assert work[MANY] == work[FEW]


SEGMENTED = other(100_000)


def hold_segments(cache: SharedCache, partitions: int, *, last_read: float) -> PartitionSet:
    """Replaces a table's partitions; three in each segment."""
    held = PartitionSet(KEYS, ordinary(partitions), complete=True)
    load = cache.begin_load(SEGMENTED, [Facet.PARTITIONS])
    assert cache.install(load, FENCE, Facet.PARTITIONS, held, weight_of(held))
    cache.end_load(load)
    cache.tables[SEGMENTED].last_read = 9.0
    held.touch(last_read)
    return held


def hold(cache: SharedCache, key: Key, facet: Facet, value: object) -> None:
    load = cache.begin_load(key, [facet])
    assert cache.install(load, cache.position, facet, value, 100)
    cache.end_load(load)


@contextlib.contextmanager
def counted_lock(server: Server) -> Iterator[CountedLock]:
    """Afterwards, nothing is cached: what a test stored there is not in the database."""
    reading, lock = server.cache.reading, CountedLock()
    server.reads.clear()
    own = reading._view
    reading._view = reading.cache._lock = lock  # type: ignore[assignment]
    try:
        yield lock
    finally:
        reading._view = reading.cache._lock = own
        server.cache.shared.forget_all()
