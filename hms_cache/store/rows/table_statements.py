"""The statements that read tables; `table_rows` parses their rows.

`DETAILS` reads lists and maps of tables by id, as (kind, owner id, position, three texts); `DETAILS_BY_NAME` those of
one table, so that it can be sent together with the first statement; `SKEW` values and directories of skewed tables.
None of these depends on the schema's version; the others do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    CompoundSelect,
    FromClause,
    Label,
    Select,
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
from hms_cache.store.schema.text_types import united_text
from hms_cache.values import frozen

COLUMN, PARTITION_KEY, TABLE_PARAMETER, PARAMETER, SERDE_PARAMETER, BUCKET, SORT, SKEWED = range(8)
"""Kinds of rows in the first column of `DETAILS`."""

_OF_TABLE, _OF_DESCRIPTOR, _OF_SERDE = schema.TBLS.c, schema.SDS.c, schema.SERDES.c
_MAIN_COLUMNS: tuple[Any, ...] = (
    *_OF_TABLE["TBL_ID", "DB_ID", "SD_ID"],
    *_OF_DESCRIPTOR["CD_ID", "SERDE_ID"],
    schema.DBS.c.NAME.label("DATABASE_NAME"),
    schema.DBS.c.CTLG_NAME,
    *_OF_TABLE["TBL_NAME", "OWNER", "OWNER_TYPE", "CREATE_TIME", "LAST_ACCESS_TIME", "RETENTION", "TBL_TYPE"],
    *_OF_TABLE["VIEW_ORIGINAL_TEXT", "VIEW_EXPANDED_TEXT", "IS_REWRITE_ENABLED", "WRITE_ID"],
    *_OF_DESCRIPTOR["LOCATION", "INPUT_FORMAT", "OUTPUT_FORMAT"],
    *_OF_DESCRIPTOR["IS_COMPRESSED", "NUM_BUCKETS", "IS_STOREDASSUBDIRECTORIES"],
    schema.SERDES.c.NAME.label("SERDE_NAME"),
    *_OF_SERDE["SLIB", "DESCRIPTION", "SERIALIZER_CLASS", "DESERIALIZER_CLASS", "SERDE_TYPE"],
)
_MAIN_FROM = (
    schema.TBLS.join(schema.DBS, schema.DBS.c.DB_ID == schema.TBLS.c.DB_ID)
    .outerjoin(schema.SDS, schema.SDS.c.SD_ID == schema.TBLS.c.SD_ID)
    .outerjoin(schema.SERDES, schema.SERDES.c.SERDE_ID == schema.SDS.c.SERDE_ID)
)
_IN_DATABASE = (schema.DBS.c.NAME == bindparam("database")) & (schema.DBS.c.CTLG_NAME == bindparam("catalog"))


@frozen
class MainStatements:
    """Forms of the first statement."""

    by_name: Select[Any]
    by_names: Select[Any]
    by_ids: Select[Any]
    query_by_name: DirectQuery
    """Like `by_name`, for a packet."""


@lru_cache(maxsize=8)
def main_statements(missing_columns: frozenset[tuple[str, str]]) -> MainStatements:
    """For a schema without these columns (3.1 has no TBLS.WRITE_ID)."""
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


_NO_POSITION: Any = literal_column("0")


def _details(condition: Callable[[Any, str], ColumnElement[bool]]) -> CompoundSelect[Any]:
    """`condition`: a condition that selects the owners of a kind."""

    def arm(kind: int, owner: Any, ids: str, position: Any, *texts: Any) -> Select[Any]:
        filled = [*texts, *[null()] * (3 - len(texts))]
        labelled = [text.label(f"TEXT_{number}") for number, text in enumerate(filled, 1)]
        return select(
            literal_column(str(kind)).label("KIND"), owner.label("OWNER_ID"), position.label("POSITION"), *labelled
        ).where(condition(owner, ids))

    def items(kind: int, owner: Any, ids: str, *texts: Any) -> Select[Any]:
        return arm(kind, owner, ids, owner.table.c.INTEGER_IDX, *texts)

    def parameters(kind: int, owner: Any, ids: str) -> Select[Any]:
        return arm(kind, owner, ids, _NO_POSITION, owner.table.c.PARAM_KEY, owner.table.c.PARAM_VALUE)

    columns, keys, sorting = schema.COLUMNS_V2.c, schema.PARTITION_KEYS.c, schema.SORT_COLS.c
    buckets, skew = schema.BUCKETING_COLS.c, schema.SKEWED_COL_NAMES.c
    return union_all(
        # The first branch determines the types of the result's columns.
        items(COLUMN, columns.CD_ID, "cd_ids", columns.COLUMN_NAME, columns.TYPE_NAME, columns.COMMENT),
        items(PARTITION_KEY, keys.TBL_ID, "table_ids", keys.PKEY_NAME, keys.PKEY_TYPE, keys.PKEY_COMMENT),
        parameters(TABLE_PARAMETER, schema.TABLE_PARAMS.c.TBL_ID, "table_ids"),
        parameters(PARAMETER, schema.SD_PARAMS.c.SD_ID, "sd_ids"),
        parameters(SERDE_PARAMETER, schema.SERDE_PARAMS.c.SERDE_ID, "serde_ids"),
        items(BUCKET, buckets.SD_ID, "sd_ids", buckets.BUCKET_COL_NAME),
        items(SORT, sorting.SD_ID, "sd_ids", sorting.COLUMN_NAME, cast(sorting.ORDER, united_text(12))),
        items(SKEWED, skew.SD_ID, "sd_ids", skew.SKEWED_COL_NAME),
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


def _skew(
    kind: int,
    descriptor_id: Column[Any],
    number: Column[Any],
    list_id: Column[Any],
    location: ColumnElement[Any],
) -> Select[Any]:
    """Elements of lists of skewed values, for the rows of one table that refer to them.

    :param number: which of the descriptor's lists it is.
    """
    lists = schema.SKEWED_STRING_LIST_VALUES
    return (
        select(
            literal_column(str(kind)).label("KIND"),
            descriptor_id.label("SD_ID"),
            number.label("NUMBER"),
            lists.c.INTEGER_IDX.label("POSITION"),
            lists.c.STRING_LIST_VALUE.label("LIST_VALUE"),
            location.label("LOCATION"),
        )
        .select_from(descriptor_id.table.outerjoin(lists, lists.c.STRING_LIST_ID == list_id))
        .where(descriptor_id.in_(bindparam("sd_ids", expanding=True)))
    )


_VALUES, _LOCATIONS = schema.SKEWED_VALUES.c, schema.SKEWED_COL_VALUE_LOC_MAP.c
SKEW = union_all(
    _skew(0, _VALUES.SD_ID_OID, _VALUES.INTEGER_IDX, _VALUES.STRING_LIST_ID_EID, cast(null(), united_text(4000))),
    _skew(1, _LOCATIONS.SD_ID, _LOCATIONS.STRING_LIST_ID_KID, _LOCATIONS.STRING_LIST_ID_KID, _LOCATIONS.LOCATION),
)

_CREATION_METADATA_COLUMNS = (
    *schema.MV_CREATION_METADATA.c["MV_CREATION_METADATA_ID", "CAT_NAME", "DB_NAME", "TBL_NAME"],
    *schema.MV_CREATION_METADATA.c["TXN_LIST", "MATERIALIZATION_TIME"],
    *schema.MV_TABLES_USED.c["TBL_ID", "INSERTED_COUNT", "UPDATED_COUNT", "DELETED_COUNT"],
)


@lru_cache(maxsize=8)
def creation_metadata_statement(missing_columns: frozenset[tuple[str, str]]) -> Select[Any]:
    """For a schema without these columns (3.1 has no counters)."""
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
