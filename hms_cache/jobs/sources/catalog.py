"""The data source ``hms_catalog``: the catalog as rows.

``spark.read.format("hms_catalog").option("metastore", "thrift://host:9083").load("partitions")``

Options: ``kind`` (or the path): databases, tables, columns, partitions or statistics; ``metastore`` or ``database``:
the source; ``auth``: how to authenticate with the metastore, see `hms_cache.client.authentication.texts`;
``password_variable``: the environment variable with the database's password; ``tables``: patterns, separated by commas;
``columns``: the columns to read, separated by commas; ``tables_per_slice`` and ``partitions_per_slice``: the size of
one task; ``engine``: the engine whose statistics are read (default: hive).

Slices are read in parallel, each at a different moment: an object that changes meanwhile appears in its old or its new
state, and an object that is dropped meanwhile is left out. Equality, IN and prefix conditions on ``catalog``,
``database``, ``table`` and ``partition`` limit what is read. Spark does not tell a Python source which columns a query
needs (`PythonScanBuilder` of 4.1), so they are selected by the option or by a schema; if names are sufficient, only
names are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    In,
    InputPartition,
    StringStartsWith,
)
from pyspark.sql.types import StructType

from hms_cache.batches import batches
from hms_cache.errors import ConfigurationError
from hms_cache.jobs.sources import catalog_rows as rows
from hms_cache.jobs.sources.catalog_reader import CatalogReader, PartitionRange, TableName, packed
from hms_cache.jobs.sources.catalog_schemas import SCHEMAS
from hms_cache.jobs.sources.options import (
    SliceSize,
    all_options,
    chosen_columns,
    column_positions,
    with_saved_options,
)
from hms_cache.jobs.sources.origin import Origin
from hms_cache.jobs.sources.scope import NAME_COLUMNS, TableScope
from hms_cache.jobs.sources.task_parts import for_tasks, in_task
from hms_cache.metadata.partition_names import values_of_name
from hms_cache.values import frozen

SLICE_SIZE = SliceSize(tables=500, partitions=20_000)
"""About a second of work for a task: smaller slices spend more time on starting tasks, larger ones leave cores idle at
the end."""

OPTIONS = (
    "kind",
    "metastore",
    "auth",
    "database",
    "password_variable",
    "tables",
    "tables_per_slice",
    "partitions_per_slice",
    "engine",
)
"""Options stored with a table created by ``CREATE TABLE … USING hms_catalog``. Its schema determines the columns."""

_NAMES = {
    "databases": frozenset(("catalog", "database")),
    "tables": frozenset(("catalog", "database", "table")),
    "partitions": frozenset(("catalog", "database", "table", "partition", "values")),
}
"""By kind: columns that can be computed from names alone."""

_NAMES_OF_A_READ = 1_000
"""Number of partitions whose statistics are read together: a partition has many columns."""


@frozen
class DatabaseSlice(InputPartition):  # type: ignore[misc]
    """The selected databases of a catalog."""

    catalog: str
    names: tuple[str, ...]


@frozen
class TableSlice(InputPartition):  # type: ignore[misc]
    """Some tables of one database."""

    catalog: str
    database: str
    tables: tuple[str, ...]


@frozen
class PartitionSlice(InputPartition):  # type: ignore[misc]
    """Whole tables with few partitions, or a part of one with many."""

    ranges: tuple[PartitionRange, ...]


class HmsCatalogSource(DataSource):  # type: ignore[misc]
    """The data source; the module's docstring describes its options."""

    session_auth = ""
    """Value of the option `auth` if it is missing: `register` takes it from the session."""

    @classmethod
    def name(cls) -> str:
        return "hms_catalog"

    def schema(self) -> StructType:
        kind = _kind(self.options)
        columns = chosen_columns(SCHEMAS[kind], self.options)
        return with_saved_options(columns, {**dict(self.options), "kind": kind}, OPTIONS)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = all_options(self.options, schema, self.session_auth)
        return HmsCatalogReader(
            _kind(options),
            Origin.of_options(options),
            TableScope.of_text(options.get("tables")),
            slice_size=SLICE_SIZE.changed_by(options),
            engine=options.get("engine") or "hive",
            columns=schema,
        )


def _kind(options: Mapping[str, str]) -> str:
    """Returns the kind of rows. Raises ConfigurationError."""
    kind = options.get("kind") or options.get("path") or "tables"
    if kind not in SCHEMAS:
        raise ConfigurationError(f"hms_catalog has no kind {kind!r}; it has {', '.join(SCHEMAS)}")
    return str(kind)


