"""The data source ``hms_events``: the notification log, as a batch and as a stream.

``spark.readStream.format("hms_events").option("metastore", "thrift://host:9083").load()``

Options: ``metastore`` (with ``auth``, as in ``hms_catalog``) or ``database``: the source; ``start``: earliest
(default), latest, or the id of the event after which to start; ``end``: the id of the last event (default: the end of
the log); ``message``: json (default: the decoded text), raw (as stored) or none; ``events_per_slice``: the size of one
task; ``max_events_per_batch`` (streams); ``columns``: the columns to read, separated by commas. Messages are decoded
only if ``message`` is one of them.

In a batch, conditions on ``event_id`` limit what is read from the log, and equality and IN conditions on
``event_type``, ``catalog``, ``database`` and ``table`` limit the events that become rows.

The offset of a stream is an event id with a digest of that event. Each event is in exactly one batch, and a batch that
is repeated after a failure contains the same events. If events to be read were trimmed, or the log is not the same any
more, the query fails with an explanation. Spark's trigger AvailableNow runs one batch; do not limit its events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

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

from hms_cache.client import Metastores
from hms_cache.client.delegation import (
    TransferredToken,
    hold_tokens,
    release_tokens,
    release_tokens_on_sigterm,
    use_transferred,
)
from hms_cache.errors import ConfigurationError
from hms_cache.jobs.sources.catalog_rows import time_of
from hms_cache.jobs.sources.event_range import (
    EventPosition,
    check_position,
    earliest_position,
    position_after,
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
"""About a second of work for a task."""

MESSAGES = ("json", "raw", "none")

SCHEMA = StructType(
    [
        *required(LONG, "event_id"),
        *fields(TIME, "event_time"),
        *required(STRING, "event_type"),
        *fields(STRING, "catalog", "database", "table"),
        # Null if it was not requested, or cannot be decoded.
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
"""Options stored with a table created by ``CREATE TABLE … USING hms_events``. Its schema determines the columns."""

_FILTERED = ("event_type", "catalog", "database", "table")
"""Fields of `NotificationRow` whose conditions select the events that become rows."""


@frozen
class EventSlice(InputPartition):  # type: ignore[misc]
    """Events after the first id, up to and including the second one."""

    after_event_id: int
    last_event_id: int


@frozen
class EventOptions:
    """The validated options of a source. Spark sends them to its workers."""

    origin: Origin
    start: str
    end: int | None
    message: str
    events_per_slice: int
    max_events_per_batch: int | None
    positions: tuple[int, ...] = tuple(range(len(SCHEMA.names)))
    """The columns to return, as indexes into the schema."""

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

    def first_position(self, log: EventLog) -> EventPosition:
        """The position at which to start."""
        if self.start == "earliest":
            return earliest_position(log)
        if self.start == "latest":
            return position_after(log, log.head().last_event_id)
        return position_after(log, int(self.start))

    def last_event_id(self, log: EventLog) -> int:
        """The last event to read: the last one in the log, or that of the option ``end`` if it comes first."""
        last = log.head().last_event_id
        return last if self.end is None else min(last, self.end)

    def slices(self, after_event_id: int, last_event_id: int) -> Sequence[InputPartition]:
        """Divides the events into parts, one for each task."""
        starts = range(after_event_id, last_event_id, self.events_per_slice)
        parts = [EventSlice(start, min(start + self.events_per_slice, last_event_id)) for start in starts]
        return for_tasks(parts, self.origin)

    def read(
        self, partition: InputPartition, admitted: Mapping[str, frozenset[str]] | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """Yields the rows of one part. Raises EventLogError if an event is missing.

        :param admitted: by column, the values of the events that become rows.
        """
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
            # Encoded again, so that the text is strict JSON, which Spark's functions require.
            return json.dumps(decode_message(row.message, row.message_format), ensure_ascii=False)
        except MessageError:
            return None


class HmsEventsSource(DataSource):  # type: ignore[misc]
    """The data source; the module's docstring describes its options."""

    session_auth = ""
    """See `HmsCatalogSource`."""

    transferred_tokens: ClassVar[Mapping[Metastores, TransferredToken]] = {}
    """See `hms_cache.jobs.sources.with_tokens`."""

    @classmethod
    def name(cls) -> str:
        return "hms_events"

    def schema(self) -> StructType:
        return with_saved_options(chosen_columns(SCHEMA, self.options), self.options, OPTIONS)

    def reader(self, schema: StructType) -> DataSourceReader:
        use_transferred(self.transferred_tokens)
        return HmsEventsReader(EventOptions.of_options(self.options, schema, self.session_auth))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        use_transferred(self.transferred_tokens)
        hold_tokens()
        # Spark ends the process that plans a stream by this signal, and does not call `stop`.
        release_tokens_on_sigterm()
        return HmsEventsStreamReader(EventOptions.of_options(self.options, schema, self.session_auth))


