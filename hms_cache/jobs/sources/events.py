"""The data source ``hms_events``: the notification log, as a batch and as a stream.

``spark.readStream.format("hms_events").option("metastore", "thrift://host:9083").load()``

Options: ``metastore`` (with ``auth``, as of ``hms_catalog``) or ``database``; ``start``: earliest (default), latest, or
the id of the event to begin after;
``end``: the id of the last event, else the log's end; ``message``: json (default: the text, unpacked), raw (as stored)
or none; ``events_per_slice``: how much one task reads; ``max_events_per_batch`` (streams); ``columns``: those to read,
separated by commas. Without ``message`` among them no text is unpacked.

Of a batch, conditions on ``event_id`` decide what is read of the log, and equality and IN on ``event_type``,
``catalog``, ``database`` and ``table`` which events become rows.

A stream's offset is an event id, with a digest of that event. Each event is in exactly one batch, and a batch that is
run again after a failure holds the same events. Where the log was trimmed below what is to be read, or is not the log
it was, the query fails and says so. Spark's trigger AvailableNow is one batch; give it no limit of events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from hms_cache.errors import ConfigurationError
from hms_cache.jobs.sources.catalog_rows import time_of
from hms_cache.jobs.sources.event_range import (
    EventPlace,
    check_place,
    earliest_place,
    place_after,
    read_events,
)
from hms_cache.jobs.sources.fields import LONG, STRING, TIME, fields, required
from hms_cache.jobs.sources.options import (
    all_options,
    chosen_columns,
    column_positions,
    optional_number,
    positive,
    with_saved_options,
)
from hms_cache.jobs.sources.origin import Origin
from hms_cache.jobs.sources.task_parts import for_tasks, in_task
from hms_cache.notifications.event_log import EventLog
from hms_cache.notifications.events import NotificationRow
from hms_cache.notifications.messages import MessageError, decode_message
from hms_cache.values import frozen

EVENTS_PER_SLICE = 10_000
"""A second or so of a task's work."""

MESSAGES = ("json", "raw", "none")

SCHEMA = StructType(
    [
        *required(LONG, "event_id"),
        *fields(TIME, "event_time"),
        *required(STRING, "event_type"),
        *fields(STRING, "catalog", "database", "table"),
        # Null where it is not asked for, or cannot be unpacked.
        *fields(STRING, "message"),
        *fields(STRING, "message_format"),
    ]
)


OPTIONS = (
    "metastore",
    "auth",
    "database",
    "password_variable",
    "start",
    "end",
    "message",
    "events_per_slice",
    "max_events_per_batch",
)
"""What a table made by ``CREATE TABLE … USING hms_events`` keeps; its columns say the rest."""

_FILTERED = ("event_type", "catalog", "database", "table")
"""Columns, as of a `NotificationRow`, whose conditions decide which events become rows."""


@frozen
class EventSlice(InputPartition):  # type: ignore[misc]
    """Events after the first id, up to the second one."""

    after_event_id: int
    last_event_id: int


