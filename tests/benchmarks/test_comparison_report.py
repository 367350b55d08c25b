"""The comparison's report says for each bar whether it was met, based only on what was measured."""

from __future__ import annotations

from typing import Any
from xml.dom.minidom import parseString

from benchmarks.comparison import reads
from benchmarks.comparison.results import Results
from benchmarks.comparison.writing import markdown, plots

LARGE = 10_000


def row(server: str, operation: str, clients: int, cpu_us: float, rate: float) -> dict[str, Any]:
    return {
        "server": server,
        "operation": operation,
        "clients": clients,
        "calls": 100,
        "calls_per_second": rate,
        "p50_us": 10.0,
        "p95_us": 20.0,
        "p99_us": cpu_us * 10,
        "server_cpu_us": cpu_us,
        "database_cpu_us": 0.0,
        "statements": 0.25,
    }


def judged(ours_us: float, hive_us: float) -> Results:
    results = Results()
    for clients in (4, 16):
        for server in (reads.OURS_0, reads.OURS_500):
            results.rows.append(row(server, "get_table", clients, ours_us, 40_000))
        results.rows.append(row(reads.JAVA, "get_table", clients, hive_us, 20_000))
    reads.judge(results, LARGE)
    reads.judge_uncached(results, LARGE)
    reads.judge_checks(results)
    return results


def verdicts(results: Results) -> dict[str, bool | None]:
    return {bar.what: bar.passed for bar in results.bars}


def test_bars_are_met_missed_or_not_judged_by_what_was_measured() -> None:
    cheap, dear = verdicts(judged(10, 40)), verdicts(judged(30, 40))
    hot = "get_table, hot, ours, 500 ms, 4 clients or more, per CPU second"
    assert (cheap[hot], dear[hot]) == (True, False)
    assert cheap["get_table, hot, answers/s at 16 and 64 clients"] is True
    assert cheap["get_table, hot, p99"] is True
    assert cheap["statements per read at `max_staleness` 0 under load"] is True
    assert cheap["get_partitions of 1,000, per CPU second"] is None, "never measured"
    assert cheap["get_table, uncached"] is None


def test_the_report_counts_its_bars_and_tells_no_paths() -> None:
    results = judged(10, 40)
    results.failures.append("events: no such file: '/some/where/else.log' at 3 calls/s")
    text = markdown(results, "command", "facts", "catalog", 60, list(plots(results, "benchmarks")))
    met = sum(bar.passed is True for bar in results.bars)
    assert f"**{met} bars met, 0 missed, {len(results.bars) - met} not judged.**" in text
    assert text.count("| met |") == met
    assert "/some" not in text
    assert "3 calls/s" in text
    assert "| get_table | ours, 500 ms | 16 | 40,000 |" in text


def test_plots_are_svg_also_without_anything_measured() -> None:
    for results in (Results(), judged(10, 40)):
        for plot in plots(results, "benchmarks").values():
            assert parseString(plot).documentElement.tagName == "svg"
