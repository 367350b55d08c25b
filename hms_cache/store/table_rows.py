"""Tables as rows: read with two statements whatever their number, one more when one is skewed or a materialized view.

The first statement answers the single-valued columns of TBLS, DBS, SDS and SERDES, the second one everything that is a
list or a map, as one UNION ALL over eight tables. Result: Hive's `ObjectStore.convertToTable` (3.1, 4.0).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Label, Row, Select, String, bindparam, cast, literal_column, null, select, union_all

from hms_cache.store.database import features_of
from hms_cache.store.schema import (
    BUCKETING_COLS,
    COLUMNS_V2,
    DBS,
    MV_CREATION_METADATA,
    MV_TABLES_USED,
    PARTITION_KEYS,
    SD_PARAMS,
    SDS,
    SERDE_PARAMS,
    SERDES,
    SKEWED_COL_NAMES,
    SKEWED_COL_VALUE_LOC_MAP,
    SKEWED_STRING_LIST_VALUES,
    SKEWED_VALUES,
    SORT_COLS,
    TABLE_PARAMS,
    TBLS,
)
from hms_cache.store.schema.features import SchemaFeatures
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

_COLUMN, _PARTITION_KEY, _TABLE_PARAMETER, _PARAMETER, _SERDE_PARAMETER, _BUCKET, _SORT, _SKEWED = range(8)

MANY_NAMES = 5_000
"""Names or ids in one IN list: below SQLite's 32,766 variables even when a statement uses the list several times."""


@dataclass(slots=True)
class TableRow:
    """A table with the ids behind it."""

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


_MAIN_COLUMNS: tuple[Any, ...] = (
    TBLS.c.TBL_ID,
    TBLS.c.DB_ID,
    TBLS.c.SD_ID,
    SDS.c.CD_ID,
    SDS.c.SERDE_ID,
    DBS.c.NAME.label("DATABASE_NAME"),
    DBS.c.CTLG_NAME,
    TBLS.c.TBL_NAME,
    TBLS.c.OWNER,
    TBLS.c.OWNER_TYPE,
    TBLS.c.CREATE_TIME,
    TBLS.c.LAST_ACCESS_TIME,
    TBLS.c.RETENTION,
    TBLS.c.TBL_TYPE,
    TBLS.c.VIEW_ORIGINAL_TEXT,
    TBLS.c.VIEW_EXPANDED_TEXT,
    TBLS.c.IS_REWRITE_ENABLED,
    TBLS.c.WRITE_ID,
    SDS.c.LOCATION,
    SDS.c.INPUT_FORMAT,
    SDS.c.OUTPUT_FORMAT,
    SDS.c.IS_COMPRESSED,
    SDS.c.NUM_BUCKETS,
    SDS.c.IS_STOREDASSUBDIRECTORIES,
    SERDES.c.NAME.label("SERDE_NAME"),
    SERDES.c.SLIB,
    SERDES.c.DESCRIPTION,
    SERDES.c.SERIALIZER_CLASS,
    SERDES.c.DESERIALIZER_CLASS,
    SERDES.c.SERDE_TYPE,
)
_MAIN_FROM = (
    TBLS.join(DBS, DBS.c.DB_ID == TBLS.c.DB_ID)
    .outerjoin(SDS, SDS.c.SD_ID == TBLS.c.SD_ID)
    .outerjoin(SERDES, SERDES.c.SERDE_ID == SDS.c.SERDE_ID)
)
_IN_DATABASE = (DBS.c.NAME == bindparam("database")) & (DBS.c.CTLG_NAME == bindparam("catalog"))


@dataclass(frozen=True, slots=True)
class _MainStatements:
    """The first statement, by what is asked for."""

    by_name: Select[Any]
    by_names: Select[Any]
    by_ids: Select[Any]