@frozen
class EventOptions:
    """The options of a source, checked. Travels to Spark's workers."""

    origin: Origin
    start: str
    end: int | None
    message: str
    events_per_slice: int
    max_events_per_batch: int | None
    positions: tuple[int, ...] = tuple(range(len(SCHEMA.names)))
    """The columns to answer, by their place in the schema."""

    @classmethod
    def of_options(
        cls, options: Mapping[str, str], columns: StructType = SCHEMA, session_auth: str = ""
    ) -> EventOptions:
        """Raises ConfigurationError."""
        options = all_options(options, columns, session_auth)
        positions = tuple(column_positions(columns, SCHEMA))
        start = str(options.get("start") or "earliest").strip().lower()
        if start not in ("earliest", "latest") and not start.isdigit():
            raise ConfigurationError(f"start must be earliest, latest or the id of an event: {start!r}")
        message = str(options.get("message") or "json").strip().lower()
        if message not in MESSAGES:
            raise ConfigurationError(f"message must be one of {', '.join(MESSAGES)}: {message!r}")
        if SCHEMA.names.index("message") not in positions:
            message = "none"
        limit = positive(options, "max_events_per_batch", 0) if "max_events_per_batch" in options else None
        return cls(
            origin=Origin.of_options(options),
            start=start,
            end=optional_number(options, "end"),
            message=message,
            events_per_slice=positive(options, "events_per_slice", EVENTS_PER_SLICE),
            max_events_per_batch=limit,
            positions=positions,
        )

    def first_place(self, log: EventLog) -> EventPlace:
        """Where to begin."""
        if self.start == "earliest":
            return earliest_place(log)
        if self.start == "latest":
            return place_after(log, log.head().last_event_id)
        return place_after(log, int(self.start))

    def last_event_id(self, log: EventLog) -> int:
        """Where to end: the log's end, or what the option says if that comes first."""
        last = log.head().last_event_id
        return last if self.end is None else min(last, self.end)

    def slices(self, after_event_id: int, last_event_id: int) -> Sequence[InputPartition]:
        """The events in parts, one for each task."""
        starts = range(after_event_id, last_event_id, self.events_per_slice)
        parts = [EventSlice(start, min(start + self.events_per_slice, last_event_id)) for start in starts]
        return for_tasks(parts, self.origin)

    def read(
        self, partition: InputPartition, admitted: Mapping[str, frozenset[str]] | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """The rows of one part, of events with the admitted values by column. Raises EventLogError when one is
        missing."""
        conditions = (admitted or {}).items()
        part, origin = in_task(partition, self.origin)
        with origin.following() as log:
            for row in read_events(log, part.after_event_id, part.last_event_id):
                if all(getattr(row, column) in values for column, values in conditions):
                    values = self._values(row)
                    yield tuple([values[position] for position in self.positions])

    def _values(self, row: NotificationRow) -> tuple[Any, ...]:
        return (
            row.event_id,
            time_of(row.event_time_s),
            row.event_type,
            row.catalog,
            row.database,
            row.table,
            self._message(row),
            row.message_format,
        )

    def _message(self, row: NotificationRow) -> str | None:
        if self.message == "none":
            return None
        if self.message == "raw":
            return row.message
        try:
            # Written anew: the text is then JSON in the strict sense, which Spark's functions want.
            return json.dumps(decode_message(row.message, row.message_format), ensure_ascii=False)
        except MessageError:
            return None


class HmsEventsSource(DataSource):  # type: ignore[misc]
    """See the module."""

    session_auth = ""
    """As of `HmsCatalogSource`."""

    @classmethod
    def name(cls) -> str:
        return "hms_events"

    def schema(self) -> StructType:
        return with_saved_options(chosen_columns(SCHEMA, self.options), self.options, OPTIONS)

    def reader(self, schema: StructType) -> DataSourceReader:
        return HmsEventsReader(EventOptions.of_options(self.options, schema, self.session_auth))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return HmsEventsStreamReader(EventOptions.of_options(self.options, schema, self.session_auth))


class HmsEventsReader(DataSourceReader):  # type: ignore[misc]
    """What the log holds when the query is planned."""

    def __init__(self, options: EventOptions) -> None:
        self._options = options
        self._after = 0
        self._last: int | None = None
        self._admitted: dict[str, frozenset[str]] = {}

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Takes over what it decides exactly, leaves the rest to Spark."""
        for condition in filters:
            column = ".".join(getattr(condition, "attribute", ()))
            if not (self._narrow(condition) if column == "event_id" else self._admit(column, condition)):
                yield condition

    def _narrow(self, condition: Filter) -> bool:
        value = getattr(condition, "value", None)
        if not isinstance(value, int):
            return False
        if isinstance(condition, GreaterThan | GreaterThanOrEqual | EqualTo):
            self._after = max(self._after, value if isinstance(condition, GreaterThan) else value - 1)
        if isinstance(condition, LessThan | LessThanOrEqual | EqualTo):
            last = value - 1 if isinstance(condition, LessThan) else value
            self._last = last if self._last is None else min(self._last, last)
        return isinstance(condition, GreaterThan | GreaterThanOrEqual | EqualTo | LessThan | LessThanOrEqual)

    def _admit(self, column: str, condition: Filter) -> bool:
        if column not in _FILTERED or not isinstance(condition, EqualTo | In):
            return False
        values = condition.value if isinstance(condition, In) else (condition.value,)
        # Equal to null is nothing, null itself neither.
        wanted = frozenset(value for value in values if value is not None)
        self._admitted[column] = wanted & self._admitted.get(column, wanted)
        return True

    def partitions(self) -> Sequence[InputPartition]:
        with self._options.origin.following() as log:
            last = self._options.last_event_id(log)
            if self._last is not None:
                last = min(last, self._last)
            return self._options.slices(max(self._options.first_place(log).event_id, self._after), last)

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        return self._options.read(partition, self._admitted)


class HmsEventsStreamReader(DataSourceStreamReader):  # type: ignore[misc]
    """What is appended to the log, in batches.

    With a checkpoint Spark shows the last offset it knows, by planning an empty batch there, before it asks for a later
    one (`AcceptsLatestSeenOffset` of its `PythonMicroBatchStream`). Without one it asks for the latest offset first and
    for the initial one afterwards: both count from the same place.
    """

    def __init__(self, options: EventOptions) -> None:
        self._options = options
        self._place: EventPlace | None = None
        """The end of the last batch planned, from where the limit of events counts."""
        self._first: EventPlace | None = None

    def initialOffset(self) -> dict[str, object]:
        with self._options.origin.following() as log:
            return self._first_place(log).offset

    def _first_place(self, log: EventLog) -> EventPlace:
        """The same whenever it is asked for."""
        if self._first is None:
            self._first = self._options.first_place(log)
        return self._first

    def latestOffset(self) -> dict[str, object]:
        with self._options.origin.following() as log:
            here = self._place or self._first_place(log)
            last = self._options.last_event_id(log)
            if last < here.event_id:
                check_place(log, here)  # another history, unless the option says to end before
                last = here.event_id
            if last == here.event_id:
                return here.offset
            limit = self._options.max_events_per_batch
            return place_after(log, last if limit is None else min(last, here.event_id + limit)).offset

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> Sequence[InputPartition]:
        first, last = EventPlace.of_offset(start), EventPlace.of_offset(end)
        with self._options.origin.following() as log:
            check_place(log, first)
            check_place(log, last)
        self._place = last
        return self._options.slices(first.event_id, last.event_id)

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        return self._options.read(partition)

    def commit(self, end: dict[str, object]) -> None:
        """Nothing: what is kept of the log is for its cleaner to decide."""

    def stop(self) -> None:
        """Nothing: each call opens and closes its own connection."""
