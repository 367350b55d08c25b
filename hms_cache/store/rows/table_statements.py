"""The statements that read tables; `table_rows` says what becomes of their answers.

`DETAILS` answers lists and maps of tables by their ids as (kind, owner id, position, three texts); `SKEW` the values
and directories of skewed ones. Neither depends on the schema's version; the others do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Label, Select, String, bindparam, cast, literal_column, null, select, union_all

from hms_cache.store.engine.features import SchemaFeatures
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

COLUMN, PARTITION_KEY, TABLE_PARAMETER, PARAMETER, SERDE_PARAMETER, BUCKET, SORT, SKEWED = range(8)
"""Kinds of rows that `DETAILS` answers, in its first column."""

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
class MainStatements:
    """The first statement, by what is asked for."""

    by_name: Select[Any]
    by_names: Select[Any]
    by_ids: Select[Any]


@lru_cache(maxsize=8)
def main_statements(missing_columns: frozenset[tuple[str, str]]) -> MainStatements:
    """For a schema that lacks these columns (3.1 has no TBLS.WRITE_ID)."""
    features = SchemaFeatures(None, missing_columns=missing_columns)
    columns = (column if isinstance(column, Label) else features.column(column) for column in _MAIN_COLUMNS)
    main = select(*columns).select_from(_MAIN_FROM)
    return MainStatements(
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
DETAILS = union_all(
    # The first branch gives the columns of the result their types.
    _arm(
        COLUMN,
        COLUMNS_V2.c.CD_ID,
        "cd_ids",
        COLUMNS_V2.c.INTEGER_IDX,
        COLUMNS_V2.c.COLUMN_NAME,
        COLUMNS_V2.c.TYPE_NAME,
        COLUMNS_V2.c.COMMENT,
    ),
    _arm(
        PARTITION_KEY,
        PARTITION_KEYS.c.TBL_ID,
        "table_ids",
        PARTITION_KEYS.c.INTEGER_IDX,
        PARTITION_KEYS.c.PKEY_NAME,
        PARTITION_KEYS.c.PKEY_TYPE,
        PARTITION_KEYS.c.PKEY_COMMENT,
    ),
    _arm(
        TABLE_PARAMETER,
        TABLE_PARAMS.c.TBL_ID,
        "table_ids",
        _NO_POSITION,
        TABLE_PARAMS.c.PARAM_KEY,
        TABLE_PARAMS.c.PARAM_VALUE,
    ),
    _arm(PARAMETER, SD_PARAMS.c.SD_ID, "sd_ids", _NO_POSITION, SD_PARAMS.c.PARAM_KEY, SD_PARAMS.c.PARAM_VALUE),
    _arm(
        SERDE_PARAMETER,
        SERDE_PARAMS.c.SERDE_ID,
        "serde_ids",
        _NO_POSITION,
        SERDE_PARAMS.c.PARAM_KEY,
        SERDE_PARAMS.c.PARAM_VALUE,
    ),
    _arm(BUCKET, BUCKETING_COLS.c.SD_ID, "sd_ids", BUCKETING_COLS.c.INTEGER_IDX, BUCKETING_COLS.c.BUCKET_COL_NAME),
    _arm(
        SORT,
        SORT_COLS.c.SD_ID,
        "sd_ids",
        SORT_COLS.c.INTEGER_IDX,
        SORT_COLS.c.COLUMN_NAME,
        cast(SORT_COLS.c.ORDER, String(12)),
    ),
    _arm(
        SKEWED,
        SKEWED_COL_NAMES.c.SD_ID,
        "sd_ids",
        SKEWED_COL_NAMES.c.INTEGER_IDX,
        SKEWED_COL_NAMES.c.SKEWED_COL_NAME,
    ),
)

_LISTS = SKEWED_STRING_LIST_VALUES
SKEW = union_all(
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
def creation_metadata_statement(missing_columns: frozenset[tuple[str, str]]) -> Select[Any]:
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