@lru_cache(maxsize=8)
def _main(missing_columns: frozenset[tuple[str, str]]) -> _MainStatements:
    """For a schema that lacks these columns (3.1 has no TBLS.WRITE_ID)."""
    features = SchemaFeatures(None, missing_columns=missing_columns)
    columns = (column if isinstance(column, Label) else features.column(column) for column in _MAIN_COLUMNS)
    main = select(*columns).select_from(_MAIN_FROM)
    return _MainStatements(
        main.where(_IN_DATABASE, TBLS.c.TBL_NAME == bindparam("table")),
        main.where(_IN_DATABASE, TBLS.c.TBL_NAME.in_(bindparam("tables", expanding=True))),
        main.where(TBLS.c.TBL_ID.in_(bindparam("table_ids", expanding=True))),
    )


def _arm(kind: int, owner: Any, ids: str, position: Any, *texts: Any) -> Select[Any]:
    filled = [*texts, *[null()] * (3 - len(texts))]
    labelled = [text.label(f"TEXT_{number}") for number, text in enumerate(filled, 1)]
    return select(
        literal_column(str(kind)).label("KIND"), owner.label("OWNER_ID"), position.label("POSITION"), *labelled
    ).where(owner.in_(bindparam(ids, expanding=True)))


_NO_POSITION: Any = literal_column("0")
_DETAILS = union_all(
    # The first branch gives the columns of the result their types.
    _arm(
        _COLUMN,
        COLUMNS_V2.c.CD_ID,
        "cd_ids",
        COLUMNS_V2.c.INTEGER_IDX,
        COLUMNS_V2.c.COLUMN_NAME,
        COLUMNS_V2.c.TYPE_NAME,
        COLUMNS_V2.c.COMMENT,
    ),
    _arm(
        _PARTITION_KEY,
        PARTITION_KEYS.c.TBL_ID,
        "table_ids",
        PARTITION_KEYS.c.INTEGER_IDX,
        PARTITION_KEYS.c.PKEY_NAME,
        PARTITION_KEYS.c.PKEY_TYPE,
        PARTITION_KEYS.c.PKEY_COMMENT,
    ),
    _arm(
        _TABLE_PARAMETER,
        TABLE_PARAMS.c.TBL_ID,
        "table_ids",
        _NO_POSITION,
        TABLE_PARAMS.c.PARAM_KEY,
        TABLE_PARAMS.c.PARAM_VALUE,
    ),
    _arm(_PARAMETER, SD_PARAMS.c.SD_ID, "sd_ids", _NO_POSITION, SD_PARAMS.c.PARAM_KEY, SD_PARAMS.c.PARAM_VALUE),
    _arm(
        _SERDE_PARAMETER,
        SERDE_PARAMS.c.SERDE_ID,
        "serde_ids",
        _NO_POSITION,
        SERDE_PARAMS.c.PARAM_KEY,
        SERDE_PARAMS.c.PARAM_VALUE,
    ),
    _arm(_BUCKET, BUCKETING_COLS.c.SD_ID, "sd_ids", BUCKETING_COLS.c.INTEGER_IDX, BUCKETING_COLS.c.BUCKET_COL_NAME),
    _arm(
        _SORT,
        SORT_COLS.c.SD_ID,
        "sd_ids",
        SORT_COLS.c.INTEGER_IDX,
        SORT_COLS.c.COLUMN_NAME,
        cast(SORT_COLS.c.ORDER, String(12)),
    ),
    _arm(
        _SKEWED,
        SKEWED_COL_NAMES.c.SD_ID,
        "sd_ids",
        SKEWED_COL_NAMES.c.INTEGER_IDX,
        SKEWED_COL_NAMES.c.SKEWED_COL_NAME,
    ),
)

