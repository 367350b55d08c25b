"""The statements that read tables; `table_rows` says what becomes of their answers.

`DETAILS` answers lists and maps of tables by their ids as (kind, owner id, position, three texts), `DETAILS_BY_NAME`
those of one table, so that it can be asked together with the first statement; `SKEW` the values and directories of
skewed ones. None of them depends on the schema's version; the others do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    FromClause,
    Label,
    Select,
    String,
    bindparam,
    cast,
    literal_column,
    null,
    select,
    union_all,
)

from hms_cache.store import schema
from hms_cache.store.engine.direct_statements import DirectQuery
from hms_cache.store.engine.features import SchemaFeatures
from hms_cache.values import frozen

COLUMN, PARTITION_KEY, TABLE_PARAMETER, PARAMETER, SERDE_PARAMETER, BUCKET, SORT, SKEWED = range(8)
"""Kinds of rows that `DETAILS` answers, in its first column."""

_MAIN_COLUMNS: tuple[Any, ...] = (
    schema.TBLS.c.TBL_ID,
    schema.TBLS.c.DB_ID,
    schema.TBLS.c.SD_ID,
    schema.SDS.c.CD_ID,
    schema.SDS.c.SERDE_ID,
    schema.DBS.c.NAME.label("DATABASE_NAME"),
    schema.DBS.c.CTLG_NAME,
    schema.TBLS.c.TBL_NAME,
    schema.TBLS.c.OWNER,
    schema.TBLS.c.OWNER_TYPE,
    schema.TBLS.c.CREATE_TIME,
    schema.TBLS.c.LAST_ACCESS_TIME,
    schema.TBLS.c.RETENTION,
    schema.TBLS.c.TBL_TYPE,
    schema.TBLS.c.VIEW_ORIGINAL_TEXT,
    schema.TBLS.c.VIEW_EXPANDED_TEXT,
    schema.TBLS.c.IS_REWRITE_ENABLED,
    schema.TBLS.c.WRITE_ID,
    schema.SDS.c.LOCATION,
    schema.SDS.c.INPUT_FORMAT,
    schema.SDS.c.OUTPUT_FORMAT,
    schema.SDS.c.IS_COMPRESSED,
    schema.SDS.c.NUM_BUCKETS,
    schema.SDS.c.IS_STOREDASSUBDIRECTORIES,
    schema.SERDES.c.NAME.label("SERDE_NAME"),
    schema.SERDES.c.SLIB,
    schema.SERDES.c.DESCRIPTION,
    schema.SERDES.c.SERIALIZER_CLASS,
    schema.SERDES.c.DESERIALIZER_CLASS,
    schema.SERDES.c.SERDE_TYPE,
)
_MAIN_FROM = (
    schema.TBLS.join(schema.DBS, schema.DBS.c.DB_ID == schema.TBLS.c.DB_ID)
    .outerjoin(schema.SDS, schema.SDS.c.SD_ID == schema.TBLS.c.SD_ID)
    .outerjoin(schema.SERDES, schema.SERDES.c.SERDE_ID == schema.SDS.c.SERDE_ID)
)
_IN_DATABASE = (schema.DBS.c.NAME == bindparam("database")) & (schema.DBS.c.CTLG_NAME == bindparam("catalog"))


@frozen
class MainStatements:
    """The first statement, by what is asked for."""

    by_name: Select[Any]
    by_names: Select[Any]
    by_ids: Select[Any]
    query_by_name: DirectQuery
    """The same as `by_name`."""


@lru_cache(maxsize=8)
def main_statements(missing_columns: frozenset[tuple[str, str]]) -> MainStatements:
    """For a schema that lacks these columns (3.1 has no TBLS.WRITE_ID)."""
    features = SchemaFeatures(None, missing_columns=missing_columns)
    columns = (column if isinstance(column, Label) else features.column(column) for column in _MAIN_COLUMNS)
    main = select(*columns).select_from(_MAIN_FROM)
    by_name = main.where(_IN_DATABASE, schema.TBLS.c.TBL_NAME == bindparam("table"))
    return MainStatements(
        by_name,
        main.where(_IN_DATABASE, schema.TBLS.c.TBL_NAME.in_(bindparam("tables", expanding=True))),
        main.where(schema.TBLS.c.TBL_ID.in_(bindparam("table_ids", expanding=True))),
        DirectQuery(by_name),
    )


def _arm(kind: int, owner: Any, is_wanted: ColumnElement[bool], position: Any, *texts: Any) -> Select[Any]:
    filled = [*texts, *[null()] * (3 - len(texts))]
    labelled = [text.label(f"TEXT_{number}") for number, text in enumerate(filled, 1)]
    return select(
        literal_column(str(kind)).label("KIND"), owner.label("OWNER_ID"), position.label("POSITION"), *labelled
    ).where(is_wanted)


_NO_POSITION: Any = literal_column("0")


def _details(wanted: Callable[[Any, str], ColumnElement[bool]]) -> CompoundSelect[Any]:
    """`wanted`: whether an owner's id is one of those of a kind."""
    return union_all(
        # The first branch gives the columns of the result their types.
        _arm(
            COLUMN,
            schema.COLUMNS_V2.c.CD_ID,
            wanted(schema.COLUMNS_V2.c.CD_ID, "cd_ids"),
            schema.COLUMNS_V2.c.INTEGER_IDX,
            schema.COLUMNS_V2.c.COLUMN_NAME,
            schema.COLUMNS_V2.c.TYPE_NAME,
            schema.COLUMNS_V2.c.COMMENT,
        ),
        _arm(
            PARTITION_KEY,
            schema.PARTITION_KEYS.c.TBL_ID,
            wanted(schema.PARTITION_KEYS.c.TBL_ID, "table_ids"),
            schema.PARTITION_KEYS.c.INTEGER_IDX,
            schema.PARTITION_KEYS.c.PKEY_NAME,
            schema.PARTITION_KEYS.c.PKEY_TYPE,
            schema.PARTITION_KEYS.c.PKEY_COMMENT,
        ),
        _arm(
            TABLE_PARAMETER,
            schema.TABLE_PARAMS.c.TBL_ID,
            wanted(schema.TABLE_PARAMS.c.TBL_ID, "table_ids"),
            _NO_POSITION,
            schema.TABLE_PARAMS.c.PARAM_KEY,
            schema.TABLE_PARAMS.c.PARAM_VALUE,
        ),
        _arm(
            PARAMETER,
            schema.SD_PARAMS.c.SD_ID,
            wanted(schema.SD_PARAMS.c.SD_ID, "sd_ids"),
            _NO_POSITION,
            schema.SD_PARAMS.c.PARAM_KEY,
            schema.SD_PARAMS.c.PARAM_VALUE,
        ),
        _arm(
            SERDE_PARAMETER,
            schema.SERDE_PARAMS.c.SERDE_ID,
            wanted(schema.SERDE_PARAMS.c.SERDE_ID, "serde_ids"),
            _NO_POSITION,
            schema.SERDE_PARAMS.c.PARAM_KEY,
            schema.SERDE_PARAMS.c.PARAM_VALUE,
        ),
        _arm(
            BUCKET,
            schema.BUCKETING_COLS.c.SD_ID,
            wanted(schema.BUCKETING_COLS.c.SD_ID, "sd_ids"),
            schema.BUCKETING_COLS.c.INTEGER_IDX,
            schema.BUCKETING_COLS.c.BUCKET_COL_NAME,
        ),
        _arm(
            SORT,
            schema.SORT_COLS.c.SD_ID,
            wanted(schema.SORT_COLS.c.SD_ID, "sd_ids"),
            schema.SORT_COLS.c.INTEGER_IDX,
            schema.SORT_COLS.c.COLUMN_NAME,
            cast(schema.SORT_COLS.c.ORDER, String(12)),
        ),
        _arm(
            SKEWED,
            schema.SKEWED_COL_NAMES.c.SD_ID,
            wanted(schema.SKEWED_COL_NAMES.c.SD_ID, "sd_ids"),
            schema.SKEWED_COL_NAMES.c.INTEGER_IDX,
            schema.SKEWED_COL_NAMES.c.SKEWED_COL_NAME,
        ),
    )


