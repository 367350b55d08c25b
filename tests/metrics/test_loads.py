"""The busiest names: the guarantees of the space-saving counter, whatever names occur."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from hms_cache.metrics.loads import MAX_NAME_CHARACTERS, BusiestNames, CallLoads

CALLS = st.lists(st.tuples(st.sampled_from("abcdefghij"), st.integers(1, 50)), max_size=200)


@given(calls=CALLS, places=st.integers(1, 6))
def test_whoever_has_more_than_a_places_share_is_counted(calls: list[tuple[str, int]], places: int) -> None:
    counted = BusiestNames(places)
    true: Counter[str] = Counter()
    for name, busy_s in calls:
        counted.add(name, float(busy_s), 0)
        true[name] += busy_s
    found = {one.name: one for one in counted.busiest()}
    assert len(found) <= places
    for name, busy_s in true.items():
        if busy_s > true.total() / places:
            assert name in found
    for name, one in found.items():
        assert one.busy_s - one.max_error_s <= true[name] <= one.busy_s
    assert sum(one.busy_s for one in found.values()) == true.total(), "no time is lost"


def test_long_names_are_cut() -> None:
    loads = CallLoads()
    for number in range(1000):
        loads.add("u" * 10**6 + str(number), f"10.0.0.{number}", "t" * 10**6, 0.001, 1)
    rows = [*loads.by_user(), *loads.by_address(), *loads.by_table()]
    assert max(len(one.name) for one in rows) == MAX_NAME_CHARACTERS
    assert len(loads.by_address()) == 100
    assert loads.by_table()[0].loads == 1000


def test_calls_about_no_table_count_for_none() -> None:
    loads = CallLoads()
    loads.add("ann", "local", "", 0.5, 0)
    assert loads.by_table() == [] and loads.by_user()[0][1:3] == (0.5, 1)
