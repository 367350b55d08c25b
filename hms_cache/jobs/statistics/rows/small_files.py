"""Partitions and tables with small files, which Spark's workers read with Arrow.

For each file, Spark copies Hadoop's configuration and sets up a reader, which takes some ten times as long as reading a
file of a few KB. Here, a file is read in one request, and all rows of a unit in one task, so nothing is shuffled. Files
that Spark might read differently are left to Spark (`DeferredToSpark`): other types than the table's own, calendars of
old releases, damaged files.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType

from hms_cache.jobs.files.directories import OF_DIRECTORIES, DirectoryLister
from hms_cache.jobs.statistics.columns import COLUMNS_OF_A_PASS, StatisticsColumn
from hms_cache.jobs.statistics.data_files import Figures, UnitFiles
from hms_cache.jobs.statistics.partials import BYTES_OF_A_PARTIAL, ROWS_OF_A_PARTIAL, partial_rows, partial_schema
from hms_cache.jobs.statistics.rows.arrow_values import DeferredToSpark, OrcRows, ParquetRows, values_of
from hms_cache.jobs.statistics.rows.file_index import format_of
from hms_cache.jobs.statistics.rows.object_contents import ObjectContents
from hms_cache.metadata.statistics_values import StatisticsKind
from hms_cache.store.warehouse.locations import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, Table
from hms_cache.values import frozen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNIT_BYTES = 8 << 20
"""Maximum size of all files of a partition or table that is read here. Spark reads larger ones, in several tasks, by
column."""

REQUESTS_AT_ONCE = 8
"""Number of units in an object store whose files one task fetches at a time: each fetch waits some ten ms. At most this
many times `UNIT_BYTES` are in memory."""

_SETTINGS = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
}
"""Settings of a session that reads files as they are read here; Spark's defaults."""

_UTC = frozenset({"UTC", "Etc/UTC", "Z", "+00:00", "GMT"})
_NOT_IN_ORC = frozenset({StatisticsKind.DATE, StatisticsKind.TIMESTAMP})
"""Values that ORC files store in the calendar and the time zone of their writer."""

_UNIT = StructType([StructField(name, StringType()) for name in ("name", "location", "files")])
SLICES = StructType([StructField("table", IntegerType(), False), StructField("units", ArrayType(_UNIT, False), False)])
"""Units of one table that are read together: their names (null: the table), locations, and files as found by the
run."""


class Read(NamedTuple):
    """Result of a slice: rows like those of `transform`, with the unit's ``name``, ``location`` and ``files``, and the
    names of the units left to Spark."""

    rows: list[dict[str, Any]]
    left: list[str | None]


_ALL = {"sample_bytes": None, "all_bytes": None}
"""No sample was read."""

ReadSlice = Callable[[Iterable[dict[str, Any]]], Read]


@frozen
class SessionReading:
    """The settings of a session that are relevant here."""

    is_default: bool
    is_utc: bool

    @classmethod
    def of(cls, spark: SparkSession) -> SessionReading:
        """Reads the settings of this session."""
        is_default = all(str(spark.conf.get(name)).upper() == value.upper() for name, value in _SETTINGS.items())
        return cls(is_default, spark.conf.get("spark.sql.session.timeZone") in _UTC)

    def may_be_replaced(self, table: Table, columns: Sequence[StatisticsColumn]) -> bool:
        """Whether files of the table, in Parquet or ORC, can be read here like in Spark."""
        if not self.is_default or not columns or len(columns) > COLUMNS_OF_A_PASS:
            return False
        kinds = {column.kind for column in columns}
        if format_of(table) == "orc" and kinds & _NOT_IN_ORC:
            return False
        if StatisticsKind.TIMESTAMP in kinds and not self.is_utc:
            return False
        # Spark pads values of char; a name with a dot would refer to a field of a struct.
        return not any(column.type.startswith("char") or "." in column.name for column in columns)


def is_small(unit: UnitFiles) -> bool:
    """Whether a unit is read here, completely."""
    is_plain = unit.layout is None and unit.sample is None
    return is_plain and unit.figures is not None and unit.figures.bytes <= UNIT_BYTES