_LISTS = SKEWED_STRING_LIST_VALUES
_SKEW = union_all(
    select(
        literal_column("0").label("KIND"),
        SKEWED_VALUES.c.SD_ID_OID.label("SD_ID"),
        SKEWED_VALUES.c.INTEGER_IDX.label("NUMBER"),
        _LISTS.c.INTEGER_IDX.label("POSITION"),
        _LISTS.c.STRING_LIST_VALUE.label("LIST_VALUE"),
        cast(null(), String(4000)).label("LOCATION"),
    )
    .select_from(SKEWED_VALUES.outerjoin(_LISTS, _LISTS.c.STRING_LIST_ID == SKEWED_VALUES.c.STRING_LIST_ID_EID))
    .where(SKEWED_VALUES.c.SD_ID_OID.in_(bindparam("sd_ids", expanding=True))),
    select(
        literal_column("1").label("KIND"),
        SKEWED_COL_VALUE_LOC_MAP.c.SD_ID.label("SD_ID"),
        SKEWED_COL_VALUE_LOC_MAP.c.STRING_LIST_ID_KID.label("NUMBER"),
        _LISTS.c.INTEGER_IDX.label("POSITION"),
        _LISTS.c.STRING_LIST_VALUE.label("LIST_VALUE"),
        SKEWED_COL_VALUE_LOC_MAP.c.LOCATION.label("LOCATION"),
    )
    .select_from(
        SKEWED_COL_VALUE_LOC_MAP.outerjoin(
            _LISTS, _LISTS.c.STRING_LIST_ID == SKEWED_COL_VALUE_LOC_MAP.c.STRING_LIST_ID_KID
        )
    )
    .where(SKEWED_COL_VALUE_LOC_MAP.c.SD_ID.in_(bindparam("sd_ids", expanding=True))),
)

_CREATION_METADATA_COLUMNS = (
    MV_CREATION_METADATA.c.MV_CREATION_METADATA_ID,
    MV_CREATION_METADATA.c.CAT_NAME,
    MV_CREATION_METADATA.c.DB_NAME,
    MV_CREATION_METADATA.c.TBL_NAME,
    MV_CREATION_METADATA.c.TXN_LIST,
    MV_CREATION_METADATA.c.MATERIALIZATION_TIME,
    MV_TABLES_USED.c.TBL_ID,
    MV_TABLES_USED.c.INSERTED_COUNT,
    MV_TABLES_USED.c.UPDATED_COUNT,
    MV_TABLES_USED.c.DELETED_COUNT,
)


@lru_cache(maxsize=8)
def _creation_metadata(missing_columns: frozenset[tuple[str, str]]) -> Select[Any]:
    """For a schema that lacks these columns (3.1 has no counters)."""
    features = SchemaFeatures(None, missing_columns=missing_columns)
    metadata = MV_CREATION_METADATA.c
    return (
        select(*(features.column(column) for column in _CREATION_METADATA_COLUMNS))
        .select_from(
            MV_CREATION_METADATA.outerjoin(
                MV_TABLES_USED, MV_TABLES_USED.c.MV_CREATION_METADATA_ID == metadata.MV_CREATION_METADATA_ID
            )
        )
        .where(
            metadata.DB_NAME.in_(bindparam("databases", expanding=True)),
            metadata.TBL_NAME.in_(bindparam("tables", expanding=True)),
        )
        .order_by(metadata.MV_CREATION_METADATA_ID, MV_TABLES_USED.c.TBL_ID)
    )


def read_table(connection: Connection, catalog: str, database: str, table: str) -> TableRow | None:
    """The table with this (normalized) name, None when there is none."""
    statement = _main(features_of(connection).missing_columns).by_name
    row = connection.execute(statement, {"catalog": catalog, "database": database, "table": table}).first()
    return None if row is None else _complete(connection, [row])[0]


def read_tables(connection: Connection, catalog: str, database: str, names: Sequence[str]) -> list[TableRow]:
    """The tables with these names that exist, by name; the same statements per `MANY_NAMES` names."""
    found: list[TableRow] = []
    statement = _main(features_of(connection).missing_columns).by_names
    for start in range(0, len(names), MANY_NAMES):
        rows = connection.execute(
            statement, {"catalog": catalog, "database": database, "tables": list(names[start : start + MANY_NAMES])}
        ).all()
        if rows:
            found.extend(_complete(connection, rows))
    return sorted(found, key=lambda row: row.name)


def _complete(
    connection: Connection, rows: Sequence[Row[Any]], *, with_creation_metadata: bool = True
) -> list[TableRow]:
    details = _read_details(connection, rows)
    tables = [TableRow(_table(row, details), row.TBL_ID, row.DB_ID, row.SD_ID, row.CD_ID, row.SERDE_ID) for row in rows]
    if with_creation_metadata:
        views = [found.table for found in tables if found.table.tableType == MATERIALIZED_VIEW]
        if views:
            _add_creation_metadata(connection, views)
    return tables


