"""The checker detects what it is for: histories written by hand, each with one fault or none."""

from __future__ import annotations

import pytest

from tests.consistency.checker import check
from tests.consistency.history import Change, History, Place, Read, State, TableState, Write

INF = float("inf")
T, U = Place("d", "t"), Place("d", "u")
STATES: list[State] = [
    {T: TableState("t1")},
    {T: TableState("t1"), U: TableState("u1")},
    {T: TableState("t2"), U: TableState("u1")},
    {T: TableState("t2"), U: TableState("u2")},
    {U: TableState("u2")},
]
CHANGES = [
    Change(1, STATES[0], ("t1",), ()),
    Change(2, STATES[1], ("u1",), ()),
    Change(3, STATES[2], ("t2",), ()),
    Change(4, STATES[3], ("u2",), ()),
    Change(5, STATES[4], (), ("drop_table", "d", "t")),
]


def writes() -> list[Write]:
    """Event n was written through server 0 between second 10 n and 10 n + 2."""
    made = [
        Write(0, "alter", 10.0 * n, 10.0 * n + 2, True, label) for n, label in enumerate(("t1", "u1", "t2", "u2"), 1)
    ]
    return [*made, Write(0, "drop", 50, 52, True, key=("drop_table", "d", "t"))]


def read(server: int, start_s: float, end_s: float, answer: object, table: str = "t") -> Read:
    return Read(server, "table", ("d", table), start_s, end_s, answer)


def promises(*reads: Read, max_staleness_s: float = 0.0) -> list[str]:
    return [one.promise for one in check(History(writes(), list(reads)), CHANGES, max_staleness_s)]


@pytest.mark.parametrize("server", [0, 1])
@pytest.mark.parametrize(
    ("start_s", "end_s", "answer", "right"),
    [
        (15, 16, "t1", True),
        (31, 31.5, "t1", True),  # both are correct while it is written
        (31, 31.5, "t2", True),
        (32.1, 33, "t1", False),
        (15, 29.9, "t2", False),  # before it began
        (5, 60, None, True),
        (53, 54, None, True),
        (53, 54, "t2", False),
        (35, 36, None, False),
        (15, 16, "never", False),
    ],
)
def test_one_read_of_one_table(start_s: float, end_s: float, answer: str, right: bool, server: int) -> None:
    assert (promises(read(server, start_s, end_s, answer)) == []) is right


@pytest.mark.parametrize(
    ("max_staleness_s", "server", "found"),
    [(0, 1, ["P1"]), (2, 1, ["P1"]), (3, 1, []), (INF, 1, []), (3, 0, ["P4"]), (INF, 0, ["P4"])],
)
def test_an_old_answer(max_staleness_s: float, server: int, found: list[str]) -> None:
    assert promises(read(server, 34.5, 35, "t1"), max_staleness_s=max_staleness_s) == found


def test_time_does_not_go_back_across_objects_of_one_server() -> None:
    shown_new, then_old = read(1, 45, 46, "u2", "u"), read(1, 47, 48, "t1")
    assert promises(shown_new, then_old, max_staleness_s=INF) == ["P3"]
    assert promises(read(0, 45, 46, "u2", "u"), read(1, 47, 48, "t1"), max_staleness_s=INF) == [], "another server"
    assert promises(read(1, 45, 47.5, "u2", "u"), then_old, max_staleness_s=INF) == [], "at the same time"


def test_without_staleness_servers_agree_while_a_write_is_on_its_way() -> None:
    """Event 3 is written from 30 to 32: once one reader has seen it, all readers must."""
    assert promises(read(0, 30.1, 30.2, "t2"), read(1, 30.3, 30.4, "t1")) == ["P3"]
    assert promises(read(0, 30.1, 30.2, "t1"), read(1, 30.3, 30.4, "t2")) == []


def test_one_answer_shows_one_moment() -> None:
    def both(answer: tuple[tuple[str, str], ...]) -> Read:
        return Read(0, "objects", ("d", ("t", "u")), 25, 45, answer)

    assert promises(both((("t", "t2"), ("u", "u1")))) == []
    assert promises(both((("t", "t1"), ("u", "u2")))) == ["P6"]


def test_every_acknowledged_write_has_its_event_and_no_other_has_one() -> None:
    history = History([*writes(), Write(1, "alter", 1, 2, True, "lost")])
    assert [one.promise for one in check(history, CHANGES, 0)] == ["P10"]
    refused = writes()
    refused[2].done = False
    assert [one.promise for one in check(History(refused), CHANGES, 0)] == ["P10"]
    assert [one.promise for one in check(History(writes()[:4]), CHANGES, 0)] == ["P10"]


@pytest.mark.parametrize(
    ("opened", "ended", "found"),
    [
        (("open", "9"), ("abort", "9"), []),
        (("open", "9"), ("commit", "9"), ["P10", "P10"]),
        (("open", "9"), ("abort", "8"), ["P10", "P10"]),
        (("open", "7"), ("abort", "7"), ["P10"]),
    ],
)
def test_a_transaction_that_nobody_was_told_of_was_given_up(
    opened: tuple[str, str], ended: tuple[str, str], found: list[str]
) -> None:
    """A transaction that a client knows of ends when the client says so."""
    more = [Change(6, STATES[4], (), opened), Change(7, STATES[4], (), ended)]
    told = Write(0, "open", 60, 62, True, key=("open", "7"))
    history = History([*writes(), told] if opened == told.key else writes())
    assert [one.promise for one in check(history, [*CHANGES, *more], 0)] == found
