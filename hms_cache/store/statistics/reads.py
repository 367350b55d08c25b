"""Reads column statistics from the database.

Facts: `ObjectStore.getTableColumnStatistics`, `getPartitionColumnStatistics`, `get_aggr_stats_for` (Hive 4.0.1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, select

from hms_cache.metadata.object_names import TableName
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.features import SchemaFeatures
from hms_cache.store.partitions.partitioned_tables import PartitionedTable
from hms_cache.store.partitions.selection import MAX_LISTED, NAMES_IN_A_STATEMENT, batches_of_texts
from hms_cache.store.rows.comparable_texts import comparable_rows, possible_names
from hms_cache.store.rows.parameters import COLUMN_STATS_ACCURATE
from hms_cache.store.rows.statistics_rows import LAST_ANALYZED, ROW_WIDTH, statistics_columns, statistics_of_row
from hms_cache.store.rows.statistics_validity import aborted_write_ids, are_statistics_valid
from hms_cache.store.schema import PART_COL_STATS, PARTITION_PARAMS, PARTITIONS, TAB_COL_STATS
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatistics, ColumnStatisticsDesc, ColumnStatisticsObj


class StatisticsReader:
    """Reads statistics on a connection, with the settings of a store."""

    def __init__(self, context: StoreContext, connection: Connection, *, whole: bool = False) -> None:
        """`whole`: reads bit vectors and histograms even if the settings exclude them from replies."""
        settings = context.settings.catalog
        self._connection = connection
        self._features = features_of(connection)
        self._bit_vectors = whole or settings.statistics_sketches
        self._histograms = whole or settings.statistics_histograms

    def of_table(self, table_id: int, columns: Iterable[str], engine: str) -> tuple[list[ColumnStatisticsObj], int]:
        """Statistics of the requested columns that have any, by column name, and the time of the latest (epoch
        seconds). One statement."""
        found = sorted(self.of_table_each(table_id, columns, engine), key=lambda one: _column(one[0]))
        return [statistics for statistics, _ in found], max((made_s for _, made_s in found), default=0)

    def of_table_each(
        self, table_id: int, columns: Iterable[str], engine: str
    ) -> list[tuple[ColumnStatisticsObj, int]]:
        """(statistics, time in epoch seconds) of the requested columns that have any, unordered. One statement."""
        requested = {column.lower() for column in columns}
        statement = self._of(TAB_COL_STATS, engine).where(TAB_COL_STATS.c.TBL_ID == bindparam("table_id"))
        parameters: dict[str, Any] = {"table_id": table_id, "engine": engine}
        statement = self._of_columns(statement, TAB_COL_STATS, requested, parameters)
        rows = self._connection.execute(statement, parameters).all()
        found = ((statistics_of_row(row), row[LAST_ANALYZED]) for row in rows)
        return [(one, made_s) for one, made_s in found if one is not None and _is_requested(one, requested)]

    def of_partitions(
        self, table: PartitionedTable, names: Sequence[str], columns: Iterable[str], engine: str
    ) -> Iterator[tuple[str, ColumnStatisticsObj, int]]:
        """(partition name, statistics, time) of the named partitions and columns, unordered.

        One statement per 5,000 names; one statement in all for more than 20,000.
        """
        selected, requested = set(names), {column.lower() for column in columns}
        statement = (
            self._of(PART_COL_STATS, engine, PARTITIONS.c.PART_NAME)
            .select_from(PARTITIONS.join(PART_COL_STATS, PART_COL_STATS.c.PART_ID == PARTITIONS.c.PART_ID))
            .where(PARTITIONS.c.TBL_ID == bindparam("table_id"))
        )
        parameters: dict[str, Any] = {"table_id": table.table_id, "engine": engine}
        statement = self._of_columns(statement, PART_COL_STATS, requested, parameters)
        runs = [parameters]
        if len(selected) <= MAX_LISTED:
            statement = statement.where(PARTITIONS.c.PART_NAME.in_(bindparam("names", expanding=True)))
            batches = batches_of_texts(self._connection, selected, NAMES_IN_A_STATEMENT)
            runs = [{**parameters, "names": some} for some in batches]
        for run in runs:
            for row in comparable_rows(self._connection, statement, run):
                name = row[ROW_WIDTH]
                statistics = statistics_of_row(row)
                if name in selected and statistics is not None and _is_requested(statistics, requested):
                    yield name, statistics, row[LAST_ANALYZED]

    def _of_columns(
        self, statement: Select[Any], table: Any, requested: Collection[str], parameters: dict[str, Any]
    ) -> Select[Any]:
        """Adds a condition for these columns. If there are too many for a statement, it selects all columns, and the
        caller filters."""
        names = possible_names(self._connection, sorted(requested), table.c.COLUMN_NAME)
        if len(names) > MAX_LISTED:
            return statement
        parameters["columns"] = names
        return statement.where(table.c.COLUMN_NAME.in_(bindparam("columns", expanding=True)))

    def _of(self, table: Any, engine: str, *more: Any) -> Select[Any]:
        columns = statistics_columns(table, self._features, bit_vectors=self._bit_vectors, histograms=self._histograms)
        statement = select(*columns, *more)
        return statement.where(of_engine(table, self._features, engine))


def of_engine(table: Any, features: SchemaFeatures, engine: str) -> Any:
    """A condition on the engine of the statistics, with the parameter `engine`. Before Hive 4 the only engine was
    `hive`."""
    if features.has(table.c.ENGINE):
        return table.c.ENGINE == bindparam("engine")
    return bindparam("engine") == "hive"


def _column(statistics: ColumnStatisticsObj) -> str:
    return str(statistics.colName)


def _is_requested(statistics: ColumnStatisticsObj, requested: Collection[str]) -> bool:
    """MySQL and MariaDB also find `a` for `a `."""
    return _column(statistics).lower() in requested


_CLAIMS = (
    select(PARTITIONS.c.PART_NAME, PARTITION_PARAMS.c.PARAM_VALUE, PARTITIONS.c.WRITE_ID)
    .select_from(
        PARTITIONS.outerjoin(
            PARTITION_PARAMS,
            and_(
                PARTITION_PARAMS.c.PART_ID == PARTITIONS.c.PART_ID,
                PARTITION_PARAMS.c.PARAM_KEY == COLUMN_STATS_ACCURATE,
            ),
        )
    )
    .where(PARTITIONS.c.TBL_ID == bindparam("table_id"))
)
_CLAIMS_OF_NAMES = _CLAIMS.where(PARTITIONS.c.PART_NAME.in_(bindparam("names", expanding=True)))


def partitions_with_valid_statistics(
    connection: Connection, table: PartitionedTable, names: Sequence[str], valid_write_ids: str
) -> set[str]:
    """Those of the named partitions whose statistics are valid for a reader with this snapshot."""
    if not features_of(connection).has(PARTITIONS.c.WRITE_ID):
        # Before Hive 4 statistics have no write id and are valid for everybody.
        return set(names)
    selected = set(names)
    statement = _CLAIMS
    runs: list[dict[str, Any]] = [{"table_id": table.table_id}]
    if len(selected) <= MAX_LISTED:
        statement = _CLAIMS_OF_NAMES
        batches = batches_of_texts(connection, selected, NAMES_IN_A_STATEMENT)
        runs = [{"table_id": table.table_id, "names": some} for some in batches]
    claims = [row for run in runs for row in comparable_rows(connection, statement, run) if row[0] in selected]
    aborted = aborted_write_ids(
        connection, (table.catalog, table.database, table.name), {write_id for _, _, write_id in claims}
    )
    valid = set()
    for name, claim, write_id in claims:
        parameters = {} if claim is None else {COLUMN_STATS_ACCURATE: claim}
        if are_statistics_valid(parameters, write_id, valid_write_ids, aborted=aborted):
            valid.add(name)
    return valid


def statistics_of_partitions(
    found: Iterable[tuple[str, ColumnStatisticsObj, int]], table: TableName, engine: str
) -> list[ColumnStatistics]:
    """One struct per partition, by name; the columns by name."""
    by_name: dict[str, ColumnStatistics] = {}
    for name, statistics, last_analyzed_s in found:
        known = by_name.get(name)
        if known is None:
            description = ColumnStatisticsDesc(
                isTblLevel=False,
                dbName=table.database,
                tableName=table.table,
                partName=name,
                lastAnalyzed=last_analyzed_s,
                catName=table.catalog,
            )
            known = by_name[name] = ColumnStatistics(statsDesc=description, statsObj=[], engine=engine)
        known.statsObj.append(statistics)
        known.statsDesc.lastAnalyzed = max(known.statsDesc.lastAnalyzed, last_analyzed_s)
    for one in by_name.values():
        one.statsObj.sort(key=_column)
    return [by_name[name] for name in sorted(by_name)]
