"""The page that lists the metrics agrees with the declarations, and nothing else is exposed."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from hms_cache.metrics import Metrics
from hms_cache.metrics.reference import markdown, rows

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "metrics.md").read_text() == markdown(), "run make generate"


def test_every_metric_exposed_is_listed() -> None:
    listed = {name for name, *_ in rows()}
    exposed = {family.name for family in text_string_to_metric_families(Metrics().text().decode())}
    for name in exposed:
        if name.startswith("hms_cache_"):
            assert {name, f"{name}_total", f"{name}_info"} & listed, name