def _is_listed(owner: Any, ids: str) -> ColumnElement[bool]:
    is_listed: ColumnElement[bool] = owner.in_(bindparam(ids, expanding=True))
    return is_listed


_IDS = {
    "table_ids": schema.TBLS.c.TBL_ID,
    "sd_ids": schema.TBLS.c.SD_ID,
    "cd_ids": schema.SDS.c.CD_ID,
    "serde_ids": schema.SDS.c.SERDE_ID,
}


def _is_of_named(owner: Any, ids: str) -> ColumnElement[bool]:
    tables: FromClause = schema.TBLS.join(schema.DBS, schema.DBS.c.DB_ID == schema.TBLS.c.DB_ID)
    if _IDS[ids].table is schema.SDS:
        tables = tables.join(schema.SDS, schema.SDS.c.SD_ID == schema.TBLS.c.SD_ID)
    found = select(_IDS[ids]).select_from(tables).where(_IN_DATABASE, schema.TBLS.c.TBL_NAME == bindparam("table"))
    is_its: ColumnElement[bool] = owner == found.scalar_subquery()
    return is_its


DETAILS = _details(_is_listed)
DETAILS_BY_NAME = DirectQuery(_details(_is_of_named))

_LISTS = schema.SKEWED_STRING_LIST_VALUES
SKEW = union_all(
    select(
        literal_column("0").label("KIND"),
        schema.SKEWED_VALUES.c.SD_ID_OID.label("SD_ID"),
        schema.SKEWED_VALUES.c.INTEGER_IDX.label("NUMBER"),
        _LISTS.c.INTEGER_IDX.label("POSITION"),
        _LISTS.c.STRING_LIST_VALUE.label("LIST_VALUE"),
        cast(null(), String(4000)).label("LOCATION"),
    )
    .select_from(
        schema.SKEWED_VALUES.outerjoin(_LISTS, _LISTS.c.STRING_LIST_ID == schema.SKEWED_VALUES.c.STRING_LIST_ID_EID)
    )
    .where(schema.SKEWED_VALUES.c.SD_ID_OID.in_(bindparam("sd_ids", expanding=True))),
    select(
        literal_column("1").label("KIND"),
        schema.SKEWED_COL_VALUE_LOC_MAP.c.SD_ID.label("SD_ID"),
        schema.SKEWED_COL_VALUE_LOC_MAP.c.STRING_LIST_ID_KID.label("NUMBER"),
        _LISTS.c.INTEGER_IDX.label("POSITION"),
        _LISTS.c.STRING_LIST_VALUE.label("LIST_VALUE"),
        schema.SKEWED_COL_VALUE_LOC_MAP.c.LOCATION.label("LOCATION"),
    )
    .select_from(
        schema.SKEWED_COL_VALUE_LOC_MAP.outerjoin(
            _LISTS, _LISTS.c.STRING_LIST_ID == schema.SKEWED_COL_VALUE_LOC_MAP.c.STRING_LIST_ID_KID
        )
    )
    .where(schema.SKEWED_COL_VALUE_LOC_MAP.c.SD_ID.in_(bindparam("sd_ids", expanding=True))),
)

