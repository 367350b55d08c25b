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
class OperationsPage:
    """The page: the oldest running first, the latest finished first."""

    running: tuple[RunningNow, ...]
    last: tuple[Finished, ...]


def operations_page(context: PageContext) -> OperationsPage:
    """As of now."""
    operations = context.sources.operations
    return OperationsPage(
        tuple(RunningNow(*one) for one in operations.running()), tuple(Finished(*one) for one in operations.last())
    )
