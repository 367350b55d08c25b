"""Quartz expressions: when they are due next."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.metadata.quartz_schedule import parse_schedule


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server whose clocks are changed twice a year."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def due(expression: str, after: str, count: int = 1) -> list[str]:
    """The next moments of a schedule, in local time."""

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
        ("0 30 * * NOV ?", "2024-10-31 23:50:00", ["2024-11-01 00:30:00", "2024-11-01 01:30:00"]),
    ],
)
def test_the_next_moments(expression: str, after: str, expected: list[str]) -> None:
    assert due(expression, after, 2) == expected


@pytest.mark.usefixtures("in_berlin")
def test_clocks_that_are_changed() -> None:
    hourly = due("0 0 * * * ?", "2024-10-27 00:30:00", 4)
    assert hourly == ["2024-10-27 01:00:00", "2024-10-27 02:00:00", "2024-10-27 03:00:00", "2024-10-27 04:00:00"]
    nightly = due("0 30 2 * * ?", "2024-03-30 12:00:00", 2)
    assert nightly == ["2024-03-31 03:30:00", "2024-04-01 02:30:00"]


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
    ],
)
def test_what_is_no_schedule(expression: str) -> None:
    with pytest.raises(ValueError):
        parse_schedule(expression)


@given(after_s=st.integers(0, 2_000_000_000), minute=st.integers(0, 59), hour=st.integers(0, 23))
def test_a_daily_schedule_is_due_within_two_days_and_after_now(after_s: int, minute: int, hour: int) -> None:
    found_s = parse_schedule(f"0 {minute} {hour} * * ?").next_epoch_s(after_s)
    assert found_s is not None
    assert after_s < found_s <= after_s + 2 * 86_400
