"""What a run of the job computes: the tables it may work on, and of each the partitions that need it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hms_cache.client import MetastoreClient
from hms_cache.jobs.sources.metastore_reader import MetastoreReader
from hms_cache.jobs.sources.scope import TableScope
from hms_cache.jobs.statistics.changes import Changes
from hms_cache.jobs.statistics.columns import StatisticsColumn, statistics_columns
from hms_cache.jobs.statistics.data_files import UnitFiles
from hms_cache.jobs.statistics.reading import unreadable_partitions
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.metadata.object_names import TableName, table_name
from hms_cache.metadata.partition_names import values_of_name
from hms_cache.store.rows.table_kinds import is_transactional
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException, Table

MERGED = "hms_cache.statistics.partitions"
"""The parameter of a partitioned table: `TableWork.digest` as of its last merge."""

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

    files: Mapping[str | None, UnitFiles] = field(default_factory=dict)
    """Of each partition, or of the table without partitions, as the run found them at its beginning."""

    @property
    def name(self) -> TableName:
        return table_name(self.table.catName, self.table.dbName, self.table.tableName)

    @property
    def has_work(self) -> bool:
        """Whether something is to be computed or merged."""
        return bool(self.chosen) or self.is_chosen or (self.is_touched and bool(self.names))

    def choose(
        self,
        *,
        everything: bool,
        changes: Changes | None,
        lacking: set[str | None],
        files: Mapping[str | None, UnitFiles],
    ) -> None:
        """Decides by what the files say; what they cannot tell of, a partition that lacks a column's statistics, by
        `lacking`: partition names, None for the table itself. `changes`, of the log, are only told in the plan: an
        event does not make data other than it is, and a missing one does not keep it as it was.
        """
        changes = changes or Changes()
        self.reason = "asked for" if everything else ""
        self.files = files

        def is_chosen(unit: str | None) -> bool:
            found = files.get(unit)
            if found is None or found.figures is None:
                return False
            return everything or unit in lacking or not found.is_current

        def has_changed(unit: str | None) -> bool:
            found = files.get(unit)
            if found is None or found.is_current:
                return False
            told = unit is not None and bool(changes.partitions) and tuple(values_of_name(unit)) in changes.partitions
            return told or found.recorded is not None or (unit is None and changes.touched)

        self.lacking = len(lacking)
        if self.names is None:
            self.changed, self.is_chosen = int(has_changed(None)), is_chosen(None)
            return
        self.changed = sum(map(has_changed, self.names))
        self.chosen = [name for name in self.names if name not in self.unreadable and is_chosen(name)]
        is_whole = (self.table.parameters or {}).get(MERGED) == self.digest()
        self.is_touched = bool(self.chosen) or not (is_whole or self.unreadable or self.unlisted)

    @property
    def unlisted(self) -> list[tuple[str | None, str]]:
        """Partitions, or the table without partitions, whose files cannot be listed, and why."""
        return [(unit, found.problem) for unit, found in self.files.items() if found.problem is not None]

    def digest(self) -> str:
        """Of the files of all partitions: what the statistics of the table as a whole were merged from."""
        digest = hashlib.sha256()
        for name in sorted(self.names or ()):
            found = self.files.get(name)
            digest.update(f"{name}\0{found.figures if found is not None else None}\n".encode())
        return f"{len(self.names or ())}:{digest.hexdigest()[:32]}"

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
