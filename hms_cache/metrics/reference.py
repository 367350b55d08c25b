"""Generates the reference page of the metrics from their declarations.

``python -m hms_cache.metrics.reference`` writes ``docs/metrics.md``. A test checks that it is up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path

from prometheus_client import Gauge

from hms_cache.metrics.registry import Metrics
from hms_cache.metrics.sharded import CountFamily, DurationFamily, TallyFamily

_INTRODUCTION = """\
# Metrics

Written from the declarations in `hms_cache/metrics/registry.py` by `make generate`.

`GET /metrics` on the management port returns all of them in Prometheus' text format, with those of the process
(`process_…`, `python_info`). Labels have few values: a method, an outcome, a reason, but never the name of a table or a
client. `GET /jsonmetrics` returns those of the event processor under the names in Impala's documentation;
`events-processor.avg-events-fetch-duration` is, as in Impala, the time for fetching and processing a batch.

| metric | type | labels | meaning |
|---|---|---|---|
"""


def rows() -> list[tuple[str, str, str, str]]:
    """Returns (name, type, labels, meaning) of each of our metrics, by name."""
    metrics = Metrics()
    found: list[tuple[str, str, str, str]] = []
    for subsystem in (
        metrics.server,
        metrics.database,
        metrics.warehouse,
        metrics.cache,
        metrics.lease,
        metrics.events,
        metrics.management,
    ):
        for metric in vars(subsystem).values():
            if isinstance(metric, TallyFamily):
                found.append((metric.name, "counter", ", ".join(metric.label_names), metric.documentation))
            elif isinstance(metric, CountFamily):
                found.append((metric.name, "counter", "", metric.documentation))
            elif isinstance(metric, DurationFamily):
                found.append((metric.name, "histogram", ", ".join(metric.label_names), metric.documentation))
            elif isinstance(metric, Gauge):
                family = next(iter(metric.collect()))
                found.append((family.name, "gauge", ", ".join(metric._labelnames), family.documentation))
    found.append(("hms_cache_build_info", "info", "version", "The program's version."))
    return sorted(found)


def markdown() -> str:
    """Returns the text of ``docs/metrics.md``."""
    return _INTRODUCTION + "".join(
        f"| `{name}` | {kind} | {labels} | {meaning} |\n" for name, kind, labels, meaning in rows()
    )


def main() -> None:
    """Writes the page into the checkout of this module."""
    root = Path(__file__).parents[2]
    (root / "docs" / "metrics.md").write_text(markdown(), encoding="utf-8")
    sys.stdout.write("docs/metrics.md\n")


if __name__ == "__main__":
    main()