_CREATION_METADATA_COLUMNS = (
    schema.MV_CREATION_METADATA.c.MV_CREATION_METADATA_ID,
    schema.MV_CREATION_METADATA.c.CAT_NAME,
    schema.MV_CREATION_METADATA.c.DB_NAME,
    schema.MV_CREATION_METADATA.c.TBL_NAME,
    schema.MV_CREATION_METADATA.c.TXN_LIST,
    schema.MV_CREATION_METADATA.c.MATERIALIZATION_TIME,
    schema.MV_TABLES_USED.c.TBL_ID,
    schema.MV_TABLES_USED.c.INSERTED_COUNT,
    schema.MV_TABLES_USED.c.UPDATED_COUNT,
    schema.MV_TABLES_USED.c.DELETED_COUNT,
)


@lru_cache(maxsize=8)
def creation_metadata_statement(missing_columns: frozenset[tuple[str, str]]) -> Select[Any]:
    """For a schema that lacks these columns (3.1 has no counters)."""
    features = SchemaFeatures(None, missing_columns=missing_columns)
    metadata = schema.MV_CREATION_METADATA.c
    return (
        select(*(features.column(column) for column in _CREATION_METADATA_COLUMNS))
        .select_from(
            schema.MV_CREATION_METADATA.outerjoin(
                schema.MV_TABLES_USED,
                schema.MV_TABLES_USED.c.MV_CREATION_METADATA_ID == metadata.MV_CREATION_METADATA_ID,
            )
        )
        .where(
            metadata.DB_NAME.in_(bindparam("databases", expanding=True)),
            metadata.TBL_NAME.in_(bindparam("tables", expanding=True)),
        )
        .order_by(metadata.MV_CREATION_METADATA_ID, schema.MV_TABLES_USED.c.TBL_ID)
    )
