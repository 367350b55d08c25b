"""The checker of reads with lists accepts only what the promises permit: histories written by hand."""

from __future__ import annotations

import pytest

from tests.consistency.history import Change, History, Place, TableState, Write
from tests.consistency.write_id_checker import Mode, check
from tests.consistency.write_id_history import ListRead, WriteIds

T = Place("acid", "a")
OPEN = "acid.a:1:1:1:"
COMMITTED = "acid.a:1:9223372036854775807::"
NEW_TABLE = "acid.a:0:9223372036854775807::"
TRUST, CHECK = Mode(True, 0.0), Mode(False, 0.0)

# Events: 1 created (id 7), 2 opened, 3 allocated, 4 altered, 5 committed, 6 dropped, 7 created again (id 8).
LABELS = ["w1", "w1", "w1", "w2", "w2", None, "w3"]
KEYS: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    (("w1",), ()),
    ((), ("open", "1")),
    ((), ("allocate", "1", "a")),
    (("w2",), ()),
    ((), ("commit", "1")),
    ((), ("drop_table", *T)),
    (("w3",), ()),
]


def _log() -> tuple[list[Change], WriteIds]:
    changes = [
        Change(number, {T: TableState(label)} if label is not None else {}, *keys)
        for number, (label, keys) in enumerate(zip(LABELS, KEYS, strict=True), start=1)
    ]
    ids = [{T: 7}] * 5 + [{}] + [{T: 8}]
    return changes, WriteIds(ids, {(7, 1): 1}, {1: 5}, {1})


def _history(*reads: ListRead) -> History:
    """Event n was written by server 0 from second 10·n to 10·n + 1."""
    writes = [
        Write(0, "write", 10.0 * number, 10.0 * number + 1, True, labels[0] if labels else "", key)
        for number, (labels, key) in enumerate(KEYS, start=1)
    ]
    return History(writes, list(reads))


def _read(at_s: float, answer: str | None, valid: str, table_id: int | None, server: int = 1) -> ListRead:
    return ListRead(server, "table", tuple(T), at_s, at_s + 0.1, answer, valid, table_id)


@pytest.mark.parametrize(
    ("mode", "read", "is_right"),
    [
        (TRUST, _read(45, "w2", OPEN, 7), True),
        (TRUST, _read(45, "w1", OPEN, 7), True),
        (CHECK, _read(45, "w1", OPEN, 7), False),
        (TRUST, _read(45, "w1", OPEN, None), False),
        (TRUST, _read(45, "w1", COMMITTED, 7), False),
        (TRUST, _read(45, "w2", COMMITTED, 7), True),
        (TRUST, _read(55, "w1", COMMITTED, 7), False),
        (TRUST, _read(55, "w1", OPEN, 7), True),
        (TRUST, _read(55, "w1", OPEN, 7, server=0), False),
        (TRUST, _read(65, "w2", COMMITTED, 7), True),
        (TRUST, _read(65, None, COMMITTED, 7), True),
        (TRUST, _read(75, "w2", NEW_TABLE, 8), False),
        (TRUST, _read(75, None, NEW_TABLE, 8), False),
        (TRUST, _read(75, "w3", NEW_TABLE, 8), True),
        (TRUST, _read(75, "w9", NEW_TABLE, 8), False),
    ],
    ids=[
        "the present",
        "older, as the list permits",
        "older, where every read is checked",
        "older, without a table id",
        "own write id valid, its write not shown",
        "own write id valid, its write shown",
        "a committed write not shown",
        "a write that the list does not permit to rely on, not shown",
        "below what the server itself has written",
        "the dropped table to its reader",
        "that it was dropped",
        "another table of the name",
        "that there is none, to one who saw it",
        "the new table",
        "what never was",
    ],
)
def test_one_read(mode: Mode, read: ListRead, is_right: bool) -> None:
    changes, write_ids = _log()
    found = check(_history(read), changes, write_ids, mode)
    assert (not found) is is_right, found


def test_what_a_server_has_shown_binds_it() -> None:
    changes, write_ids = _log()
    later, earlier = _read(45, "w2", OPEN, 7), _read(46, "w1", OPEN, 7)
    assert [one.promise for one in check(_history(later, earlier), changes, write_ids, TRUST)] == ["P3"]
    elsewhere = _read(46, "w1", OPEN, 7, server=2)
    assert not check(_history(later, elsewhere), changes, write_ids, TRUST)