def slices(
    spark: SparkSession, some: Sequence[tuple[int, Sequence[tuple[str | None, UnitFiles]]]], tasks: int
) -> DataFrame:
    """Slices of units, each with the number of their table (`SLICES`), in at most `tasks` tasks, in this order."""
    rows = [
        {
            "table": number,
            "units": [{"name": name, "location": unit.location, "files": str(unit.figures)} for name, unit in units],
        }
        for number, units in some
    ]
    # From Arrow columns Spark creates a local relation, with a task per core.
    return spark.createDataFrame(pa.Table.from_pylist(rows, to_arrow_schema(SLICES)), SLICES).coalesce(tasks)


def reader(files: Files, table: Table, columns: Sequence[StatisticsColumn]) -> ReadSlice:
    """Returns a function that reads slices of a table, in Parquet or ORC, in a task. It never raises for a unit: Spark
    meets the error again and reports it."""
    names = [field.name.lower() for field in table.sd.cols or ()]
    rows_in = ParquetRows(columns) if format_of(table) == "parquet" else OrcRows(columns, names)
    schema = to_arrow_schema(partial_schema(columns))
    is_left = False

    def read(units: Iterable[dict[str, Any]]) -> Read:
        nonlocal is_left
        found = _Units(columns, schema)
        places = {place["name"]: place for place in units}
        left: set[str | None] = set()
        for name, content in files.of_units(places):
            try:
                # One file for Spark is sufficient: the rest of the table is probably similar.
                if is_left:
                    raise DeferredToSpark
                contents = content()
                _require_all(contents, places[name]["files"])
                for one in contents:
                    for batch in rows_in.batches(one):
                        found.add(name, batch)
            except _UNREADABLE:
                is_left = True
                left.add(name)
        found.reduce()
        left |= found.failed
        is_left = is_left or bool(left)
        rows = [row | places[name] | _ALL for name, row in found.rows(places) if name not in left]
        return Read(rows, [name for name in places if name in left])

    return read


def _require_all(contents: Iterable[bytes], files: str) -> None:
    """Raises DeferredToSpark unless these are the contents of the files found at the start of the run: a directory that
    is temporarily invisible looks empty."""
    figures = Figures.read(files)
    if figures is not None and figures.bytes != sum(map(len, contents)):
        raise DeferredToSpark


_UNREADABLE = (DeferredToSpark, OSError, MetaException, pa.ArrowException, ValueError, MemoryError)

_Content = Callable[[], list[bytes]]

_Infos = Iterable[tuple[str, Mapping[str, Any]]]
"""Paths of files with the file system's metadata."""


class Files:
    """Reads the contents of files, for one task."""

    def __init__(self) -> None:
        self._lister = DirectoryLister()
        self._contents: dict[tuple[str, str], ObjectContents] = {}
        """By scheme and authority."""
        self._pool = ThreadPoolExecutor(REQUESTS_AT_ONCE, "files")

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *failure: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def of_units(self, places: Mapping[str | None, Mapping[str, Any]]) -> Iterator[tuple[str | None, _Content]]:
        """The contents of each unit, on demand. Those in an object store are fetched ahead."""
        ahead: deque[tuple[str | None, Future[list[bytes]]]] = deque()
        for contents in self._contents.values():
            contents.renew()
        listed = self._listed(place["location"] for place in places.values())
        for name, place in places.items():
            location = place["location"]
            if location.partition(":")[0] in OF_DIRECTORIES:
                yield name, partial(self.read, location)
                continue
            ahead.append((name, self._pool.submit(self.read, location, listed.get(location))))
            if len(ahead) >= REQUESTS_AT_ONCE:
                first, future = ahead.popleft()
                yield first, future.result
        for first, future in ahead:
            yield first, future.result

    def _listed(self, locations: Iterable[str]) -> dict[str, _Infos]:
        """Files of the locations that can be listed together."""
        known: dict[Location, str] = {}
        for location in locations:
            with suppress(MetaException):
                known[Location.parse(location)] = location
        found = self._lister.data_files_of(list(known))
        return {known[here]: files for here, files in found if not isinstance(files, Exception)}

    def read(self, location: str, listed: _Infos | None = None) -> list[bytes]:
        """The content of each file directly in a directory, which may have been `listed` before. Raises OSError,
        MetaException."""
        here = Location.parse(location)
        start = len(here.path.rstrip("/")) + 1
        names = []
        try:
            for path, info in self._lister.data_files(here) if listed is None else listed:
                if path.endswith("._COPYING_"):  # Spark does not treat it as a file
                    raise OSError("a file is being copied")
                if info["size"] and "/" not in path[start:]:
                    names.append(str(info["name"]))
        except FileNotFoundError:
            return []
        if here.scheme == "file":
            return [Path(name).read_bytes() for name in names]
        contents = self._contents_of(here)
        return [contents.read(name) for name in names]

    def _contents_of(self, location: Location) -> ObjectContents:
        store = (location.scheme, location.authority)
        if store not in self._contents:
            file_system, _ = self._lister.open(location)
            self._contents[store] = ObjectContents(file_system)
            self._contents[store].renew()
        return self._contents[store]


