"""Counting from many threads without locks loses nothing, and Prometheus reads what is written."""

from __future__ import annotations

import gc
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from hms_cache.metrics import DurationFamily, Metrics, TallyFamily, quantile_s
from hms_cache.metrics.sharded import DURATION_BOUNDS_S


def test_counts_of_many_threads_are_exact() -> None:
    tally = TallyFamily("x_total", "", ("a",))
    durations = DurationFamily("x_seconds", "", ("a",))
    start = threading.Barrier(8, timeout=60)

    def work() -> None:
        start.wait(30)
        for number in range(20_000):
            tally.add((str(number % 7),))
            durations.observe(0.001, ("all",))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        tally.values()  # a scrape in between must neither fail nor disturb
    for thread in threads:
        thread.join()
    assert sum(tally.values().values()) == 160_000
    counts, sum_s = durations.totals()[("all",)]
    assert sum(counts) == 160_000
    assert sum_s == pytest.approx(160)


def test_counts_of_a_thread_that_ended_stay() -> None:
    tally = TallyFamily("x_total", "")
    thread = threading.Thread(target=tally.add)
    thread.start()
    thread.join()
    assert tally.value() == 1


def test_threads_that_come_and_go_leave_counts_and_nothing_else() -> None:
    """The probe of the database alone uses a thread each ten seconds: three million a year."""
    tally, durations = TallyFamily("x_total", "", ("a",)), DurationFamily("x_seconds", "", ("a",))
    held = threading.Event()

    def count() -> None:
        tally.add(("1",))
        durations.observe(0.001, ("1",))

    def count_and_stay() -> None:
        count()
        held.wait(30)
        count()

    staying = [threading.Thread(target=count_and_stay) for _ in range(5)]
    for thread in staying:
        thread.start()
    gc.collect()
    before = len(gc.get_objects())
    for number in range(1, 1_001):
        passing = threading.Thread(target=count)
        passing.start()
        passing.join()
        if number % 100 == 0:
            assert tally.value(("1",)) == number + 5
    gc.collect()
    assert len(gc.get_objects()) - before < 500
    held.set()
    for thread in staying:
        thread.join()
    assert tally.values() == {("1",): 1_010}
    counts, sum_s = durations.totals()[("1",)]
    assert sum(counts) == 1_010
    assert sum_s == pytest.approx(1.01)


def test_two_families_do_not_share_counts() -> None:
    one, other = TallyFamily("x_total", ""), TallyFamily("y_total", "")
    one.add()
    assert (one.value(), other.value()) == (1, 0)


@given(st.lists(st.floats(min_value=0, max_value=1000), max_size=50))
def test_a_histogram_reads_back_as_prometheus_defines_it(values: list[float]) -> None:
    registry = CollectorRegistry()
    family = DurationFamily("x_seconds", "help", ("method",))
    registry.register(family)
    for value in values:
        family.observe(value, ("m",))
    samples = [
        sample
        for metric in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in metric.samples
    ]
    buckets = {sample.labels["le"]: sample.value for sample in samples if sample.name == "x_seconds_bucket"}
    if not values:
        assert not buckets
        return
    expected = {repr(bound): sum(1 for value in values if value <= bound) for bound in DURATION_BOUNDS_S}
    assert buckets == expected | {"+Inf": len(values)}


def test_a_quantile_is_the_bound_that_covers_it() -> None:
    counts = [0] * (len(DURATION_BOUNDS_S) + 1)
    assert quantile_s(counts, 0.5) == 0
    counts[0], counts[3], counts[-1] = 90, 9, 1
    assert quantile_s(counts, 0.5) == DURATION_BOUNDS_S[0]
    assert quantile_s(counts, 0.99) == DURATION_BOUNDS_S[3]
    assert quantile_s(counts, 1) == float("inf")


def test_names_tell_their_unit_and_help_is_a_sentence() -> None:
    metrics = Metrics()
    metrics.server.observe_call("get_table", "ok", 0.01)
    families = {family.name: family for family in text_string_to_metric_families(metrics.text().decode())}
    ours = {name: family for name, family in families.items() if name.startswith("hms_cache_")}
    assert ours["hms_cache_calls"].samples[0].labels == {"method": "get_table", "outcome": "ok"}
    for name, family in ours.items():
        assert family.documentation, name
        if family.type == "histogram":
            assert name.endswith("_seconds")
        for sample in family.samples:
            assert set(sample.labels) <= {
                "method",
                "outcome",
                "reason",
                "type",
                "kind",
                "limit",
                "status",
                "what",
                "le",
                "version",
            }
