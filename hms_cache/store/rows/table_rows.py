"""Tables as rows: read in two statements for any number of tables, and one more for skewed ones or materialized views.

The first statement reads the single-valued columns of TBLS, DBS, SDS and SERDES, the second one all lists and maps, as
a UNION ALL over eight tables. For a single table both are sent together (`table_plan`). Result: as Hive's
`ObjectStore.convertToTable` (3.1, 4.0).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row

from hms_cache.batches import batches
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.read_plans import Plan, PlannedQuery
from hms_cache.store.rows.comparable_texts import comparable_rows, possible_names
from hms_cache.store.rows.table_statements import (
    BUCKET,
    COLUMN,
    DETAILS,
    DETAILS_BY_NAME,
    PARAMETER,
    PARTITION_KEY,
    SERDE_PARAMETER,
    SKEW,
    SKEWED,
    SORT,
    TABLE_PARAMETER,
    creation_metadata_statement,
    main_statements,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CreationMetadata,
    FieldSchema,
    Order,
    PrincipalType,
    SerDeInfo,
    SkewedInfo,
    SourceTable,
    StorageDescriptor,
    Table,
)

MANAGED_TABLE = "MANAGED_TABLE"
EXTERNAL_TABLE = "EXTERNAL_TABLE"
VIRTUAL_VIEW = "VIRTUAL_VIEW"
MATERIALIZED_VIEW = "MATERIALIZED_VIEW"

MANY_NAMES = 5_000
"""Names or ids in one IN list: below SQLite's 32,766 variables, even if a statement uses the list several times."""


@dataclass(slots=True)
class TableRow:
    """A table with its ids."""

    table: Table
    table_id: int
    database_id: int
    sd_id: int | None
    cd_id: int | None
    serde_id: int | None

    @property
    def name(self) -> str:
        """The table's name as stored."""
        return str(self.table.tableName)


@dataclass(slots=True)
class _Details:
    """Lists and maps of the tables being read, by owner id."""

    columns: dict[int, list[tuple[int, FieldSchema]]] = field(default_factory=dict)
    partition_keys: dict[int, list[tuple[int, FieldSchema]]] = field(default_factory=dict)
    table_parameters: dict[int, dict[str, str]] = field(default_factory=dict)
    parameters: dict[int, dict[str, str]] = field(default_factory=dict)
    serde_parameters: dict[int, dict[str, str]] = field(default_factory=dict)
    buckets: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    sorts: dict[int, list[tuple[int, Order]]] = field(default_factory=dict)
    skewed_columns: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    skewed_values: dict[int, list[list[str]]] = field(default_factory=dict)
    skewed_locations: dict[int, dict[tuple[str, ...], str]] = field(default_factory=dict)


def read_table(connection: Connection, catalog: str, database: str, table: str) -> TableRow | None:
    """The table with this (normalized) name; None if it does not exist."""
    statement = main_statements(features_of(connection).missing_columns).by_name
    rows = comparable_rows(connection, statement, {"catalog": catalog, "database": database, "table": table})
    return _complete(connection, rows[:1])[0] if rows else None


def table_plan(connection: Connection, catalog: str, database: str, table: str) -> Plan[TableRow | None]:
    """Like `read_table`, on a connection on which all statements show one snapshot. One round trip; further ones for a
    skewed table or a materialized view."""
    query = main_statements(features_of(connection).missing_columns).query_by_name
    names = {"catalog": catalog, "database": database, "table": table}
    rows, details = yield [
        PlannedQuery(query, names, compares_texts=True),
        PlannedQuery(DETAILS_BY_NAME, names, compares_texts=True),
    ]
    return _complete(connection, rows, details)[0] if rows else None


def read_tables(connection: Connection, catalog: str, database: str, names: Sequence[str]) -> list[TableRow]:
    """The tables with these names that exist, by name; the same statements per `MANY_NAMES` names."""
    found: list[TableRow] = []
    statement = main_statements(features_of(connection).missing_columns).by_names
    names = possible_names(connection, names)
    for some in batches(names, MANY_NAMES):
        rows = connection.execute(statement, {"catalog": catalog, "database": database, "tables": list(some)}).all()
        if rows:
            found.extend(_complete(connection, rows))
    return sorted(found, key=lambda row: row.name)


