"""Servers from which one rule of coherence was removed, to show that the tests detect it.

`python -c "from tests.consistency.mutants import main; main('…')" serve …` is the real server after one patch. Some
patches also delay a step if the rule guards against a race, so that the race occurs within seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hms_cache.cache import invalidation
from hms_cache.cache.dump import capture as capturing
from hms_cache.cache.dump.restore import Restore
from hms_cache.cache.entries import Facet
from hms_cache.cache.event_rules import Action, UnchangedParts
from hms_cache.cache.freshness import Freshness
from hms_cache.cache.loads import Load
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.position_check import CheckResult, PositionCheck
from hms_cache.cache.reads.reading import Reading
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming.loader import Loader
from hms_cache.cache.warming.snapshot_reads import OpenSnapshot, SnapshotRead, SnapshotReads
from hms_cache.cache.worker_positions import CombinedPositions, WorkerSlot
from hms_cache.lease import scopes
from hms_cache.lease.state import LeaseState
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications import events as ev
from hms_cache.notifications import poller
from hms_cache.notifications.event_log import LogHead
from hms_cache.notifications.events import scope_of_row
from hms_cache.server.hot_path import HotPath
from hms_cache.store.partitions import windows
from hms_cache.store.partitions.table_guesses import TableGuesses
from hms_cache.txn.valid_write_ids import ValidWriteIdList

Patch = Callable[[Any, str, object], None]
"""Like `setattr`: what `pytest.MonkeyPatch.setattr` does too."""

OLD_S = 0.03


def overlapped_load_kept(patch: Patch) -> None:
    """Installs what an event changed between a load's snapshot and its installation."""
    install, merge, apply_up_to = SharedCache.install, Loader._merge, Loader.apply_up_to

    def install_all(self: SharedCache, load: Any, *arguments: Any, **options: Any) -> bool:
        load.effects.clear()
        return install(self, load, *arguments, **options)

    def merge_all(self: Loader, slot: Any, *arguments: Any) -> bool:
        slot.effects.clear()
        return merge(self, slot, *arguments)

    def slowly(self: Loader, fence: int) -> bool:
        time.sleep(0.005)
        return apply_up_to(self, fence)

    patch(SharedCache, "install", install_all)
    patch(Loader, "_merge", merge_all)
    patch(Loader, "apply_up_to", slowly)


def check_on_an_old_snapshot(patch: Patch) -> None:
    """The position check reads an older state of the database."""
    from hms_cache.app import positions
    from hms_cache.store.object_store import ObjectReads

    read_now = ObjectReads.log_head
    read_of_sqlite = positions._SqliteReader.read

    def aged(read: Callable[[], LogHead]) -> Callable[[], LogHead]:
        seen: list[tuple[float, LogHead]] = []

        def read_old() -> LogHead:
            if not seen or time.monotonic() - seen[0][0] > OLD_S:
                seen[:] = [(time.monotonic(), read())]
            return seen[0][1]

        return read_old

    readers: dict[int, Callable[[], LogHead]] = {}

    def log_head(self: ObjectReads) -> LogHead:
        return readers.setdefault(id(self), aged(lambda: read_now(self)))()

    def read(self: positions._SqliteReader) -> LogHead:
        return readers.setdefault(id(self), aged(lambda: read_of_sqlite(self)))()

    patch(ObjectReads, "log_head", log_head)
    patch(positions._SqliteReader, "read", read)


def header_only_rename(patch: Patch) -> None:
    """A rename is treated as concerning only the new name, which the row's columns contain."""
    patch(ev.TableAltered, "scope", property(lambda self: scope_of_row(self.header)))


def late_joiner_served(patch: Patch) -> None:
    """A request that arrives during a check is answered by it."""

    def lead(self: PositionCheck) -> None:
        sent_s = self._clock.monotonic_s()
        head = self._read_position()
        time.sleep(0.01)
        with self._lock:
            served, self._waiters = self._waiters, []
            self.checks += 1
            for waiter in served:
                waiter.result = CheckResult(head.last_event_id, sent_s, head.history)
                waiter.woken.set()
            self._busy = False

    patch(PositionCheck, "_lead", lead)


def reply_before_apply(patch: Patch) -> None:
    """The result of the check is applied some time later."""

    def ensure(self: Freshness, *_: object, **__: object) -> bool:
        self._check.check()
        return self.may_serve()

    patch(Freshness, "ensure", ensure)
    patch(Freshness, "accept", lambda self, result: self.may_serve())


