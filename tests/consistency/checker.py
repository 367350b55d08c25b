"""A linearizability checker: is there, for every read, a position of the event log at which it is right?

The log is the one order of all writes (each is committed under the lock of one row), so a history is explained if
every read can be given a position such that

* the answer is what the catalog was after that event (P1; P6, since absence and sets are answers like any other),
* the position is not above what can have been committed when the answer came, and not below what must have been
  committed `max_staleness` before the read was sent (P1),
* it is not below any own write of the server that was acknowledged before the read was sent (P4), and
* not below the position of a read through the same server that was answered before this one was sent (P3). With
  `max_staleness` 0 this holds for reads through different servers, too: all of them show the present (P1, P4).

Positions are given out in the order in which reads were sent, each the lowest possible: if that fails, nothing fits.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from tests.consistency.history import Change, History, Read, Write, shown

NEVER_S = float("inf")

OwnWrites = dict[int | str, tuple[list[float], list[int]]]
"""By server: times of acknowledgement, ascending, and the highest event acknowledged by then."""


@dataclass(frozen=True, slots=True)
class Violation:
    """What cannot be explained, in words."""

    promise: str
    text: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.text}"


@dataclass(frozen=True, slots=True)
class Commits:
    """When each event can have been committed, according to the clients' clocks. Index 0 stands for event 1."""

    not_before_s: Sequence[float]
    not_after_s: Sequence[float]

    def last_possible(self, time_s: float) -> int:
        """The last event that can have been committed by then."""
        return bisect_right(self.not_before_s, time_s)

    def last_certain(self, time_s: float) -> int:
        """Returns the last event that must have been committed by then."""
        return bisect_left(self.not_after_s, time_s)


def match_writes(history: History, changes: Sequence[Change]) -> tuple[dict[int, Write], list[Violation]]:
    """Returns writes by event id. P10: each acknowledged write has an event, and no refused one has."""
    by_label = {write.label: write for write in history.writes if write.label}
    drops: dict[tuple[str, ...], list[Write]] = {}
    for write in sorted((one for one in history.writes if one.key and one.done), key=lambda one: one.started_s):
        drops.setdefault(write.key, []).append(write)
    found: dict[int, Write] = {}
    seen: set[int] = set()
    violations: list[Violation] = []
    given_up = _given_up(changes, set(drops))
    for change in changes:
        write: Write | None = None
        if change.key:
            waiting = drops.get(change.key)
            write = waiting.pop(0) if waiting else None
        elif change.labels:
            write = by_label.get(change.labels[0])
        if write is None:
            if change.key and change.key not in given_up:
                violations.append(Violation("P10", f"event {change.event_id} {change.key} is nobody's"))
            continue
        if not write.done:
            violations.append(Violation("P10", f"event {change.event_id} is of a write that was refused: {write}"))
        found[change.event_id] = write
        seen.add(id(write))
    for write in history.writes:
        if write.done and id(write) not in seen:
            violations.append(Violation("P10", f"a write that was acknowledged has no event: {write}"))
    return found, violations


