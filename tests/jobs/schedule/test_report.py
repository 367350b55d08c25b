"""The textfile of a plan's metrics."""

from __future__ import annotations

from pathlib import Path

from hms_cache.jobs.registry import JOBS
from hms_cache.jobs.schedule.execution import State, StepResult
from hms_cache.jobs.schedule.plan import Plan, Step, chosen
from hms_cache.jobs.schedule.report import write_metrics


def lines_of(path: Path, step: str) -> set[str]:
    return {line for line in path.read_text().splitlines() if f'step="{step}"' in line}


def test_a_run_of_some_steps_keeps_what_is_known_of_the_others(tmp_path: Path) -> None:
    """Otherwise, the alarm of a failed step would end with any run that omits it."""
    path = tmp_path / "jobs.prom"
    first, second, gone = (Step(name, JOBS["repair"], {}) for name in ("first", "second", "gone"))
    plan = Plan("nightly", (first, second))
    report = {"summary": {"tables": 3}}
    write_metrics(
        path,
        Plan("nightly", (first, second, gone)),
        [
            StepResult(first, State.FAILED, 1_000.0, 5.0),
            StepResult(second, State.DONE, 1_005.0, 5.0, report=report),
            StepResult(gone, State.FAILED, 1_010.0, 5.0),
        ],
    )
    before = lines_of(path, "second")
    [only] = chosen(plan, ["first"]).steps
    write_metrics(path, plan, [StepResult(only, State.DONE, 2_000.0, 5.0)])
    assert lines_of(path, "second") == before
    assert 'hms_cache_job_state{job="repair",plan="nightly",state="done",step="first"} 1.0' in lines_of(path, "first")
    assert not lines_of(path, "gone"), "it is no step of the plan any more"
    write_metrics(path, plan, [StepResult(second, State.FAILED, 3_000.0, 5.0)])
    [success] = [line for line in lines_of(path, "second") if "last_success" in line]
    assert success.endswith(" 1010.0")
    counted = [line for line in lines_of(path, "second") if "job_count" in line]
    assert not counted, "a run that counted nothing says so"
