"""Sends a recording to two metastores, or to one for comparison with the recorded answers, and reports the
differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from sqlalchemy import Engine, NullPool, create_engine

from tests.recordings import rows
from tests.recordings.answers import answer, difference
from tests.recordings.metastores import Metastore
from tests.recordings.recording import PLACE, RecordedCall
from tests.recordings.replay import Replay, read_arguments

ROWS_EVERY = 25
"""Calls between two looks at the rows: each reads the whole database on both sides."""


@dataclass
class Report:
    """The result of one recording."""

    calls: int = 0
    methods: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    """Exceptions that both sides answered."""
    differences: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    looks_at_rows: int = 0

    def __str__(self) -> str:
        return f"{len(self.differences)} differences in {self.calls} calls\n" + "\n".join(self.differences[:40])


def with_recorded_answers(calls: Sequence[RecordedCall], metastore: Metastore) -> Report:
    """Its answers beside the recorded ones."""
    report, place = Report(), PLACE.decode()
    with Replay(metastore) as replay:
        for number, call in enumerate(calls):
            request, reply = replay.exchange(call)
            if request:
                _note(report, number, call, call.reply, reply, replay, (place, str(metastore.root)))
        report.differences += replay.id_faults
    return report


def side_by_side(calls: Sequence[RecordedCall], java: Metastore, ours: Metastore) -> Report:
    """Compares both metastores' answers, and every `ROWS_EVERY` calls the contents of their databases."""
    report, told = Report(), set[str]()
    with ExitStack() as stack:
        java_replay, our_replay = (stack.enter_context(Replay(each)) for each in (java, ours))
        engines = [create_engine(each.database_url, poolclass=NullPool) for each in (java, ours)]
        for number, call in enumerate(calls):
            request, expected = java_replay.exchange(call)
            _, found = our_replay.exchange(call)
            if not request:
                continue
            _note(report, number, call, expected, found, our_replay, (str(java.root), str(ours.root)))
            if number % ROWS_EVERY == ROWS_EVERY - 1 or call is calls[-1]:
                report.looks_at_rows += 1
                for line in _rows_that_differ(engines, java, ours):
                    if line not in told:  # and not again while it remains
                        told.add(line)
                        report.differences.append(f"after call {number}, {call.method}: rows of {line[:2500]}")
        report.differences += [*java_replay.id_faults, *our_replay.id_faults]
    return report


def _rows_that_differ(engines: Sequence[Engine], java: Metastore, ours: Metastore) -> list[str]:
    return rows.differences(rows.rows(engines[0], str(java.root)), rows.rows(engines[1], str(ours.root)))


def _note(
    report: Report,
    number: int,
    call: RecordedCall,
    expected: bytes,
    found: bytes,
    replay: Replay,
    roots: tuple[str, str],
) -> None:
    report.calls += 1
    report.methods[call.method] += 1
    java = answer(replay.ids.in_reply(call.method, expected))
    differs, reasons = difference(call, read_arguments(call), java, answer(found), roots[1], roots[0])
    report.reasons += reasons
    if differs:
        report.differences.append(f"call {number}, {differs}")
