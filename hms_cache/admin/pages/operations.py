"""``/operations``: what runs now and ran last, of administrators' commands and of calls that change the catalog."""

from __future__ import annotations

from dataclasses import dataclass

from hms_cache.admin.pages.context import PageContext


@dataclass(frozen=True, slots=True)
class RunningNow:
    """An operation on its way."""

    identifier: int
    kind: str
    name: str
    subject: str
    who: str
    started_at_s: float
    running_s: float
    done: int
    total: int | None
    note: str


@dataclass(frozen=True, slots=True)
class Finished:
    """An operation that ended."""

    identifier: int
    kind: str
    name: str
    subject: str
    who: str
    started_at_s: float
    duration_s: float
    outcome: str


@dataclass(frozen=True, slots=True)
class LaneNow:
    """Calls of one kind, which have threads of their own."""

    lane: str
    threads: int
    running: int
    waiting: int
    most_waiting: int
    oldest_wait_s: float
    stuck: int
    refused: int
    begun: int
    mean_wait_s: float


@dataclass(frozen=True, slots=True)
class OperationsPage:
    """The page: the oldest running first, the latest finished first."""

    running: tuple[RunningNow, ...]
    last: tuple[Finished, ...]
    lanes: tuple[LaneNow, ...]


def operations_page(context: PageContext) -> OperationsPage:
    """As of now."""
    operations = context.sources.operations
    return OperationsPage(
        tuple(RunningNow(*one) for one in operations.running()),
        tuple(Finished(*one) for one in operations.last()),
        tuple(LaneNow(*one[:-1], one.waited_s / max(one.begun, 1)) for one in context.sources.lane_loads()),
    )