class _Units:
    """Rows of several units, reduced as they arrive: some MB are held."""

    def __init__(self, columns: Sequence[StatisticsColumn], schema: pa.Schema) -> None:
        self._columns = columns
        self._schema = schema
        self._numbers: dict[str | None, int] = {}
        self._held: list[tuple[int, pa.RecordBatch]] = []
        self._held_rows = self._held_bytes = 0
        self._found: dict[int, dict[str, Any]] = {}
        self.failed: set[str | None] = set()
        """Units with rows that could not be reduced, so that the result is incomplete."""

    def add(self, name: str | None, rows: pa.RecordBatch) -> None:
        """Adds rows of a unit, with the columns that their file has."""
        if self._held and not self._held[0][1].schema.equals(rows.schema):
            self.reduce()
        self._held.append((self._numbers.setdefault(name, len(self._numbers)), rows))
        self._held_rows, self._held_bytes = self._held_rows + rows.num_rows, self._held_bytes + rows.nbytes
        if self._held_rows >= ROWS_OF_A_PARTIAL or self._held_bytes >= BYTES_OF_A_PARTIAL:
            self.reduce()

    def rows(self, names: Iterable[str | None]) -> Iterator[tuple[str | None, dict[str, Any]]]:
        """A row of each unit, also of those without rows, from the reduced rows."""
        nothing: dict[str, Any] = dict.fromkeys(self._schema.names) | {"rows": 0}
        nothing |= {name: [] for name in self._schema.names if name.startswith("sketch")}
        for name in names:
            yield name, self._found.get(self._numbers.get(name, -1), nothing)

    def reduce(self) -> None:
        """Reduces the held rows; if this fails, all units with held rows have failed."""
        held, self._held, self._held_rows, self._held_bytes = self._held, [], 0, 0
        if not held:
            return
        try:
            self._take(held)
        except _UNREADABLE:
            gone = {number for number, _ in held}
            self.failed |= {name for name, number in self._numbers.items() if number in gone}

    def _take(self, held: Sequence[tuple[int, pa.RecordBatch]]) -> None:
        numbers = np.repeat([number for number, _ in held], [batch.num_rows for _, batch in held])
        values = values_of(pa.Table.from_batches([batch for _, batch in held]), self._columns)
        values = values.add_column(0, "partition", pa.array(numbers, pa.int32()))
        for row in partial_rows(values, self._columns, self._schema).to_pylist():
            row |= {name: [value] for name, value in row.items() if name.startswith("sketch")}
            number = row["partition"]
            self._found[number] = _together(self._found[number], row) if number in self._found else row


_TOGETHER: dict[str, Callable[[Any, Any], Any]] = {
    "low": min,
    "high": max,
    "length_max": max,
}


def _together(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Combines two partial rows of a unit, like Spark's aggregates."""
    both = {}
    for name, value in one.items():
        beside = other[name]
        if name == "partition" or value is None or beside is None:
            both[name] = beside if value is None else value
        else:
            function = _TOGETHER.get(name.rstrip("0123456789"))
            both[name] = value + beside if function is None else function(value, beside)
    return both