def _given_up(changes: Sequence[Change], told: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Returns keys of the opening and the end of transactions of which no client knows; both must exist.

    If a server takes longer than `transactions.open_timeout_ms` to open a transaction, for example because it was
    stopped meanwhile, it ends it at once and opens another one.
    """
    opened = {change.key[1:] for change in changes if change.key[:1] == ("open",)}
    ended = {change.key[1:] for change in changes if change.key[:1] == ("abort",)}
    ids = {one for one in opened & ended if ("open", *one) not in told and ("abort", *one) not in told}
    return {(how, *one) for one in ids for how in ("open", "abort")}


def commit_times(writes: dict[int, Write], count: int) -> Commits:
    """Bounds the times of events, which are committed in the order of their ids: each bounds its neighbours."""
    lower, upper = [-NEVER_S] * count, [-NEVER_S] * count
    highest = -NEVER_S
    for event_id in range(1, count + 1):
        write = writes.get(event_id)
        highest = max(highest, write.started_s if write is not None else -NEVER_S)
        lower[event_id - 1] = highest
    lowest = NEVER_S
    for event_id in range(count, 0, -1):
        write = writes.get(event_id)
        if write is not None:
            lowest = min(lowest, write.ended_s)
        elif lowest == NEVER_S:
            lowest = -NEVER_S  # not part of the run: it was there before
        upper[event_id - 1] = lowest
    # Events without a write of the run were before its first one.
    first = min(writes, default=count + 1)
    for event_id in range(1, first):
        upper[event_id - 1] = -NEVER_S
    return Commits(lower, upper)


def check(history: History, changes: Sequence[Change], max_staleness_s: float) -> list[Violation]:
    """Returns everything that cannot be explained; empty if the history satisfies P1, P3, P4, P6 and P10."""
    writes, violations = match_writes(history, changes)
    commits = commit_times(writes, len(changes))
    own = own_writes(writes)
    groups: dict[int, list[Read]] = {}
    for read in history.reads:
        groups.setdefault(0 if max_staleness_s == 0 else read.server, []).append(read)
    for reads in groups.values():
        violations.extend(_check_group(reads, changes, commits, own, max_staleness_s))
    return violations


def own_writes(writes: dict[int, Write]) -> OwnWrites:
    """What each server has acknowledged."""
    by_server: dict[int | str, list[tuple[float, int]]] = {}
    for event_id, write in writes.items():
        by_server.setdefault(write.server, []).append((write.ended_s, event_id))
    result: OwnWrites = {}
    for server, pairs in by_server.items():
        times: list[float] = []
        highest: list[int] = []
        for time_s, event_id in sorted(pairs):
            times.append(time_s)
            highest.append(max(event_id, highest[-1] if highest else 0))
        result[server] = (times, highest)
    return result


def _check_group(
    reads: Sequence[Read],
    changes: Sequence[Change],
    commits: Commits,
    own: OwnWrites,
    max_staleness_s: float,
) -> list[Violation]:
    violations: list[Violation] = []
    answered: list[tuple[float, int]] = []
    floor = 0
    for read in sorted(reads, key=lambda one: one.started_s):
        while answered and answered[0][0] < read.started_s:
            floor = max(floor, heapq.heappop(answered)[1])
        bounded = commits.last_certain(read.started_s - max_staleness_s) if max_staleness_s != NEVER_S else 0
        times, highest = own.get(read.server, ([], []))
        acknowledged = bisect_left(times, read.started_s)
        own_floor = highest[acknowledged - 1] if acknowledged else 0
        lowest = max(bounded, own_floor, floor)
        latest = commits.last_possible(read.ended_s)
        position = _first_fit(read, changes, lowest, latest)
        if position is None:
            violations.append(_explain(read, changes, bounded, own_floor, floor, latest))
            continue
        heapq.heappush(answered, (read.ended_s, position))
    return violations


def _first_fit(read: Read, changes: Sequence[Change], lowest: int, latest: int) -> int | None:
    previous = None
    for position in range(lowest, latest + 1):
        state = changes[position - 1].state if position else {}
        if state is previous:
            continue
        previous = state
        if shown(state, read.kind, read.arguments) == read.answer:
            return position
    return None


def _explain(read: Read, changes: Sequence[Change], bounded: int, own_floor: int, floor: int, latest: int) -> Violation:
    older = _first_fit(read, changes, 0, max(bounded, own_floor, floor) - 1)
    expected = [
        shown(changes[position - 1].state if position else {}, read.kind, read.arguments)
        for position in range(max(bounded, own_floor, floor), min(latest, max(bounded, own_floor, floor) + 3) + 1)
    ]
    if older is None:
        promise, reason = "P6", "the catalog never was so"
    elif own_floor > max(bounded, floor):
        promise, reason = "P4", f"an own write, event {own_floor}, had been acknowledged"
    elif floor > bounded:
        promise, reason = "P3", f"event {floor} had been shown before"
    else:
        promise, reason = "P1", f"event {bounded} was too old"
    return Violation(promise, f"{reason} (fits event {older}, possible up to {latest}): {read}, expected {expected}")
