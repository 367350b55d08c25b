"""Large tables looked at part by part, in the order of an index.

Background work that has to see all rows of a table sooner or later sees some at a time: what it costs at a time does
not grow with the table. Each server has a place of its own at which it goes on; nothing is lost if one starts anew.
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
"""Values of the columns by which the index orders."""


def is_after(connection: Connection, columns: tuple[Column[Any], Column[Any]], place: Place) -> ColumnElement[bool]:
    """Whether a row comes after all rows of this place, as a range of an index that begins with these columns."""
    first, second = columns
    if connection.dialect.name in MYSQL_DIALECTS:
        # Which know no range of rows.
        return or_(first > place[0], and_(first == place[0], second > place[1]))
    if connection.dialect.name == "sqlite":
        # Which begins with all rows of the place. This is the first text after it.
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
    """A look at a table in parts, by two columns with which an index begins. The second one may be NULL.

    All rows with the same two values are in one part, so that what is counted of them is complete. For one thread.
    """

    ROWS_OF_A_PART: Final = 30_000
    """A tenth of a second where rows are grouped. With more of one place a part has all of that place."""

    _SHORT_S: Final = 0.1
    _MAX_OF_TIME: Final = 0.01
    """Of one place that is large a part takes longer: then there are pauses."""

    _LONGEST_PAUSE_S: Final = 3600.0

    def __init__(self, clock: Clock, first: Column[Any], second: Column[Any]) -> None:
        self._clock = clock
        self._columns = first, second
        self._end: Place | None = None
        self._rests_until_s = -math.inf
        self._part: Sequence[ColumnElement[bool]] = ()

    @property
    def part(self) -> Sequence[ColumnElement[bool]]:
        """Conditions, each of which some rows of the part meet, and no row more than one; none during a pause."""
        return self._part

    def go_on(self, connection: Connection) -> None:
        """To the next part, after the last one to the first."""
        self._part = ()
        if self._clock.monotonic_s() < self._rests_until_s:
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
                # These are in no range of both columns.
                part.append(and_(first == end[0], second.is_(None)))
        self._part, self._end = part, end

    @contextmanager
    def working(self) -> Iterator[None]:
        """What is done with the part; it may be done again before the walk goes on."""
        begun_s = self._clock.monotonic_s()
        try:
            yield
        finally:
            now_s = self._clock.monotonic_s()
            if (took_s := now_s - begun_s) > self._SHORT_S:
                self._rests_until_s = now_s + min(took_s / self._MAX_OF_TIME, self._LONGEST_PAUSE_S)
