"""Result of a run of a plan, for programs: JSON, and a Prometheus textfile."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from hms_cache.jobs.schedule.execution import State, StepResult, exit_status_of
from hms_cache.jobs.schedule.plan import Plan

_LABELS = ("plan", "step", "job")
_LAST_SUCCESS = "hms_cache_job_last_success_timestamp_seconds"

METRICS = {
    "hms_cache_job_last_run_timestamp_seconds": "When the step last ended.",
    _LAST_SUCCESS: "When the step last succeeded.",
    "hms_cache_job_duration_seconds": "How long it took.",
    "hms_cache_job_state": "1 for how it ended.",
    "hms_cache_job_count": "What it counted.",
}
"""Names of the textfile's metrics, with their help."""


def summary_of(plan: Plan, results: Sequence[StepResult], *, dry_run: bool) -> dict[str, Any]:
    """The run as a JSON object."""
    return {
        "plan": plan.name,
        "dry_run": dry_run,
        "exit_status": exit_status_of(list(results)),
        "steps": [
            {
                "name": result.step.name,
                "job": result.step.job.name,
                "state": str(result.state),
                "exit_status": result.exit_status,
                "started_at": datetime.fromtimestamp(result.started_s, UTC).isoformat(),
                "seconds": round(result.seconds, 3),
                "reason": result.reason,
                "summary": result.report.get("summary", {}),
                "tables": result.report.get("tables", {}),
            }
            for result in results
        ],
    }


def write_summary(path: Path, summary: dict[str, Any]) -> None:
    """Writes the file atomically."""
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.write_text(json.dumps(summary, indent=2, default=str) + "\n", encoding="utf-8")
    unfinished.replace(path)


def write_metrics(path: Path, plan: Plan, results: Iterable[StepResult]) -> None:
    """Writes a file for the node exporter's textfile collector, which requires names that end in ``.prom``; replaced
    atomically.

    The time of a step's last success is kept from the previous file, and so are all values of steps that are not among
    the results: a run of some steps has no new values for the others.
    """
    registry = CollectorRegistry()
    more = {"hms_cache_job_state": ("state",), "hms_cache_job_count": ("what",)}
    gauges = {
        name: Gauge(name, text, (*_LABELS, *more.get(name, ())), registry=registry) for name, text in METRICS.items()
    }
    ended, success, seconds, state, counted = gauges.values()
    results = list(results)
    did_not_run = {(plan.name, step.name) for step in plan.steps} - {(plan.name, one.step.name) for one in results}
    for sample in _samples(path):
        names = (*_LABELS, *more.get(sample.name, ()))
        is_others = (sample.labels.get("plan"), sample.labels.get("step")) in did_not_run
        if sample.name in METRICS and (is_others or sample.name == _LAST_SUCCESS):
            gauges[sample.name].labels(*(sample.labels.get(name, "") for name in names)).set(sample.value)
    for result in results:
        labels = (plan.name, result.step.name, result.step.job.name)
        ended.labels(*labels).set(result.started_s + result.seconds)
        seconds.labels(*labels).set(result.seconds)
        for one in State:
            state.labels(*labels, str(one)).set(one is result.state)
        if result.state in (State.DONE, State.ATTENTION):
            success.labels(*labels).set(result.started_s + result.seconds)
        for what, number in result.report.get("summary", {}).items():
            if isinstance(number, int | float):
                counted.labels(*labels, what).set(number)
    write_to_textfile(str(path), registry)


def _samples(path: Path) -> list[Sample]:
    """The samples in the current file."""
    try:
        families = list(text_string_to_metric_families(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return []  # the first run, or an invalid file, which is replaced
    return [sample for family in families for sample in family.samples]