def _complete(
    connection: Connection,
    rows: Sequence[Row[Any]],
    found: Iterable[Any] | None = None,
    *,
    with_creation_metadata: bool = True,
) -> list[TableRow]:
    """`found`: the rows of their details; None: not read yet."""
    details = _details_of(connection, _read_details(connection, rows) if found is None else found)
    tables = [TableRow(_table(row, details), row.TBL_ID, row.DB_ID, row.SD_ID, row.CD_ID, row.SERDE_ID) for row in rows]
    if with_creation_metadata:
        views = [found.table for found in tables if found.table.tableType == MATERIALIZED_VIEW]
        if views:
            _add_creation_metadata(connection, views)
    return tables


def _read_details(connection: Connection, rows: Iterable[Row[Any]]) -> Iterable[Any]:
    ids: dict[str, list[int]] = {"table_ids": [], "sd_ids": [], "cd_ids": [], "serde_ids": []}
    for row in rows:
        ids["table_ids"].append(row.TBL_ID)
        if row.SD_ID is not None:
            ids["sd_ids"].append(row.SD_ID)
        if row.CD_ID is not None:
            ids["cd_ids"].append(row.CD_ID)
        if row.SERDE_ID is not None:
            ids["serde_ids"].append(row.SERDE_ID)
    return connection.execute(DETAILS, ids)


def _details_of(connection: Connection, rows: Iterable[Any]) -> _Details:
    details = _Details()
    for kind, owner, position, text, text_2, text_3 in rows:
        if kind == COLUMN:
            details.columns.setdefault(owner, []).append((position, FieldSchema(text, text_2, text_3)))
        elif kind == PARTITION_KEY:
            details.partition_keys.setdefault(owner, []).append((position, FieldSchema(text, text_2, text_3)))
        elif kind == BUCKET:
            details.buckets.setdefault(owner, []).append((position, text or ""))
        elif kind == SORT:
            details.sorts.setdefault(owner, []).append((position, Order(text, int(text_2))))
        elif kind == SKEWED:
            details.skewed_columns.setdefault(owner, []).append((position, text or ""))
        elif text_2 is not None:
            # A null value in a map of parameters counts as absent (MetaStoreServerUtils.trimMapNulls).
            maps = {
                TABLE_PARAMETER: details.table_parameters,
                PARAMETER: details.parameters,
                SERDE_PARAMETER: details.serde_parameters,
            }[kind]
            maps.setdefault(owner, {})[text] = text_2
    if details.skewed_columns:
        _read_skew(connection, list(details.skewed_columns), details)
    return details


def _read_skew(connection: Connection, sd_ids: list[int], details: _Details) -> None:
    lists: dict[tuple[int, int, int, str | None], list[tuple[int, str]]] = {}
    for kind, sd_id, number, position, value, location in connection.execute(SKEW, {"sd_ids": sd_ids}):
        values = lists.setdefault((kind, sd_id, number, location), [])
        if position is not None:
            values.append((position, value or ""))  # a row from Oracle may have NULL for an empty text
    for (kind, sd_id, _, location), values in sorted(lists.items(), key=lambda item: item[0][:3]):
        ordered = [value for _, value in sorted(values)]
        if kind == 0:
            details.skewed_values.setdefault(sd_id, []).append(ordered)
        else:
            details.skewed_locations.setdefault(sd_id, {})[tuple(ordered)] = location or ""


def _in_order(values: Mapping[int, list[tuple[int, Any]]], owner: int | None) -> list[Any]:
    if owner is None:
        return []
    return [value for _, value in sorted(values.get(owner, ()), key=lambda pair: pair[0])]


def _by_key(maps: Mapping[int, dict[Any, str]], owner: int | None) -> dict[Any, str]:
    return {} if owner is None else dict(sorted(maps.get(owner, {}).items()))


