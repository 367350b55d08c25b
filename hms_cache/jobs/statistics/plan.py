"""What a run of the job computes: the tables it may work on, and of each the partitions that need it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hms_cache.client import MetastoreClient
from hms_cache.jobs.sources.metastore_reader import MetastoreReader
from hms_cache.jobs.sources.scope import TableScope
from hms_cache.jobs.statistics.changes import Changes
from hms_cache.jobs.statistics.columns import StatisticsColumn, statistics_columns
from hms_cache.jobs.statistics.reading import unreadable_partitions
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.metadata.partition_names import values_of_name
from hms_cache.notifications.scope import TableName, table_name
from hms_cache.store.rows.table_kinds import is_transactional
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException, Table

_WITH_ROWS = frozenset({"MANAGED_TABLE", "EXTERNAL_TABLE"})


@dataclass(slots=True)
class TableWork:
    """A table, and what is to be computed of it."""

    table: Table
    columns: list[StatisticsColumn]
    names: list[str] | None
    """All its partitions; None for a table without partition keys."""

    unreadable: frozenset[str] = frozenset()
    changed: int = 0
    lacking: int = 0
    chosen: list[str] = field(default_factory=list)
    is_chosen: bool = False
    """For a table without partitions."""

    reason: str = ""
    """Why all of it, where not its events or what lacks decide."""

    is_touched: bool = False
    """Partitions came, went or changed: the table as a whole has other statistics."""

    @property
    def name(self) -> TableName:
        return table_name(self.table.catName, self.table.dbName, self.table.tableName)

    @property
    def has_work(self) -> bool:
        """Whether something is to be computed or merged."""
        return bool(self.chosen) or self.is_chosen or (self.is_touched and bool(self.names))

    def choose(self, *, everything: bool, changes: Changes | None, lacking: set[str | None]) -> None:
        """Decides by what is known of the table. `lacking`: partition names, None for the table itself."""
        changes = changes or Changes()
        if everything:
            self.reason = "asked for"
        elif changes.lost:
            self.reason = changes.lost
        elif changes.whole and self.names is not None:
            self.reason = "changed as a whole"
        self.is_touched = changes.touched
        if self.names is None:
            self.changed, self.lacking = int(changes.touched), int(None in lacking)
            self.is_chosen = bool(self.reason) or changes.touched or None in lacking
            return
        changed = {
            name for name in self.names if changes.partitions and tuple(values_of_name(name)) in changes.partitions
        }
        self.changed, self.lacking = len(changed), len(lacking)
        wanted = set(self.names) if self.reason else changed | {name for name in lacking if name is not None}
        self.chosen = [name for name in self.names if name in wanted and name not in self.unreadable]

    def plan_row(self) -> tuple[object, ...]:
        """A line of the plan."""
        partitions = None if self.names is None else len(self.names)
        chosen = int(self.is_chosen) if self.names is None else len(self.chosen)
        return (
            f"{self.table.dbName}.{self.table.tableName}",
            len(self.columns),
            partitions,
            self.changed,
            self.lacking,
            chosen,
            self.reason or None,
        )


PLAN_COLUMNS = ("table", "columns", "partitions", "changed", "lacking", "to compute", "all because")


def tables_in(metastore: str, scope: TableScope) -> list[TableWork]:
    """The tables of the scope that Spark reads as Hive does, with all their partitions' names.

    Raises MetastoreUnavailableError.
    """
    found: list[TableWork] = []
    reader = MetastoreReader(metastore)
    try:
        with MetastoreClient(metastore) as client:
            for table in _tables(reader, scope):
                columns = statistics_columns(table)
                if not columns or not _is_readable(table):
                    continue
                names = _partition_names(client, table) if table.partitionKeys else None
                unreadable = frozenset(unreadable_partitions(table, names)) if names else frozenset()
                found.append(TableWork(table, columns, names, unreadable))
    finally:
        reader.close()
    return found


def _tables(reader: MetastoreReader, scope: TableScope) -> Iterable[Table]:
    # Spark reads the tables of one catalog of a metastore.
    if not scope.admits(DEFAULT_CATALOG):
        return
    for database in reader.database_names(DEFAULT_CATALOG):
        if scope.admits(DEFAULT_CATALOG, database):
            names = [
                name
                for name in reader.table_names(DEFAULT_CATALOG, database)
                if scope.admits(DEFAULT_CATALOG, database, name)
            ]
            yield from reader.tables(DEFAULT_CATALOG, database, names)


def _is_readable(table: Table) -> bool:
    """Iceberg, Delta and others name their format in `table_type` or the provider, and keep statistics themselves."""
    parameters: Mapping[str, str] = table.parameters or {}
    if table.tableType not in _WITH_ROWS or is_transactional(table):
        return False
    provider = parameters.get("spark.sql.sources.provider", "hive").lower()
    return "table_type" not in parameters and provider in _PROVIDERS and "storage_handler" not in parameters


_PROVIDERS = frozenset({"hive", "parquet", "orc", "csv", "json", "text", "avro"})


def _partition_names(client: MetastoreClient, table: Table) -> list[str]:
    try:
        names: Sequence[str] = client.call("get_partition_names", table.dbName, table.tableName, -1)
    except NoSuchObjectException:
        return []
    return list(names)