class HmsEventsReader(DataSourceReader):  # type: ignore[misc]
    """Reads the events that the log contains when the query is planned."""

    def __init__(self, options: EventOptions) -> None:
        self._options = options
        self._after = 0
        self._last: int | None = None
        self._admitted: dict[str, frozenset[str]] = {}

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Accepts the conditions that it can apply exactly, and returns the others to Spark."""
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
        # No value is equal to null, not even null itself.
        selected = frozenset(value for value in values if value is not None)
        self._admitted[column] = selected & self._admitted.get(column, selected)
        return True

    def partitions(self) -> Sequence[InputPartition]:
        with self._options.origin.following() as log:
            last = self._options.last_event_id(log)
            if self._last is not None:
                last = min(last, self._last)
            return self._options.slices(max(self._options.first_position(log).event_id, self._after), last)

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        return self._options.read(partition, self._admitted)


class HmsEventsStreamReader(DataSourceStreamReader):  # type: ignore[misc]
    """Reads appended events in batches.

    With a checkpoint, Spark first passes the last offset that it knows, by planning an empty batch there, and then asks
    for a later one (`AcceptsLatestSeenOffset` of its `PythonMicroBatchStream`). Without a checkpoint, it asks for the
    latest offset first and for the initial one afterwards: both are computed from the same position.
    """

    def __init__(self, options: EventOptions) -> None:
        self._options = options
        self._position: EventPosition | None = None
        """The end of the last planned batch, from which the limit of events counts."""
        self._first: EventPosition | None = None

    def initialOffset(self) -> dict[str, object]:
        with self._options.origin.following() as log:
            return self._first_position(log).offset

    def _first_position(self, log: EventLog) -> EventPosition:
        """The initial position, which is computed once."""
        if self._first is None:
            self._first = self._options.first_position(log)
        return self._first

    def latestOffset(self) -> dict[str, object]:
        with self._options.origin.following() as log:
            here = self._position or self._first_position(log)
            last = self._options.last_event_id(log)
            if last < here.event_id:
                check_position(log, here)  # another history, unless the option `end` is smaller
                last = here.event_id
            if last == here.event_id:
                return here.offset
            limit = self._options.max_events_per_batch
            return position_after(log, last if limit is None else min(last, here.event_id + limit)).offset

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> Sequence[InputPartition]:
        first, last = EventPosition.of_offset(start), EventPosition.of_offset(end)
        with self._options.origin.following() as log:
            check_position(log, first)
            check_position(log, last)
        self._position = last
        return self._options.slices(first.event_id, last.event_id)

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        return self._options.read(partition)

    def commit(self, end: dict[str, object]) -> None:
        """Does nothing: the log's retention time decides when events are deleted."""

    def stop(self) -> None:
        """Cancels the tokens that were obtained for the stream's tasks. Connections are closed after each call."""
        release_tokens()
