"""Quartz expressions: their next execution times."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.metadata.quartz_schedule import parse_schedule


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server whose time zone has daylight saving time."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def due(expression: str, after: str, count: int = 1) -> list[str]:
    """The next execution times of a schedule, in local time."""

    def moments() -> Iterator[str]:
        now: int | None = int(datetime.fromisoformat(after).timestamp())
        schedule = parse_schedule(expression)
        while now is not None:
            now = schedule.next_epoch_s(now)
            if now is not None:
                yield datetime.fromtimestamp(now).isoformat(" ")

    return list(islice(moments(), count))


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("0 0 0 * * ? *", "2024-02-28 00:00:00", ["2024-02-29 00:00:00", "2024-03-01 00:00:00"]),
        ("0 0/20 * * * ?", "2024-01-01 10:20:00", ["2024-01-01 10:40:00", "2024-01-01 11:00:00"]),
        ("*/30 5 8-9 * * ?", "2024-01-01 08:05:29", ["2024-01-01 08:05:30", "2024-01-01 09:05:00"]),
        ("0 15 10 ? * MON-WED", "2024-05-07 10:15:00", ["2024-05-08 10:15:00", "2024-05-13 10:15:00"]),
        ("0 0 12 ? * 7,1", "2024-05-04 11:00:00", ["2024-05-04 12:00:00", "2024-05-05 12:00:00"]),
        ("0 0 12 ? * FRI-SUN", "2024-05-05 12:00:00", ["2024-05-10 12:00:00", "2024-05-11 12:00:00"]),
        ("0 0 0 L * ?", "2023-01-31 00:00:00", ["2023-02-28 00:00:00", "2023-03-31 00:00:00"]),
        ("0 0 0 L-30 * ?", "2023-01-01 00:00:00", ["2023-03-01 00:00:00", "2023-05-01 00:00:00"]),
        ("0 0 0 LW * ?", "2024-03-01 00:00:00", ["2024-03-29 00:00:00", "2024-04-30 00:00:00"]),
        ("0 0 0 1W * ?", "2024-05-31 00:00:00", ["2024-06-03 00:00:00", "2024-07-01 00:00:00"]),
        ("0 0 0 15W JUN ?", "2024-05-31 00:00:00", ["2024-06-14 00:00:00", "2025-06-16 00:00:00"]),
        ("0 0 0 ? * 6L", "2024-05-30 00:00:00", ["2024-05-31 00:00:00", "2024-06-28 00:00:00"]),
        ("0 0 0 ? * FRI#5", "2024-05-01 00:00:00", ["2024-05-31 00:00:00", "2024-08-30 00:00:00"]),
        ("0 0 0 ? * L", "2024-05-01 00:00:00", ["2024-05-04 00:00:00", "2024-05-11 00:00:00"]),
        ("0 0 0 30 2 ?", "2024-05-01 00:00:00", []),
        ("0 0 0 29 FEB ? 2024-2029", "2024-05-01 00:00:00", ["2028-02-29 00:00:00"]),
        ("0 0 0 1 1 ? 2020", "2024-05-01 00:00:00", []),
        ("0 0 0 1,15W * ?", "2024-05-20 00:00:00", ["2024-06-01 00:00:00", "2024-06-14 00:00:00"]),
        ("0 0 0 1W,30W * ?", "2024-06-01 00:00:00", ["2024-06-03 00:00:00", "2024-06-28 00:00:00"]),
        ("0 0 0 15,L * ?", "2024-02-01 00:00:00", ["2024-02-15 00:00:00", "2024-02-29 00:00:00"]),
        ("0 0 0 LW,L-3,2-3 * ?", "2024-06-02 00:00:00", ["2024-06-03 00:00:00", "2024-06-27 00:00:00"]),
        ("0 0 0 LW,1/10 * ?", "2024-06-21 00:00:00", ["2024-06-28 00:00:00", "2024-07-01 00:00:00"]),
        ("0 0 0 ? * MON#1,WED#3", "2024-05-01 00:00:00", ["2024-05-06 00:00:00", "2024-05-15 00:00:00"]),
        ("0 0 0 ? * 2L,6L", "2024-05-01 00:00:00", ["2024-05-27 00:00:00", "2024-05-31 00:00:00"]),
        ("0 0 0 ? * L,MON-TUE,FRI#2", "2024-05-07 00:00:00", ["2024-05-10 00:00:00", "2024-05-11 00:00:00"]),
        ("0 /20 0 ? * SUN", "2024-05-05 00:10:00", ["2024-05-05 00:20:00", "2024-05-05 00:40:00"]),
        ("0 30 * * NOV ?", "2024-10-31 23:50:00", ["2024-11-01 00:30:00", "2024-11-01 01:30:00"]),
    ],
)
def test_the_next_moments(expression: str, after: str, expected: list[str]) -> None:
    assert due(expression, after, 2) == expected


@pytest.mark.usefixtures("in_berlin")
@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        # At 01:00Z, two o'clock occurs for the second time. An hourly schedule runs.
        ("0 0 * * * ?", "2024-10-26 23:30", ["27 00:00", "27 01:00", "27 02:00", "27 03:00"]),
        ("0 0/20 * * * ?", "2024-10-27 00:20", ["27 00:40", "27 01:00", "27 01:20", "27 01:40", "27 02:00"]),
        ("0 20/20 * * * ?", "2024-10-27 01:20", ["27 01:40", "27 02:20"]),
        ("0 0 * 28 10 ?", "2024-10-27 00:30", ["27 23:00", "28 00:00"]),
        # A schedule at certain hours runs once, whatever the clock shows when it is evaluated.
        ("0 30 2 * * ?", "2024-10-26 22:00", ["27 00:30", "28 01:30"]),
        ("0 30 2 * * ?", "2024-10-27 00:30", ["28 01:30"]),
        ("0 30 2 * * ?", "2024-10-27 01:10", ["28 01:30"]),
        ("0 0 2 * * ?", "2024-10-27 00:00", ["28 01:00"]),
        # At 01:00Z, three o'clock follows one. Nothing is omitted, and nothing is due at a time that does not occur.
        ("0 30 2 * * ?", "2024-03-30 12:00", ["31 01:30", "01 00:30"]),
        ("0 0/30 * * * ?", "2024-03-31 00:10", ["31 00:30", "31 01:00", "31 01:30"]),
        ("0 30 * 31 3 ?", "2024-03-31 00:45", ["31 01:30", "31 02:30"]),
    ],
)
def test_clocks_that_are_changed(expression: str, after: str, expected: list[str]) -> None:
    now: int | None = int(datetime.fromisoformat(f"{after}Z").timestamp())
    found: list[str] = []
    while now is not None and len(found) < len(expected):
        now = parse_schedule(expression).next_epoch_s(now)
        if now is not None:
            found.append(datetime.fromtimestamp(now, UTC).strftime("%d %H:%M"))
    assert found == expected


@pytest.mark.usefixtures("in_berlin")
@given(
    after_s=st.sampled_from([1_711_846_800, 1_729_990_800]).flatmap(lambda s: st.integers(s - 20_000, s + 20_000)),
    step=st.sampled_from([1, 7, 20, 30]),
)
def test_a_schedule_of_every_hour_is_due_when_the_clock_shows_it(after_s: int, step: int) -> None:
    """Each second is examined, around both changes of a year."""
    shown = (moment for moment in range(after_s + 1, after_s + 8_000) if time.localtime(moment).tm_sec == 0)
    expected = next(moment for moment in shown if time.localtime(moment).tm_min % step == 0)
    assert parse_schedule(f"0 */{step} * * * ?").next_epoch_s(after_s) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "0 0 0 * *",
        "0 0 0 * * *",
        "0 0 0 ? * ?",
        "60 0 0 * * ?",
        "0 0 24 * * ?",
        "0 0 0 0 * ?",
        "0 0 0 * 13 ?",
        "0 0 0 ? * 8",
        "0 0 0 ? * XYZ",
        "0 x 0 * * ?",
        "0 0/0 0 * * ?",
        "0 0 0 * * ? 1969",
        "0 0 0 ? * 2#6",
        "0 0 0 32W * ?",
        "0 0 0 1,32W * ?",
        "0 0 0 1,,L * ?",
        "0 0 0 W,L * ?",
        "0 0 0 ? * MON#1,WED#6",
        "0 0 0 ? * MON#1,",
        "0 0 0 1 1 ? 2026-2024",
        "0 / 0 * * ?",
    ],
)
def test_what_is_no_schedule(expression: str) -> None:
    with pytest.raises(ValueError):
        parse_schedule(expression)


def test_a_schedule_that_cannot_be_stored_is_not_computed() -> None:
    fits = "0 " + ",".join(["0-59"] * 49) + " 0 * * ?"
    assert parse_schedule(fits).minutes == tuple(range(60))
    with pytest.raises(ValueError, match="256 characters at most"):
        parse_schedule("0 " + ",".join(["0-59"] * 50) + " 0 * * ?")


@given(after_s=st.integers(0, 2_000_000_000), minute=st.integers(0, 59), hour=st.integers(0, 23))
def test_a_daily_schedule_is_due_within_two_days_and_after_now(after_s: int, minute: int, hour: int) -> None:
    found_s = parse_schedule(f"0 {minute} {hour} * * ?").next_epoch_s(after_s)
    assert found_s is not None
    assert after_s < found_s <= after_s + 2 * 86_400