class HmsCatalogReader(DataSourceReader):  # type: ignore[misc]
    """Plans the slices, and reads a slice. Spark sends it to its workers."""

    def __init__(
        self,
        kind: str,
        origin: Origin,
        scope: TableScope,
        *,
        slice_size: SliceSize = SLICE_SIZE,
        engine: str = "hive",
        columns: StructType | None = None,
    ) -> None:
        """Raises ConfigurationError.

        :param columns: the columns to return, in order; default: all columns of the kind.
        """
        self._kind = kind
        self._origin = origin
        self._scope = scope
        self._slice_size = slice_size
        self._engine = engine
        schema = SCHEMAS[kind]
        self._positions = column_positions(schema if columns is None else columns, schema)
        requested = {schema.names[position] for position in self._positions}
        self._names_only = kind in _NAMES and requested <= _NAMES[kind]

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Accepts the conditions that it can apply exactly, and returns the others to Spark."""
        columns = SCHEMAS[self._kind].names
        for condition in filters:
            path: tuple[str, ...] = getattr(condition, "attribute", ())
            column = ".".join(path)
            if column not in NAME_COLUMNS or column not in columns or not self._narrow(column, condition):
                yield condition

    def _narrow(self, column: str, condition: Filter) -> bool:
        if isinstance(condition, EqualNullSafe) and condition.value is None and column == "partition":
            return False  # selects statistics of whole tables
        if isinstance(condition, EqualTo | EqualNullSafe):
            # Names are never null otherwise: a comparison with null selects nothing.
            self._scope = self._scope.narrowed(column, [] if condition.value is None else [condition.value])
        elif isinstance(condition, In):
            self._scope = self._scope.narrowed(column, [value for value in condition.value if value is not None])
        elif isinstance(condition, StringStartsWith):
            self._scope = self._scope.beginning(column, condition.value)
        else:
            return False
        return True

    def partitions(self) -> Sequence[InputPartition]:
        return for_tasks(self._slices(), self._origin)

    def _slices(self) -> list[InputPartition]:
        with self._origin.reading() as reader:
            if self._kind == "databases":
                slices: list[InputPartition] = [
                    DatabaseSlice(catalog, tuple(names)) for catalog, names in self._databases(reader) if names
                ]
                return slices
            # Rows of a whole table have no partition name, and no condition on names is true for null.
            of_tables = self._kind != "partitions" and not self._scope.narrows("partition")
            slices = list(self._table_slices(reader)) if of_tables else []
            if self._kind in ("partitions", "statistics"):
                slices.extend(self._partition_slices(reader))
            return slices

    def _databases(self, reader: CatalogReader) -> Iterator[tuple[str, list[str]]]:
        for catalog in reader.catalog_names():
            if self._scope.admits(catalog):
                names = reader.database_names(catalog)
                yield catalog, [name for name in names if self._scope.admits(catalog, name)]

    def _tables(self, reader: CatalogReader) -> Iterator[tuple[str, str, list[str]]]:
        for catalog, databases in self._databases(reader):
            for database in databases:
                names = reader.table_names(catalog, database)
                yield catalog, database, [name for name in names if self._scope.admits(catalog, database, name)]

    def _table_slices(self, reader: CatalogReader) -> Iterator[TableSlice]:
        size = self._slice_size.tables
        for catalog, database, names in self._tables(reader):
            for some in batches(names, size):
                yield TableSlice(catalog, database, tuple(some))

    def _partition_slices(self, reader: CatalogReader) -> Iterator[PartitionSlice]:
        """See `packed`. A task does not read tables of several databases."""
        for catalog, database, names in self._tables(reader):
            ranges = reader.partition_ranges(catalog, database, names, self._slice_size.partitions)
            for some in packed(ranges, self._slice_size):
                yield PartitionSlice(some)

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        found = self._rows(partition)
        if self._positions == list(range(len(SCHEMAS[self._kind].names))):
            return found
        if len(self._positions) == 1:
            return ((row[self._positions[0]],) for row in found)
        return map(itemgetter(*self._positions), found) if self._positions else (() for _ in found)

    def _rows(self, partition: InputPartition) -> Iterator[rows.Row]:
        partition, origin = in_task(partition, self._origin)
        with origin.reading() as reader:
            if isinstance(partition, DatabaseSlice):
                yield from self._read_databases(reader, partition)
            elif isinstance(partition, TableSlice):
                yield from self._read_tables(reader, partition)
            elif isinstance(partition, PartitionSlice):
                for part in partition.ranges:
                    yield from self._read_partitions(reader, part)

    def _read_databases(self, reader: CatalogReader, part: DatabaseSlice) -> Iterator[rows.Row]:
        if self._names_only:
            for name in part.names:
                yield self._named(part.catalog, name)
            return
        for database in reader.databases(part.catalog, part.names):
            yield rows.database_row(database, part.catalog)

    def _read_tables(self, reader: CatalogReader, part: TableSlice) -> Iterator[rows.Row]:
        if self._names_only:
            for name in part.tables:
                yield self._named(part.catalog, part.database, name)
            return
        for table in reader.tables(part.catalog, part.database, part.tables):
            table_name = TableName(part.catalog, part.database, table.tableName)
            if self._kind == "tables":
                yield rows.table_row(table, table_name)
            elif self._kind == "columns":
                yield from rows.column_rows(table, table_name)
            else:
                for statistics in reader.table_statistics(table, self._engine):
                    yield from rows.statistics_rows(statistics, table_name, self._engine)

    def _named(self, *names: Any) -> rows.Row:
        """A row with these values in its first columns, and null in the others."""
        return (*names, *(None,) * (len(SCHEMAS[self._kind].names) - len(names)))

    def _read_partitions(self, reader: CatalogReader, part: PartitionRange) -> Iterator[rows.Row]:
        name = part.table
        if self._scope.narrows("partition"):
            part = PartitionRange(name, names=tuple(filter(self._admits_in(name), reader.names_in(part))))
        if self._names_only:
            for partition_name in reader.names_in(part):
                yield self._named(*name, partition_name, values_of_name(partition_name))
        elif self._kind == "partitions":
            for partition_name, partition in reader.partitions(part):
                yield rows.partition_row(partition, partition_name, name)
        else:
            yield from self._read_statistics(reader, name, reader.names_in(part))

    def _admits_in(self, table: TableName) -> Callable[[str], bool]:
        return lambda partition_name: self._scope.admits(*table, partition_name)

    def _read_statistics(self, reader: CatalogReader, name: TableName, names: list[str]) -> Iterator[rows.Row]:
        found = reader.tables(name.catalog, name.database, [name.table])
        for some in batches(names, _NAMES_OF_A_READ) if found else ():
            for statistics in reader.partition_statistics(found[0], some, self._engine):
                yield from rows.statistics_rows(statistics, name, self._engine)
