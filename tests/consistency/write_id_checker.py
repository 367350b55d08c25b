"""Is there, for every read with a write-id list, a position of the event log at which it is right?

As in `checker`; but memory that the list covers may answer below the present, where the mode allows it: at any position
at which every transaction whose write id is valid in the list had ended (P2, P5), and at which the name was that of
the table with the id of the request (P2). Not below what the server has shown or taken before (P3, P4).
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from tests.consistency.checker import Commits, OwnWrites, Violation, commit_times, match_writes, own_writes
from tests.consistency.history import Change, History, Read, shown
from tests.consistency.write_id_history import ListRead, WriteIds

NEVER_S = float("inf")


@dataclass(frozen=True, slots=True)
class Mode:
    """The servers' settings."""

    trusts: bool
    """`write_id_reads` = trust."""
    max_staleness_s: float

    def staleness_s(self, read: Read) -> float:
        """How old an answer may be."""
        if self.trusts and isinstance(read, ListRead) and read.table_id is not None:
            return NEVER_S
        return self.max_staleness_s


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Positions that an answer may have: from `lowest`; below `present` only where the list allows it."""

    lowest: int
    present: int
    latest: int


def check(history: History, changes: Sequence[Change], write_ids: WriteIds, mode: Mode) -> list[Violation]:
    """Returns everything that cannot be explained; empty if the history satisfies P1 to P6 and P10."""
    writes, violations = match_writes(history, changes)
    commits = commit_times(writes, len(changes))
    judge = _Judge(changes, write_ids, mode, commits, own_writes(writes))
    for server in sorted({read.server for read in history.reads}):
        violations.extend(judge.group([read for read in history.reads if read.server == server]))
    # A reader that sees the present sees it through any server.
    violations.extend(judge.group([read for read in history.reads if mode.staleness_s(read) == 0]))
    return violations


@dataclass(frozen=True, slots=True)
class _Judge:
    changes: Sequence[Change]
    write_ids: WriteIds
    mode: Mode
    commits: Commits
    own: OwnWrites

    def group(self, reads: Sequence[Read]) -> list[Violation]:
        violations: list[Violation] = []
        answered: list[tuple[float, int]] = []
        floor = 0
        for read in sorted(reads, key=lambda one: one.started_s):
            while answered and answered[0][0] < read.started_s:
                floor = max(floor, heapq.heappop(answered)[1])
            bounds = self._bounds(read, floor)
            position = self._first_fit(read, bounds)
            if position is None:
                violations.append(self._explain(read, bounds, floor))
                continue
            heapq.heappush(answered, (read.ended_s, position))
        return violations

    def _bounds(self, read: Read, floor: int) -> _Bounds:
        staleness_s = self.mode.staleness_s(read)
        bounded = self.commits.last_certain(read.started_s - staleness_s) if staleness_s != NEVER_S else 0
        times, highest = self.own.get(read.server, ([], []))
        acknowledged = bisect_left(times, read.started_s)
        own_floor = highest[acknowledged - 1] if acknowledged else 0
        present = self.commits.last_certain(read.started_s)
        return _Bounds(max(bounded, own_floor, floor), present, self.commits.last_possible(read.ended_s))

    def _first_fit(self, read: Read, bounds: _Bounds) -> int | None:
        lowest = bounds.lowest
        if isinstance(read, ListRead):
            lowest = max(lowest, min(bounds.present, self.write_ids.ended(read.valid, read.table_id)))
        fits: dict[int, bool] = {}
        for position in range(lowest, bounds.latest + 1):
            if not self._is_permitted(read, position, bounds):
                continue
            state = self.changes[position - 1].state if position else {}
            if id(state) not in fits:
                fits[id(state)] = shown(state, read.kind, read.arguments) == read.answer
            if fits[id(state)]:
                return position
        return None

    def _is_permitted(self, read: Read, position: int, bounds: _Bounds) -> bool:
        """Whether memory, or from the present on the database, may have returned this position."""
        if position >= bounds.present or not isinstance(read, ListRead) or read.table_id is None:
            return True
        return self.write_ids.table_id(position, read.place) == read.table_id

    def _explain(self, read: Read, bounds: _Bounds, floor: int) -> Violation:
        anywhere = self._first_fit_anywhere(read, bounds.latest)
        promise = "P6" if anywhere is None else "P2" if isinstance(read, ListRead) else "P1"
        if anywhere is not None and anywhere < floor and floor == bounds.lowest:
            promise = "P3"
        return Violation(promise, f"fits event {anywhere} at best, possible {bounds}: {read}")

    def _first_fit_anywhere(self, read: Read, latest: int) -> int | None:
        for position in range(latest, -1, -1):
            if shown(self.changes[position - 1].state if position else {}, read.kind, read.arguments) == read.answer:
                return position
        return None