def _read_details(connection: Connection, rows: Iterable[Row[Any]]) -> _Details:
    ids: dict[str, list[int]] = {"table_ids": [], "sd_ids": [], "cd_ids": [], "serde_ids": []}
    for row in rows:
        ids["table_ids"].append(row.TBL_ID)
        if row.SD_ID is not None:
            ids["sd_ids"].append(row.SD_ID)
        if row.CD_ID is not None:
            ids["cd_ids"].append(row.CD_ID)
        if row.SERDE_ID is not None:
            ids["serde_ids"].append(row.SERDE_ID)
    details = _Details()
    for kind, owner, position, text, text_2, text_3 in connection.execute(_DETAILS, ids):
        if kind == _COLUMN:
            details.columns.setdefault(owner, []).append((position, FieldSchema(text, text_2, text_3)))
        elif kind == _PARTITION_KEY:
            details.partition_keys.setdefault(owner, []).append((position, FieldSchema(text, text_2, text_3)))
        elif kind == _BUCKET:
            details.buckets.setdefault(owner, []).append((position, text))
        elif kind == _SORT:
            details.sorts.setdefault(owner, []).append((position, Order(text, int(text_2))))
        elif kind == _SKEWED:
            details.skewed_columns.setdefault(owner, []).append((position, text))
        elif text_2 is not None:
            # A null value in a map of parameters counts as absent (MetaStoreServerUtils.trimMapNulls).
            maps = {
                _TABLE_PARAMETER: details.table_parameters,
                _PARAMETER: details.parameters,
                _SERDE_PARAMETER: details.serde_parameters,
            }[kind]
            maps.setdefault(owner, {})[text] = text_2
    if details.skewed_columns:
        _read_skew(connection, list(details.skewed_columns), details)
    return details


def _read_skew(connection: Connection, sd_ids: list[int], details: _Details) -> None:
    lists: dict[tuple[int, int, int, str | None], list[tuple[int, str]]] = {}
    for kind, sd_id, number, position, value, location in connection.execute(_SKEW, {"sd_ids": sd_ids}):
        values = lists.setdefault((kind, sd_id, number, location), [])
        if position is not None:
            values.append((position, value))
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
        tableType=row.TBL_TYPE or _guessed_type(row.VIEW_ORIGINAL_TEXT, parameters),
        temporary=None,
        rewriteEnabled=bool(row.IS_REWRITE_ENABLED),
        catName=row.CTLG_NAME,
        ownerType=PrincipalType._NAMES_TO_VALUES.get(row.OWNER_TYPE or "USER", PrincipalType.USER),
        writeId=row.WRITE_ID or 0,
        id=row.TBL_ID,
    )


def _guessed_type(view_text: str | None, parameters: Mapping[str, str]) -> str:
    """The type of a table written by a metastore that stored none (before Hive 0.8)."""
    if view_text is not None:
        return VIRTUAL_VIEW
    return EXTERNAL_TABLE if parameters.get("EXTERNAL", "").upper() == "TRUE" else MANAGED_TABLE


def _add_creation_metadata(connection: Connection, views: Collection[Table]) -> None:
    """Sets `creationMetadata` of materialized views; the tables they use are read in the same few statements."""
    features = features_of(connection)
    rows = connection.execute(
        _creation_metadata(features.missing_columns),
        {
            "databases": sorted({str(view.dbName) for view in views}),
            "tables": sorted({str(view.tableName) for view in views}),
        },
    ).all()
    used_ids = sorted({row.TBL_ID for row in rows if row.TBL_ID is not None})
    used: dict[int, Table] = {}
    if used_ids:
        found = connection.execute(_main(features.missing_columns).by_ids, {"table_ids": used_ids}).all()
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
            view.creationMetadata.tablesUsed.add(f"{source.catName}.{source.dbName}.{source.tableName}")
            view.creationMetadata.sourceTables.append(
                SourceTable(source, row.INSERTED_COUNT or 0, row.UPDATED_COUNT or 0, row.DELETED_COUNT or 0)
            )
