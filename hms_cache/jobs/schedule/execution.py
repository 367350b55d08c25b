"""Executes a plan, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from thrift.Thrift import TException

from hms_cache.app.child_processes import ending
from hms_cache.errors import HmsCacheError
from hms_cache.jobs.schedule.lease import Lease, LeaseBusyError
from hms_cache.jobs.schedule.plan import Plan, Step
from hms_cache.jobs.schedule.step import StepProcess
from hms_cache.jobs.schedule.targets import metastore_of, targets_of

ATTENTION = 3
"""Exit status of a job that found something that needs attention."""


class State(StrEnum):
    """The outcome of a step."""

    DONE = "done"
    ATTENTION = "attention"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    BUSY = "busy"
    LEASE_LOST = "lease lost"
    SKIPPED = "skipped"


_SUCCEEDED = frozenset({State.DONE, State.ATTENTION})
_FAILED = frozenset({State.FAILED, State.TIMED_OUT, State.LEASE_LOST})


@dataclass(slots=True)
class StepResult:
    """Result of a step. Times are in epoch seconds, durations in seconds."""

    step: Step
    state: State
    started_s: float
    seconds: float = 0.0
    exit_status: int | None = None
    report: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    """Why it did not succeed."""


def run_plan(plan: Plan, *, dry_run: bool, progress: Callable[[str], None]) -> list[StepResult]:
    """Runs all steps in order. If one fails, the others are run, except those that need it.

    :param progress: receives progress messages.
    """
    results: list[StepResult] = []
    states: dict[str, State] = {}
    for step in plan.steps:
        missing = [name for name in step.needs if states[name] not in _SUCCEEDED]
        if missing:
            result = StepResult(step, State.SKIPPED, time.time(), reason=f"it needs {', '.join(missing)}")
        else:
            progress(f"{step.name}: started")
            result = _run(step, dry_run=dry_run)
        progress(f"{step.name}: {result.state} after {result.seconds:.1f} s{_reason_suffix(result)}")
        results.append(result)
        states[step.name] = result.state
    return results


def exit_status_of(results: list[StepResult]) -> int:
    """1 if a step failed; else 3 if one needs attention or did not run; else 0."""
    states = {result.state for result in results}
    if states & _FAILED:
        return 1
    return 0 if states <= {State.DONE} else ATTENTION


def _reason_suffix(result: StepResult) -> str:
    return f": {result.reason.strip().splitlines()[-1]}" if result.reason.strip() else ""


def _run(step: Step, *, dry_run: bool) -> StepResult:
    result = StepResult(step, State.FAILED, time.time())
    started_s = time.monotonic()
    lease: Lease | None = None
    try:
        if step.lease and not dry_run:
            lease = _lease(step)
        _work(step, result, lease, dry_run=dry_run)
    except LeaseBusyError as error:
        result.state, result.reason = State.BUSY, str(error)
    except (HmsCacheError, TException, OSError) as error:
        result.reason = str(getattr(error, "message", None) or error)
    finally:
        if lease is not None:
            lease.release()
    result.seconds = time.monotonic() - started_s
    return result


def _lease(step: Step) -> Lease | None:
    """The step's lease; None for a step that has neither tables nor an output, or no metastore."""
    metastore = metastore_of(step)
    targets = targets_of(step)
    if metastore is None or not targets:
        return None
    return Lease(metastore, targets, agent_info=f"hms-cache jobs {step.name}", wait_s=step.lease_wait_s)


def _work(step: Step, result: StepResult, lease: Lease | None, *, dry_run: bool) -> None:
    process = StepProcess(step, dry_run=dry_run)
    try:
        ended = process.wait(step.time_limit_s, lambda: lease is not None and lease.lost.is_set())
    except BaseException:  # Ctrl-C, or SIGTERM to the process that runs the plan
        process.end()
        raise
    status, result.report, tail = process.result()
    result.exit_status = status
    if ended and status in (0, ATTENTION):
        result.state = State.DONE if status == 0 else State.ATTENTION
    elif ended:
        result.reason = tail if status >= 0 else f"{tail}\nits process {ending(status)}"
    elif lease is not None and lease.lost.is_set():
        result.state, result.reason = State.LEASE_LOST, "its lease ran out while no metastore answered"
    else:
        result.state, result.reason = State.TIMED_OUT, f"it took longer than {step.time_limit_s:g} s"
