"""Schedules of scheduled queries: Quartz's cron expressions, which Hive's ``create scheduled query`` writes.

Six or seven fields: second, minute, hour, day of month, month, day of week, year. Days of the week are numbered from 1
(Sunday), and exactly one of the two day fields is ``?``. Facts: the Quartz documentation; cron-utils, which Hive uses.
cron-utils accepts lists that contain ``L``, ``W`` and ``#``, which Quartz's documentation forbids, so such schedules
are stored.

When clocks change, a schedule with certain hours is due once a day: a time in the skipped hour is due that much later,
and of a repeated hour only the first occurrence counts. A schedule for every hour follows elapsed time: a skipped time
is not due, and a repeated hour is due twice.
"""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta

from hms_cache.values import frozen

_FIRST_YEAR, _LAST_YEAR = 1970, 2099
"""Quartz's limits."""

LONGEST_SCHEDULE = 256
"""Length of Hive's column. Expanding a list of as many ranges as fit into a message would take minutes before the
database refuses it."""

_MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_WEEKDAYS = {name: number for number, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"), 1)}

_HOURS_OF_A_DAY = 24
_LONGEST_SHIFT_S = 3 * 3600
"""No clock is changed by more than this, and none twice within this time."""

_NTH_WEEKDAY = re.compile(r"([A-Z0-9]+)#([1-5])")
_LAST_WEEKDAY = re.compile(r"([A-Z0-9]+)L")
_BEFORE_LAST_DAY = re.compile(r"L-(\d+)")
_NEAR_DAY = re.compile(r"(\d+)W")

DayRule = Callable[[int, int], set[int]]
"""Days in a (year, month)."""


@frozen
class QuartzSchedule:
    """A parsed expression. Times are in the server's own time zone, as in Hive."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: DayRule
    months: tuple[int, ...]
    years: tuple[int, ...]

    def next_epoch_s(self, after_s: int) -> int | None:
        """The first time after this one, in epoch seconds; None if there is none."""
        is_hourly = len(self.hours) == _HOURS_OF_A_DAY
        if is_hourly and (soon_s := self._due_soon_s(after_s + 1)) is not None:
            return soon_s
        for local_time in self._times_from(datetime.fromtimestamp(after_s + 1)):
            # In a repeated hour this is the first occurrence. A skipped time is that much later on the changed clock.
            found_s = int(local_time.timestamp())
            if found_s > after_s and not (is_hourly and datetime.fromtimestamp(found_s) != local_time):
                return found_s
        return None

    def _due_soon_s(self, start_s: int) -> int | None:
        """The first matching local time from this one on, before a change of clocks or soon after it."""
        changed_s = _change_of_clocks_s(start_s)
        shown = datetime.fromtimestamp(start_s)
        local_time = next(self._times_from(shown), None)
        if local_time is not None:
            found_s = start_s + int((local_time - shown).total_seconds())
            if found_s < (start_s + _LONGEST_SHIFT_S if changed_s is None else changed_s):
                return found_s
        return None if changed_s is None else self._due_soon_s(changed_s)

    def _times_from(self, start: datetime) -> Iterator[datetime]:
        for day in self._dates_from(start.date()):
            for hour in self.hours:
                for minute in self.minutes:
                    if day == start.date() and (hour, minute) < (start.hour, start.minute):
                        continue
                    for second in self.seconds:
                        local_time = datetime(day.year, day.month, day.day, hour, minute, second)
                        if local_time >= start:
                            yield local_time

    def _dates_from(self, start: date) -> Iterator[date]:
        for year in self.years:
            if year < start.year:
                continue
            for month in self.months:
                if (year, month) < (start.year, start.month):
                    continue
                for day in sorted(self.days(year, month)):
                    found = date(year, month, day)
                    if found >= start:
                        yield found


def parse_schedule(text: str) -> QuartzSchedule:
    """:raises ValueError: it is no Quartz expression."""
    if len(text) > LONGEST_SCHEDULE:
        raise ValueError(f"a schedule has {LONGEST_SCHEDULE} characters at most, this has {len(text)}")
    fields = text.upper().split()
    if len(fields) not in (6, 7):
        raise ValueError(f"a schedule has 6 or 7 fields, this has {len(fields)}")
    seconds, minutes, hours, day, month, weekday = fields[:6]
    if (day == "?") == (weekday == "?"):
        raise ValueError("exactly one of day of month and day of week must be ?")
    return QuartzSchedule(
        seconds=_values(seconds, 0, 59),
        minutes=_values(minutes, 0, 59),
        hours=_values(hours, 0, 23),
        days=_days_of_month(day) if weekday == "?" else _days_of_week(weekday),
        months=_values(month, 1, 12, _MONTHS),
        years=_values(fields[6] if len(fields) == 7 else "*", _FIRST_YEAR, _LAST_YEAR),
    )


def _values(text: str, lowest: int, highest: int, names: dict[str, int] | None = None) -> tuple[int, ...]:
    """All numbers that a field represents (``*``, numbers, ranges, steps and lists of these), ascending.

    ``*/5`` may also be written as ``/5``.
    """
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, 1, highest, None) if slash else 1
        first_text, dash, last_text = span.partition("-")
        if span == "*" or (slash and not span):
            first, last = lowest, highest
        else:
            first = _number(first_text, lowest, highest, names)
            last = _number(last_text, lowest, highest, names) if dash else highest if slash else first
        if first > last and highest == _LAST_YEAR:
            raise ValueError(f"{span} is not a range of years")
        if first > last:
            # FRI-MON wraps around.
            last += highest - lowest + 1
        found.update(lowest + (value - lowest) % (highest - lowest + 1) for value in range(first, last + 1, step))
    return tuple(sorted(found))


def _number(text: str, lowest: int, highest: int, names: dict[str, int] | None) -> int:
    value = (names or {}).get(text)
    if value is None:
        if not (text.isascii() and text.isdigit()):
            raise ValueError(f"{text!r} is not a number")
        value = int(text)
    if not lowest <= value <= highest:
        raise ValueError(f"{text} is not between {lowest} and {highest}")
    return value


def _change_of_clocks_s(start_s: int) -> int | None:
    """The first second after a change of clocks, if there is one soon after this time."""

    def ahead_s(time_s: int) -> int:
        return time.localtime(time_s).tm_gmtoff

    before_s, changed_s = start_s, start_s + _LONGEST_SHIFT_S
    if ahead_s(before_s) == ahead_s(changed_s):
        return None
    while changed_s - before_s > 1:
        middle_s = (before_s + changed_s) // 2
        if ahead_s(middle_s) == ahead_s(start_s):
            before_s = middle_s
        else:
            changed_s = middle_s
    return changed_s


def _length(year: int, month: int) -> int:
    return calendar.monthrange(year, month)[1]


def _days_of_month(text: str) -> DayRule:
    before_last, near, others = set[int](), set[int](), []
    for part in text.split(","):
        if part == "L":
            before_last.add(0)
        elif found := _BEFORE_LAST_DAY.fullmatch(part):
            before_last.add(_number(found[1], 0, 30, None))
        elif found := _NEAR_DAY.fullmatch(part):
            near.add(_number(found[1], 1, 31, None))
        elif part != "LW":
            others.append(part)
    near_last = "LW" in text.split(",")
    plain = _values(",".join(others), 1, 31) if others else ()

    def days(year: int, month: int) -> set[int]:
        last = _length(year, month)
        found = {day for day in plain if day <= last} | {last - days for days in before_last if last > days}
        found.update(_weekday_near(year, month, day) for day in near if day <= last)
        return found | {_weekday_near(year, month, last)} if near_last else found

    return days


def _weekday_near(year: int, month: int, day: int) -> int:
    """The nearest day from Monday to Friday within the month."""
    weekday = date(year, month, day).weekday()
    if weekday == calendar.SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == calendar.SUNDAY:
        return day + 1 if day < _length(year, month) else day - 2
    return day


def _days_of_week(text: str) -> DayRule:
    nth, last, others = set[tuple[int, int]](), set[int](), []
    for part in text.split(","):
        if found := _NTH_WEEKDAY.fullmatch(part):
            nth.add((_number(found[1], 1, 7, _WEEKDAYS), int(found[2])))
        elif found := _LAST_WEEKDAY.fullmatch(part):
            last.add(_number(found[1], 1, 7, _WEEKDAYS))
        else:
            others.append("7" if part == "L" else part)
    plain = set(_values(",".join(others), 1, 7, _WEEKDAYS)) if others else set()

    def days(year: int, month: int) -> set[int]:
        found = set(_on_weekdays(year, month, plain))
        for weekday, position in nth:
            found.update(_on_weekdays(year, month, {weekday})[position - 1 : position])
        for weekday in last:
            found.update(_on_weekdays(year, month, {weekday})[-1:])
        return found

    return days


def _on_weekdays(year: int, month: int, weekdays: set[int]) -> list[int]:
    first = date(year, month, 1)
    days = (first + timedelta(days=offset) for offset in range(_length(year, month)))
    # Quartz counts Sunday as 1, Python's ISO weekday counts it as 7.
    return [day.day for day in days if day.isoweekday() % 7 + 1 in weekdays]