def _storage_descriptor(row: Row[Any], details: _Details) -> StorageDescriptor | None:
    sd_id = row.SD_ID
    if sd_id is None:
        return None
    serde = None
    if row.SERDE_ID is not None:
        serde = SerDeInfo(
            name=row.SERDE_NAME,
            serializationLib=row.SLIB,
            parameters=_by_key(details.serde_parameters, row.SERDE_ID),
            description=row.DESCRIPTION,
            serializerClass=row.SERIALIZER_CLASS,
            deserializerClass=row.DESERIALIZER_CLASS,
            serdeType=row.SERDE_TYPE or None,
        )
    return StorageDescriptor(
        cols=_in_order(details.columns, row.CD_ID),
        location=row.LOCATION,
        inputFormat=row.INPUT_FORMAT,
        outputFormat=row.OUTPUT_FORMAT,
        compressed=bool(row.IS_COMPRESSED),
        numBuckets=row.NUM_BUCKETS,
        serdeInfo=serde,
        bucketCols=_in_order(details.buckets, sd_id),
        sortCols=_in_order(details.sorts, sd_id),
        parameters=_by_key(details.parameters, sd_id),
        skewedInfo=SkewedInfo(
            skewedColNames=_in_order(details.skewed_columns, sd_id),
            skewedColValues=details.skewed_values.get(sd_id, []),
            skewedColValueLocationMaps=_by_key(details.skewed_locations, sd_id),
        ),
        storedAsSubDirectories=bool(row.IS_STOREDASSUBDIRECTORIES),
    )


def _table(row: Row[Any], details: _Details) -> Table:
    parameters = _by_key(details.table_parameters, row.TBL_ID)
    return Table(
        tableName=row.TBL_NAME,
        dbName=row.DATABASE_NAME,
        owner=row.OWNER,
        createTime=row.CREATE_TIME,
        lastAccessTime=row.LAST_ACCESS_TIME,
        retention=row.RETENTION,
        sd=_storage_descriptor(row, details),
        partitionKeys=_in_order(details.partition_keys, row.TBL_ID),
        parameters=parameters,
        viewOriginalText=row.VIEW_ORIGINAL_TEXT,
        viewExpandedText=row.VIEW_EXPANDED_TEXT,
        tableType=row.TBL_TYPE or guessed_type(row.VIEW_ORIGINAL_TEXT, parameters),
        temporary=None,
        rewriteEnabled=bool(row.IS_REWRITE_ENABLED),
        catName=row.CTLG_NAME,
        ownerType=PrincipalType._NAMES_TO_VALUES.get(row.OWNER_TYPE or "USER", PrincipalType.USER),
        writeId=row.WRITE_ID or 0,
        id=row.TBL_ID,
    )


def guessed_type(view_text: str | None, parameters: Mapping[str, str]) -> str:
    """The type of a table stored without a type (by metastores before Hive 0.8)."""
    if view_text is not None:
        return VIRTUAL_VIEW
    return EXTERNAL_TABLE if parameters.get("EXTERNAL", "").upper() == "TRUE" else MANAGED_TABLE


def _add_creation_metadata(connection: Connection, views: Collection[Table]) -> None:
    """Sets `creationMetadata` of materialized views; the tables that they use are read in the same few statements."""
    features = features_of(connection)
    rows = connection.execute(
        creation_metadata_statement(features.missing_columns),
        {
            "databases": sorted({str(view.dbName) for view in views}),
            "tables": sorted({str(view.tableName) for view in views}),
        },
    ).all()
    used_ids = sorted({row.TBL_ID for row in rows if row.TBL_ID is not None})
    used: dict[int, Table] = {}
    if used_ids:
        found = connection.execute(main_statements(features.missing_columns).by_ids, {"table_ids": used_ids}).all()
        used = {row.table_id: row.table for row in _complete(connection, found, with_creation_metadata=False)}
    by_name = {(view.catName, view.dbName, view.tableName): view for view in views}
    for row in rows:
        view = by_name.get((row.CAT_NAME, row.DB_NAME, row.TBL_NAME))
        if view is None:
            continue
        if view.creationMetadata is None:
            view.creationMetadata = CreationMetadata(
                catName=row.CAT_NAME,
                dbName=row.DB_NAME,
                tblName=row.TBL_NAME,
                tablesUsed=set(),
                validTxnList=row.TXN_LIST,
                materializationTime=row.MATERIALIZATION_TIME,
                sourceTables=[],
            )
        source = used.get(row.TBL_ID)
        if source is not None:
            view.creationMetadata.tablesUsed.add(f"{source.dbName}.{source.tableName}")
            view.creationMetadata.sourceTables.append(
                SourceTable(source, row.INSERTED_COUNT or 0, row.UPDATED_COUNT or 0, row.DELETED_COUNT or 0)
            )
