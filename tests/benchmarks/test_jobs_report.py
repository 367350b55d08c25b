"""The report of jobs checks the figures that have a bar, and no others."""

from __future__ import annotations

import pytest

from benchmarks.jobs.report import Figure, Report


def measured(seconds: float, measure: str = "statistics", size: int = 1_000_000, cores: int = 2) -> Report:
    figure = Figure(measure, "partitions", size, cores, size, seconds, 1.0)
    return Report("command", [figure])


@pytest.mark.parametrize(("seconds", "word"), [(1_200.0, "met"), (1_200.1, "**missed**")])
def test_a_bar_is_met_or_missed(seconds: float, word: str) -> None:
    report = measured(seconds)
    text = report.markdown([1_000_000], [2])
    assert f"- {word}: statistics, 1,000,000 partitions, 2 cores: {seconds:,.1f} s (at most 1,200)" in text
    assert bool(report.missed()) is (word != "met")


@pytest.mark.parametrize(
    "other", [measured(9_999, "files"), measured(9_999, size=10_000), measured(9_999, cores=1)], ids=str
)
def test_other_figures_are_not_judged(other: Report) -> None:
    assert other.missed() == []
    assert "met:" not in other.markdown([10_000, 1_000_000], [1, 2])
