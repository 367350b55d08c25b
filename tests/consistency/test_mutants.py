"""Each rule of coherence is removed once: the tests detect it, the random workload within seconds."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from hms_cache.cache.dump import writing
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.verification.invariants import InvariantViolation
from hms_cache.clock import Clock, SystemClock
from hms_cache.notifications.messages import MessageFormat
from hms_cache.store.engine.database import Database
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException
from tests.cache import (
    test_background_loads,
    test_dump,
    test_freshness_cells,
    test_harmless_changes,
    test_hot_path,
    test_loads,
    test_other_histories,
    test_position_check,
    test_segment_loads,
    test_write_ids,
)
from tests.cache.world import Server
from tests.consistency import mutants
from tests.consistency.runs import two_servers
from tests.consistency.workload import Size
from tests.servers import ServerProcess

LIMIT_S = 30.0
SLICE = Size(reads=600, writes=120)

FOUND_BY_CHANCE = [
    # (mutant, max_staleness in ms)
    (mutants.overlapped_load_kept, "0"),
    (mutants.check_on_an_old_snapshot, "0"),
    (mutants.header_only_rename, "0"),
    (mutants.late_joiner_served, "0"),
    (mutants.reply_before_apply, "0"),
    (mutants.no_own_write_floor, "inf"),
    (mutants.store_answer_forgotten, "inf"),
    (mutants.names_forgotten, "0"),
    (mutants.fence_of_another_moment, "0"),
]


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.parametrize(("mutant", "setting"), FOUND_BY_CHANCE, ids=[mutant.__name__ for mutant, _ in FOUND_BY_CHANCE])
@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
def test_the_workload_finds(
    mutant: Callable[..., None], setting: str, database_url: str, initialize: None, tmp_path: Path
) -> None:
    class Mutated(ServerProcess):
        program = mutants.program(mutant.__name__)

    with two_servers(tmp_path, database_url, setting, time.time_ns() % 100_000, kind=Mutated) as run:
        began_s = time.monotonic()
        found = []
        while not found and time.monotonic() < began_s + LIMIT_S:
            run.workload.run(SLICE)
            found = run.violations()
        reads = len(run.workload.history.reads)
        assert found, f"{mutant.__name__} was not noticed in {reads} reads"
        print(f"{mutant.__name__}: {found[0].promise} after {reads} reads, {time.monotonic() - began_s:.1f} s")
        assert {one.promise for one in found} <= {"P1", "P3", "P4", "P6"}


@pytest.fixture
def mutated_servers(sqlite_database: Database, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """As `servers` of the cache tests; what a mutant leaves behind need not make sense."""
    url = sqlite_database.url.render_as_string(hide_password=False)
    with contextlib.ExitStack() as stack:

        def make(
            options: CacheOptions | None = None,
            clock: Clock | None = None,
            message_format: MessageFormat = MessageFormat.JSON,
        ) -> Server:
            server = Server(
                url,
                tmp_path / "warehouse",
                options or CacheOptions(),
                clock or SystemClock(),
                message_format=message_format,
            )

            def close() -> None:
                with contextlib.suppress(InvariantViolation):
                    server.close()

            stack.callback(close)
            return server

        yield make


def _pair(make: Callable[..., Server]) -> tuple[Server, Server]:
    return test_loads.pair.__wrapped__(make)  # type: ignore[attr-defined,no-any-return]


def _after_a_restore(make: Callable[..., Server]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        test_other_histories.test_another_history_under_the_same_id_is_not_mixed_with_the_one_in_memory(
            0.0, False, make, Path(directory)
        )


def _after_an_alter(name: str, cascade: bool, make: Callable[..., Server]) -> None:
    test_harmless_changes.test_after_an_alter_memory_equals_the_database(name, MessageFormat.JSON, cascade, make)


def _with_a_dump(test: Callable[..., None], *options: object) -> Callable[[Callable[..., Server]], None]:
    def scenario(make: Callable[..., Server]) -> None:
        with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patching:
            patching.setattr(writing, "SECTION_BYTES", 0)
            test(make, Path(directory), *options)

    return scenario


FOUND_BY_DESIGN: list[tuple[Callable[..., None], Callable[[Callable[..., Server]], None]]] = [
    # Faults that a random run would not produce: lists, clocks, one interleaving.
    (
        mutants.overlapped_load_kept,
        lambda make: test_loads.test_an_event_between_fence_and_position_discards_the_load(_pair(make)),
    ),
    (
        mutants.overlapped_load_kept,
        lambda make: test_loads.test_a_partition_that_changed_during_a_load_is_missing_from_it(_pair(make)),
    ),
    (
        mutants.late_joiner_served,
        lambda _: test_position_check.test_one_who_arrives_while_a_check_is_on_its_way_joins_the_next_one(),
    ),
    (
        mutants.late_joiner_on_the_loop,
        test_hot_path.test_all_who_wait_share_a_question_and_who_comes_later_joins_the_next,
    ),
    (mutants.table_id_ignored, test_write_ids.test_another_table_under_the_same_name_is_not_taken_for_it),
    (
        mutants.tag_taken_from_the_request,
        test_write_ids.test_a_transaction_that_reads_its_own_write_vouches_for_nobody_else,
    ),
    (
        mutants.age_counted_from_receipt,
        lambda _: test_freshness_cells.test_an_age_counts_from_the_sending_of_the_question_that_proved_it(),
    ),
    (
        mutants.age_of_any_check,
        lambda _: test_freshness_cells.test_a_check_that_finds_memory_behind_proves_nothing_until_it_is_caught_up(),
    ),
    (
        mutants.names_forgotten,
        lambda make: test_loads.test_absence_is_answered_from_complete_names_and_ends_with_a_creation_elsewhere(
            _pair(make)
        ),
    ),
    (
        mutants.no_own_write_floor,
        lambda make: test_loads.test_an_own_write_is_seen_whatever_a_load_installs_after_it(float("inf"), make),
    ),
    (mutants.identity_not_checked, test_other_histories.test_a_resumed_poller_proves_before_memory_answers),
    (mutants.identity_not_checked, _after_a_restore),
    (
        mutants.load_of_an_older_moment_kept,
        test_other_histories.test_a_load_that_shows_less_than_was_applied_is_refused,
    ),
    *(
        (
            mutants.load_of_an_older_moment_kept,
            partial(test_other_histories.test_a_load_from_another_server_is_refused, ahead),
        )
        for ahead in (0, 1000)
    ),
    (mutants.alter_taken_for_harmless, lambda make: _after_an_alter("location", False, make)),
    (mutants.alter_taken_for_harmless, lambda make: _after_an_alter("column added", True, make)),
    (
        mutants.batch_reload_overtaken_kept,
        test_harmless_changes.test_a_batch_reload_that_is_overtaken_is_not_installed,
    ),
    (
        mutants.statistics_of_changed_partitions_kept,
        test_harmless_changes.test_statistics_of_partitions_go_with_their_partitions,
    ),
    (mutants.dump_not_proven, _with_a_dump(test_dump.another_history_is_not_answered, 1)),
    (mutants.dump_overtaken_kept, _with_a_dump(test_dump.events_since_take_out_what_they_name)),
    (mutants.dump_of_two_moments, _with_a_dump(test_dump.what_changes_meanwhile_is_left_out)),
    (
        mutants.segment_overtaken_kept,
        test_segment_loads.what_an_event_names_while_a_segment_is_loaded_is_missing_from_it,
    ),
    (
        mutants.neighbour_taken_for_whole,
        test_segment_loads.what_lies_beside_a_segment_is_not_taken_for_absent,
    ),
    (mutants.name_between_segments_lost, test_segment_loads.every_name_lies_in_one_segment),
    (mutants.guess_believed, test_background_loads.test_a_table_that_was_made_anew_is_not_taken_for_the_old_one),
]


@pytest.mark.parametrize(
    ("mutant", "scenario"),
    FOUND_BY_DESIGN,
    ids=[f"{number}-{mutant.__name__}" for number, (mutant, _) in enumerate(FOUND_BY_DESIGN)],
)
def test_a_scenario_finds(
    mutant: Callable[..., None],
    scenario: Callable[[Callable[..., Server]], None],
    mutated_servers: Callable[..., Server],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The scenario passes in its own test; with the mutation it fails."""
    mutant(monkeypatch.setattr)
    monkeypatch.setattr(test_position_check, "LIMIT_S", 1)
    with pytest.raises((AssertionError, NoSuchObjectException)):
        scenario(mutated_servers)