def no_own_write_floor(patch: Patch) -> None:
    """Own writes do not raise the position that reads need."""
    patch(Freshness, "raise_floor", lambda self, event_id: None)


def store_answer_forgotten(patch: Patch) -> None:
    """The position that one read returned does not bind the next read."""
    patch(Freshness, "require_check", lambda self: None)


def names_forgotten(patch: Patch) -> None:
    """An event that changes the set of table names does not invalidate the list of names."""
    drop = SharedCache._drop

    def all_but_names(self: SharedCache, event_id: int, key: Any, facet: Facet) -> None:
        if facet is not Facet.TABLE_NAMES:
            drop(self, event_id, key, facet)

    patch(SharedCache, "_drop", all_but_names)


def table_id_ignored(patch: Patch) -> None:
    """A write-id list is used although it belongs to another table with the same name."""
    test = Reading.version_test

    def without_id(self: Reading, entry: Any, version: Any) -> Any:
        return test(self, entry, type(version)(version.valid_write_ids, None))

    patch(Reading, "version_test", without_id)


def tag_taken_from_the_request(patch: Patch) -> None:
    """A load is tagged with the list of the request that caused it."""
    requested: list[str] = []
    table_entry, tag = Reading.table_entry, OpenSnapshot.read_tag

    def remember(self: Reading, cache: Any, table: Any, version: Any) -> Any:
        if version.valid_write_ids is not None:
            requested[:] = [version.valid_write_ids]
        return table_entry(self, cache, table, version)

    def of_request(self: OpenSnapshot, key: Any) -> ValidWriteIdList | None:
        return ValidWriteIdList.parse(requested[0]) if requested else tag(self, key)

    patch(Reading, "table_entry", remember)
    patch(OpenSnapshot, "read_tag", of_request)


def age_counted_from_receipt(patch: Patch) -> None:
    """A proof counts from the time when its answer arrived."""
    found_current = Freshness.found_current

    def from_now(self: Freshness, _sent_s: float, generation: int) -> None:
        found_current(self, self._clock.monotonic_s(), generation)

    patch(Freshness, "found_current", from_now)


def age_of_any_check(patch: Patch) -> None:
    """A check that found memory behind counts as a proof."""
    ensure = Freshness.ensure

    def prove_first(self: Freshness, **options: bool) -> bool:
        self.found_current(self._clock.monotonic_s(), self._cache.generation)
        return ensure(self, **options)

    patch(Freshness, "ensure", prove_first)


def late_joiner_on_the_loop(patch: Patch) -> None:
    """The event loop's check serves requests that arrived after it was sent."""
    answered = HotPath._answered

    def with_late_ones(self: HotPath, head: LogHead | None) -> None:
        self._in_check, self._waiting = self._in_check + self._waiting, []
        answered(self, head)

    patch(HotPath, "_answered", with_late_ones)


def identity_not_checked(patch: Patch) -> None:
    """An equal id is accepted as a proof, whatever server or session it comes from."""
    patch(Freshness, "is_proven", lambda self, history: True)
    patch(Freshness, "_is_required", lambda self: False)


def load_of_an_older_moment_kept(patch: Patch) -> None:
    """Installs what a load read on a replica, although the snapshot is older than events that had been applied when it
    began."""
    patch(Loader, "_is_of_this_history", lambda self, slots, found: True)


def workers_tell_nothing(patch: Patch) -> None:
    """Worker processes of one server do not read each other's positions."""
    patch(WorkerSlot, "read", lambda *_: CombinedPositions(-1, float("-inf"), True))


def alter_taken_for_harmless(patch: Patch) -> None:
    """An ALTER_TABLE that changed locations or columns keeps the partitions, as if it had changed only a parameter."""
    patch(invalidation, "unchanged_parts", lambda event: UnchangedParts(not event.is_rename, not event.is_rename))


def batch_reload_overtaken_kept(patch: Patch) -> None:
    """Partitions that were read again are added to a cached set although an event came meanwhile."""
    merge = Loader._merge

    def merge_all(self: Loader, slot: Any, *arguments: Any) -> bool:
        slot.effects.clear()
        return merge(self, slot, *arguments)

    patch(Loader, "_merge", merge_all)


