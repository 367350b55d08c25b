"""Reads of tables. Facts: `ObjectStore.getTable`, `getTables`, `getTableMeta`, `listTableNamesByFilter` (Hive 4.0)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, select

from hms_cache.expressions import filter_errors_for_clients, parse_filter
from hms_cache.expressions.table_filter import TableProperties, bind_table_filter
from hms_cache.metadata.names import matching_names, name_pattern, normalize_catalog, normalize_identifier, qualified
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.read_version import ANY_VERSION, ReadVersion
from hms_cache.store.contract.tables import TableReads
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.read_plans import execute_plan
from hms_cache.store.engine.text_conditions import may_match
from hms_cache.store.engine.work_units import run_read
from hms_cache.store.rows.database_rows import read_database_id
from hms_cache.store.rows.parameters import set_basic_statistics_accurate, with_accurate_columns
from hms_cache.store.rows.statistics_validity import aborted_write_ids, are_statistics_valid
from hms_cache.store.rows.table_kinds import is_transactional
from hms_cache.store.rows.table_rows import MATERIALIZED_VIEW, TableRow, read_tables, table_plan
from hms_cache.store.schema import DBS, TABLE_PARAMS, TBLS
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    ColumnStatistics,
    NoSuchObjectException,
    PrincipalType,
    Table,
    TableMeta,
    UnknownDBException,
)

_MAX_TYPES_IN_SQL = 100
"""There are four types. Databases limit the parameters of a statement, and a client may send thousands of types."""

ColumnStatisticsReader = Callable[[Connection, TableRow, str, str | None], ColumnStatistics | None]
"""Reads the column statistics of a table: (connection, table, engine, valid write ids)."""


class StoredTables(TableReads):
    """`TableReads` over the database."""

    def __init__(self, context: StoreContext, read_column_statistics: ColumnStatisticsReader) -> None:
        self._context = context
        self._read_column_statistics = read_column_statistics

    def get_table(
        self, table: TableName, *, version: ReadVersion = ANY_VERSION, statistics_engine: str | None = None
    ) -> Table:
        """See `TableReads.get_table`. One round trip; one more for a skewed table, three more for a materialized
        view."""

        def read(connection: Connection) -> Table:
            found = _required(execute_plan(connection, table_plan(connection, *table)), table)
            check_table_statistics(connection, found.table, version.valid_write_ids)
            if statistics_engine is not None:
                # After `check_table_statistics`: it removes claims about statistics that the reader must not trust.
                found.table.colStats = with_accurate_columns(
                    self._read_column_statistics(connection, found, statistics_engine, version.valid_write_ids),
                    found.table.parameters,
                )
            return found.table

        return run_read(self._context.database, read)

    def get_tables(
        self, database: DatabaseName, names: Sequence[str], *, version: ReadVersion = ANY_VERSION
    ) -> list[Table]:
        """See `TableReads.get_tables`. As many statements as for one table, per some thousands of names."""
        requested = list(dict.fromkeys(normalize_identifier(name) for name in names))

        def read(connection: Connection) -> dict[str, Table]:
            found = read_tables(connection, *database, requested)
            if not found and read_database_id(connection, *database) is None:
                name = qualified(*database)
                raise UnknownDBException(f"Could not find database {name}: database {name}")
            for row in found:
                check_table_statistics(connection, row.table, version.valid_write_ids)
            return {row.name: row.table for row in found}

        found = run_read(self._context.database, read)
        return [found[name] for name in requested if name in found]

    def get_table_names(
        self, database: DatabaseName, pattern: str | None = None, table_type: str | None = None
    ) -> list[str]:
        """See `TableReads.get_table_names`."""
        statement = _in_database(select(TBLS.c.TBL_NAME), database).where(*may_match(TBLS.c.TBL_NAME, pattern))
        if table_type is not None:
            statement = statement.where(TBLS.c.TBL_TYPE == table_type)
        names = run_read(self._context.database, lambda connection: connection.execute(statement).scalars().all())
        return matching_names(names, pattern)

    def get_table_names_by_filter(self, database: DatabaseName, filter_text: str, limit: int = -1) -> list[str]:
        """See `TableReads.get_table_names_by_filter`."""
        with filter_errors_for_clients():
            table_filter = bind_table_filter(parse_filter(filter_text, self._context.filter_limits))
        keys = sorted(table_filter.parameter_keys)

        def read(connection: Connection) -> list[TableProperties]:
            if read_database_id(connection, *database) is None:
                raise UnknownDBException(f"Could not find database {qualified(*database)}")
            return _read_properties(connection, database, keys)

        tables = run_read(self._context.database, read)
        with filter_errors_for_clients():
            names = sorted(table_filter.names(tables, self._context.filter_limits))
        return names if limit < 0 else names[:limit]

    def get_table_meta(
        self, catalog: str, database_pattern: str | None, table_pattern: str | None, table_types: Sequence[str] = ()
    ) -> list[TableMeta]:
        """See `TableReads.get_table_meta`."""
        conditions = [*may_match(DBS.c.NAME, database_pattern), *may_match(TBLS.c.TBL_NAME, table_pattern)]
        types = frozenset(table_types)
        if 0 < len(types) <= _MAX_TYPES_IN_SQL:
            conditions.append(TBLS.c.TBL_TYPE.in_(sorted(types)))
        found = self._read_meta(normalize_catalog(catalog), conditions)
        if len(types) > _MAX_TYPES_IN_SQL:
            found = [meta for meta in found if meta.tableType in types]
        in_database, in_table = _matcher(database_pattern), _matcher(table_pattern)
        return [meta for meta in found if in_database(meta.dbName) and in_table(meta.tableName)]

    def read_meta_of_database(self, database: DatabaseName) -> list[TableMeta]:
        """See `StoreReads.read_meta_of_database`."""
        return self._read_meta(database.catalog, [DBS.c.NAME == database.database])

    def _read_meta(self, catalog: str, conditions: Sequence[ColumnElement[bool]]) -> list[TableMeta]:
        statement = (
            select(
                DBS.c.NAME.label("DATABASE_NAME"),
                TBLS.c.TBL_NAME,
                TBLS.c.TBL_TYPE,
                TBLS.c.OWNER,
                TBLS.c.OWNER_TYPE,
                TABLE_PARAMS.c.PARAM_VALUE.label("COMMENTS"),
            )
            .select_from(
                TBLS.join(DBS, DBS.c.DB_ID == TBLS.c.DB_ID).outerjoin(
                    TABLE_PARAMS, (TABLE_PARAMS.c.TBL_ID == TBLS.c.TBL_ID) & (TABLE_PARAMS.c.PARAM_KEY == "comment")
                )
            )
            .where(DBS.c.CTLG_NAME == catalog, *conditions)
        )
        rows = run_read(self._context.database, lambda connection: connection.execute(statement).all())
        return [
            TableMeta(
                dbName=row.DATABASE_NAME,
                tableName=row.TBL_NAME,
                tableType=row.TBL_TYPE,
                comments=row.COMMENTS,
                catName=catalog,
                ownerName=row.OWNER,
                ownerType=PrincipalType._NAMES_TO_VALUES.get(row.OWNER_TYPE or "USER"),
            )
            for row in sorted(rows, key=lambda row: (row.DATABASE_NAME, row.TBL_NAME))
        ]

    def get_materialized_view_names(self, catalog: str, database: str | None = None) -> list[tuple[str, str]]:
        """See `TableReads.get_materialized_view_names`."""
        statement = (
            select(DBS.c.NAME, TBLS.c.TBL_NAME)
            .join(DBS, DBS.c.DB_ID == TBLS.c.DB_ID)
            .where(
                DBS.c.CTLG_NAME == normalize_catalog(catalog),
                TBLS.c.TBL_TYPE == MATERIALIZED_VIEW,
                TBLS.c.IS_REWRITE_ENABLED == True,  # noqa: E712 - a column
            )
        )
        if database is not None:
            statement = statement.where(DBS.c.NAME == normalize_identifier(database))
        rows = run_read(self._context.database, lambda connection: connection.execute(statement).all())
        return sorted((row[0], row[1]) for row in rows)


def _required(found: TableRow | None, table: TableName) -> TableRow:
    """The table. Raises NoSuchObjectException with Hive's text if it does not exist."""
    if found is None:
        raise NoSuchObjectException(f"{table.as_sent} table not found")
    return found


