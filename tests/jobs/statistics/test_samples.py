"""Samples: which files they are, what is estimated from them, and what is claimed."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hms_cache.jobs.statistics.data_files import SAMPLED, FigureLister, Figures, Sample, UnitFiles
from hms_cache.jobs.statistics.parameters import basic_statistics, spark_statistics
from hms_cache.jobs.statistics.plan import limit_work
from hms_cache.jobs.statistics.reading import PartitionBatch, portions
from hms_cache.jobs.statistics.totals import TotalsOfColumns
from hms_cache.jobs.statistics.transform import estimated
from tests.jobs.statistics.test_plan import work_of


def test_files_of_a_sample(tmp_path: Path) -> None:
    (tmp_path / "deeper").mkdir()
    for number in range(20):
        (tmp_path / ("deeper" if number % 2 else ".") / f"part-{number}").write_bytes(b"x" * 100)
    (tmp_path / "_temporary").write_bytes(b"x" * 5_000)
    lister, location = FigureLister(), f"file:{tmp_path}"
    found = lister.sample(location, 450)
    assert found is not None and (len(found.names), found.bytes) == (5, 500)
    assert found == lister.sample(location, 450)  # the next run reads the same ones
    assert set(found.names) <= {f"part-{number}" for number in range(20)}
    smaller = lister.sample(location, 100)
    assert smaller is not None and set(smaller.names) < set(found.names)
    assert lister.sample(location, 1_950) is None  # all of them
    assert lister.sample(f"file:{tmp_path}/nowhere", 1) is None


@given(st.lists(st.tuples(st.integers(0, 1_000), st.booleans()), min_size=1, max_size=8), st.integers(1, 3_000))
def test_each_sampled_partition_is_read_alone(units: list[tuple[int, bool]], limit: int) -> None:
    one = work_of([size for size, _ in units], 1)
    one.files = {
        name: found._replace(sample=Sample(("part-0",), 3) if is_sampled else None)
        for (name, found), (_, is_sampled) in zip(one.files.items(), units, strict=True)
    }
    found = portions(one.chosen, one.names, one.files)
    assert sorted(name for portion in found for name in portion.names or ()) == sorted(one.chosen)
    for portion in found:
        samples = [one.files[name].sample for name in portion.names or ()]
        assert samples == [portion.sample] if portion.sample is not None else not any(samples)
        assert portion.sample is None or not portion.is_whole
    assert one.sampled == [f"p={number}" for number, (_, is_sampled) in enumerate(units) if is_sampled]
    # What is left for the next run depends on what would be read.
    sizes = [3 if is_sampled else size for size, is_sampled in units]
    limit_work([one], limit)
    assert len(one.chosen) == next((n for n in range(1, len(sizes)) if sum(sizes[: n + 1]) > limit), len(sizes))


def test_counts_grow_and_what_was_seen_stays() -> None:
    row = {"rows": 10, "nulls0": 3, "low0": 1, "high0": 7, "sketch0": [b"s"], "trues1": 4, "nulls1": None}
    row |= {"length_sum2": 30, "length_max2": 9, "name": "p=1", "sample_bytes": 4, "all_bytes": 10}
    assert estimated(row, 2.5) == row | {"rows": 25, "nulls0": 8, "trues1": 10, "length_sum2": 75}


def test_nothing_of_a_sample_counts_as_accurate() -> None:
    before = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}', "kept": "1"}
    before |= {"spark.sql.statistics.numRows": "7", "spark.sql.statistics.colStats.a.max": "9"}
    figures = Figures(3, 1_000, 5, "d")
    of_sample = basic_statistics(before, 40, figures, [], "250:1000")
    assert "COLUMN_STATS_ACCURATE" not in of_sample
    assert (of_sample[SAMPLED], of_sample["numRows"], of_sample["totalSize"]) == ("250:1000", "40", "1000")
    of_spark = spark_statistics(of_sample, None, 1_000, [], TotalsOfColumns())
    assert {name for name in of_spark if name.startswith("spark.")} == {"spark.sql.statistics.totalSize"}
    whole = basic_statistics(of_spark, 41, figures, [])
    assert SAMPLED not in whole and '"BASIC_STATS":"true"' in whole["COLUMN_STATS_ACCURATE"]


def test_estimates_will_do_where_a_sample_is_wanted() -> None:
    figures = Figures(3, 1_000, 5, "d")
    sample = Sample(("part-0",), 300)
    exact = UnitFiles("file:/d", figures, None, figures, 40)
    assert exact.is_current and exact._replace(sample=sample).is_current
    estimate = exact._replace(was_sampled=True)
    assert estimate._replace(sample=sample).is_current and not estimate.is_current
    changed = exact._replace(recorded=Figures(2, 1_000, 5, "d"), sample=sample)
    assert not changed.is_current and changed.bytes_to_read == 300
    assert portions(None, None, {None: changed}) == [PartitionBatch(None, sample=sample)]