def statistics_of_changed_partitions_kept(patch: Patch) -> None:
    """An event that names partitions does not invalidate statistics of these partitions."""
    act = SharedCache._act

    def act_but_there(self: SharedCache, entry: Any, facet: Facet, action: Action, *arguments: Any) -> None:
        if facet is not Facet.PARTITION_STATISTICS or action is not Action.DROP_NAMED:
            act(self, entry, facet, action, *arguments)

    patch(SharedCache, "_act", act_but_there)


def dump_not_proven(patch: Patch) -> None:
    """A dump's position is accepted, whatever event has its id in the log."""
    patch(poller, "rows_after", lambda place, head, page: [row for row in page.rows if row.event_id > place.event_id])


def dump_overtaken_kept(patch: Patch) -> None:
    """Partitions of a dump are installed although events since its position named some of them."""
    step = Restore.step

    def step_over(self: Restore) -> bool:
        for late in self._late:
            late.load.effects.clear()
        return step(self)

    patch(Restore, "step", step_over)


def dump_of_two_moments(patch: Patch) -> None:
    """Entries that changed while a dump was taken are written with their old values."""
    patch(capturing, "_without", lambda captured, changed: captured)


def segment_overtaken_kept(patch: Patch) -> None:
    """A segment is installed as it was read, whatever partitions events named meanwhile."""
    patch(Load, "named_since", lambda self, facet, fence: set())


def neighbour_taken_for_whole(patch: Patch) -> None:
    """A set is complete if one of its segments is."""
    patch(PartitionSet, "complete", PartitionSet.has_complete)


def name_between_segments_lost(patch: Patch) -> None:
    """A segment ends one name before the next one begins."""
    read = windows._covered

    def one_less(*arguments: Any) -> Any:
        found = read(*arguments)
        return found and (found[0], found[1][:-1] if found[0].end is not None else found[1])

    patch(windows, "_covered", one_less)


def fence_of_another_moment(patch: Patch) -> None:
    """A load's fence is the end of the log after the reads, not that of its snapshot."""
    read = SnapshotReads._read

    def later(self: SnapshotReads, *arguments: Any, **options: Any) -> SnapshotRead:
        found = read(self, *arguments, **options)
        time.sleep(0.005)
        return replace(found, fence=self._store.current_event_id())

    patch(SnapshotReads, "_read", later)


def guess_believed(patch: Patch) -> None:
    """Partitions of the table that had this name at the last read are returned."""
    with_table = TableGuesses.with_table

    def believing(self: TableGuesses, name: TableName, find: Any) -> Any:
        guessed = self.guess(name)
        if guessed is None:
            return (yield from with_table(self, name, find))
        return guessed, (yield from find(guessed))

    patch(TableGuesses, "with_table", believing)


def writes_taken_for_nothing(patch: Patch) -> None:
    """By lease: every write is treated like a transaction that changes no answer, so members are not notified."""
    patch(scopes, "_changes_nothing", lambda event: True)
    account = LeaseState._account_to

    def without_alarm(self: LeaseState, position: int) -> None:
        account(self, max(position, 1 << 62))

    patch(LeaseState, "_account_to", without_alarm)


MUTANTS = {
    one.__name__: one
    for one in (
        overlapped_load_kept,
        check_on_an_old_snapshot,
        header_only_rename,
        late_joiner_served,
        reply_before_apply,
        no_own_write_floor,
        store_answer_forgotten,
        names_forgotten,
        table_id_ignored,
        tag_taken_from_the_request,
        age_counted_from_receipt,
        age_of_any_check,
        late_joiner_on_the_loop,
        identity_not_checked,
        load_of_an_older_moment_kept,
        workers_tell_nothing,
        alter_taken_for_harmless,
        batch_reload_overtaken_kept,
        statistics_of_changed_partitions_kept,
        dump_not_proven,
        dump_overtaken_kept,
        dump_of_two_moments,
        segment_overtaken_kept,
        neighbour_taken_for_whole,
        name_between_segments_lost,
        fence_of_another_moment,
        guess_believed,
        writes_taken_for_nothing,
    )
}


def program(name: str) -> str:
    """Returns the program of a server with this mutation."""
    root = str(Path(__file__).parents[2])
    return f"import sys; sys.path.insert(0, {root!r}); from tests.consistency.mutants import main; main({name!r})"


def main(name: str) -> None:
    """The command line, mutated."""
    from hms_cache.cli.main import main as command_line

    MUTANTS[name](setattr)
    command_line()