def check_table_statistics(connection: Connection, table: Table, valid_write_ids: str | None) -> None:
    """`check_statistics_by_list`, and a check of the transaction tables if it could matter (one statement)."""
    check_statistics_by_list(table, valid_write_ids)
    if table.isStatsCompliant and is_aborted(connection, table):
        _distrust(table)


def is_aborted(connection: Connection, table: Table) -> bool:
    """Whether the table's statistics were stored by a transaction that was aborted. At most one statement."""
    return bool(aborted_write_ids(connection, (table.catName, table.dbName, table.tableName), [table.writeId]))


def check_statistics_by_list(table: Table, valid_write_ids: str | None) -> None:
    """Sets `isStatsCompliant` of an unpartitioned transactional table for a reader with this list, by the list only.

    If the reader must not trust the statistics, the returned parameters do not claim that they are accurate. Without a
    list nothing is changed. Source: `ObjectStore.isCurrentStatsValidForTheQuery`.
    """
    if valid_write_ids is None or table.partitionKeys or not is_transactional(table):
        return
    table.isStatsCompliant = are_statistics_valid(table.parameters, table.writeId, valid_write_ids)
    if not table.isStatsCompliant:
        _distrust(table)


def _distrust(table: Table) -> None:
    table.isStatsCompliant = False
    set_basic_statistics_accurate(table.parameters, False)


