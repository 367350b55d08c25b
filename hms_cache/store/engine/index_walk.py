"""Examines large tables part by part, in the order of an index.

Background work that has to visit all rows of a table visits some at a time, so that the cost of one step does not grow
with the table. Each server remembers its own place; a restart begins again without harm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, and_, literal, or_, select, tuple_

from hms_cache.clock import Clock
from hms_cache.store.schema.column_types import MYSQL_DIALECTS

Place = tuple[str, str]
"""Values of the two columns by which the index sorts."""


def is_after(connection: Connection, columns: tuple[Column[Any], Column[Any]], place: Place) -> ColumnElement[bool]:
    """A condition: the row comes after all rows of this place, as a range of an index that begins with these
    columns."""
    first, second = columns
    if connection.dialect.name in MYSQL_DIALECTS:
        # MySQL and MariaDB cannot use an index for a comparison of rows.
        return or_(first > place[0], and_(first == place[0], second > place[1]))
    if connection.dialect.name == "sqlite":
        # The range begins after all rows of the place: this is the smallest text after it.
        at_least: ColumnElement[bool] = tuple_(*columns) >= _row(columns, (place[0], f"{place[1]}\0"))
        return at_least
    condition: ColumnElement[bool] = tuple_(*columns) > _row(columns, place)
    return condition


def _is_up_to(connection: Connection, columns: tuple[Column[Any], Column[Any]], place: Place) -> ColumnElement[bool]:
    first, second = columns
    if connection.dialect.name in MYSQL_DIALECTS:
        return or_(first < place[0], and_(first == place[0], second <= place[1]))
    condition: ColumnElement[bool] = tuple_(*columns) <= _row(columns, place)
    return condition


def _row(columns: tuple[Column[Any], Column[Any]], place: Place) -> Any:
    return tuple_(*(literal(value, column.type) for column, value in zip(columns, place, strict=True)))


class IndexWalk:
    """A walk through a table in parts, by two columns with which an index begins. The second column may be NULL.

    All rows with the same two values are in one part, so that aggregates over them are complete. Not thread-safe.
    """

    ROWS_OF_A_PART: Final = 30_000
    """A tenth of a second if rows are grouped. If one place has more rows, the part has all of them."""

    _SHORT_S: Final = 0.1
    _MAX_OF_TIME: Final = 0.01
    """Share of time. A part with one large place takes longer, and is followed by a pause."""

    _LONGEST_PAUSE_S: Final = 3600.0

    def __init__(self, clock: Clock, first: Column[Any], second: Column[Any]) -> None:
        self._clock = clock
        self._columns = first, second
        self._end: Place | None = None
        self._skipped_until_s = -math.inf
        self._part: Sequence[ColumnElement[bool]] = ()

    @property
    def part(self) -> Sequence[ColumnElement[bool]]:
        """Conditions that together select the part's rows, each row once. Empty during a pause."""
        return self._part

    def go_on(self, connection: Connection) -> None:
        """Advances to the next part, and after the last one to the first."""
        self._part = ()
        if self._clock.monotonic_s() < self._skipped_until_s:
            return
        columns, begin = self._columns, self._end
        first, second = columns
        query = select(*columns).where(second.is_not(None)).order_by(*columns).offset(self.ROWS_OF_A_PART - 1).limit(1)
        after = [] if begin is None else [is_after(connection, columns, begin)]
        found = connection.execute(query.where(*after)).first()
        end = None if found is None else (str(found[0]), str(found[1]))
        part: list[ColumnElement[bool]] = []
        if end is None:
            part.append(and_(first.is_not(None), *after))
        else:
            part.append(and_(_is_up_to(connection, columns, end), *after))
            if begin is None or begin[0] != end[0]:
                # These rows are not in any range of both columns.
                part.append(and_(first == end[0], second.is_(None)))
        self._part, self._end = part, end

    @contextmanager
    def working(self) -> Iterator[None]:
        """Context for the work on a part. The work may run again before the walk advances."""
        begun_s = self._clock.monotonic_s()
        try:
            yield
        finally:
            now_s = self._clock.monotonic_s()
            if (duration_s := now_s - begun_s) > self._SHORT_S:
                self._skipped_until_s = now_s + min(duration_s / self._MAX_OF_TIME, self._LONGEST_PAUSE_S)