def _in_database(statement: Select[Any], database: DatabaseName) -> Select[Any]:
    return statement.join(DBS, DBS.c.DB_ID == TBLS.c.DB_ID).where(
        DBS.c.CTLG_NAME == database.catalog, DBS.c.NAME == database.database
    )


def _matcher(pattern: str | None) -> Callable[[str], object]:
    return (lambda _: True) if pattern is None or pattern == "*" else name_pattern(pattern).matches


def _read_properties(
    connection: Connection, database: DatabaseName, parameter_keys: Sequence[str]
) -> list[TableProperties]:
    """The properties that a filter can use, of all tables of a database; at most two statements."""
    rows = connection.execute(
        _in_database(
            select(TBLS.c.TBL_ID, TBLS.c.TBL_NAME, TBLS.c.TBL_TYPE, TBLS.c.OWNER, TBLS.c.LAST_ACCESS_TIME), database
        )
    ).all()
    parameters: dict[int, dict[str, str]] = {}
    if parameter_keys and rows:
        found = connection.execute(
            _in_database(
                select(TABLE_PARAMS.c.TBL_ID, TABLE_PARAMS.c.PARAM_KEY, TABLE_PARAMS.c.PARAM_VALUE).join(
                    TBLS, TBLS.c.TBL_ID == TABLE_PARAMS.c.TBL_ID
                ),
                database,
            ).where(TABLE_PARAMS.c.PARAM_KEY.in_(list(parameter_keys)), TABLE_PARAMS.c.PARAM_VALUE.is_not(None))
        )
        for owner, key, value in found:
            parameters.setdefault(owner, {})[key] = value
    return [
        TableProperties(
            table_name=row.TBL_NAME,
            table_type=row.TBL_TYPE,
            owner=row.OWNER,
            last_access_time_s=row.LAST_ACCESS_TIME,
            parameters=parameters.get(row.TBL_ID, {}),
        )
        for row in rows
    ]
