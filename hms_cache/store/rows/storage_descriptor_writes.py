"""Writes any number of storage descriptors in a fixed number of statements.

Descriptors with equal columns share one column descriptor (CDS), as in Hive within one table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Column, Connection, Delete, Select, bindparam, delete, exists, or_, select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.batches import batches
from hms_cache.metadata.enumerations import known
from hms_cache.store import schema
from hms_cache.store.engine.bulk_writes import (
    delete_together,
    in_ids,
    insert_together,
    require_distinct_keys,
    upsert_rows,
)
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.rows.storage_descriptors import ColumnsKeys
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    FieldSchema,
    InvalidObjectException,
    SerDeInfo,
    SerdeType,
    StorageDescriptor,
)

_CHILDREN_OF_SD = (
    schema.SD_PARAMS.c.SD_ID,
    schema.BUCKETING_COLS.c.SD_ID,
    schema.SORT_COLS.c.SD_ID,
    schema.SKEWED_COL_NAMES.c.SD_ID,
    schema.SKEWED_COL_VALUE_LOC_MAP.c.SD_ID,
    schema.SKEWED_VALUES.c.SD_ID_OID,
)

_SKEW = frozenset((schema.SKEWED_COL_VALUE_LOC_MAP.c.SD_ID, schema.SKEWED_VALUES.c.SD_ID_OID))
"""Child tables that have string lists of their own."""

_MANY_IDS = 5_000
"""Ids in one IN list: below SQLite's 32,766 variables and every packet limit."""


class _Rows:
    """Rows to insert, per table, parents first."""

    def __init__(self) -> None:
        self._rows: dict[Any, list[dict[str, Any]]] = {}

    def add(self, table: Any, **values: Any) -> None:
        self._rows.setdefault(table, []).append(values)

    def write(self, connection: Connection) -> None:
        insert_together(connection, self._rows)


def insert_columns(transaction: WriteTransaction, columns: Sequence[FieldSchema]) -> int:
    """Inserts a column descriptor with these columns and returns its id. Raises InvalidObjectException for a duplicate
    name."""
    rows = _Rows()
    cd_id = _add_columns(rows, transaction.id("MColumnDescriptor"), columns)
    rows.write(transaction.connection)
    return cd_id


def insert_storage_descriptors(
    transaction: WriteTransaction,
    descriptors: Sequence[StorageDescriptor],
    *,
    column_descriptor_ids: Sequence[int | None] | None = None,
) -> list[int]:
    """Inserts the descriptors; returns their SD_IDs in the same order.

    `column_descriptor_ids`: the column descriptor for each (None: a new one). Without it, equal column lists share a
    new one. At most a dozen statements. Raises InvalidObjectException for a duplicate column name.
    """
    if not descriptors:
        return []
    rows = _Rows()
    given = column_descriptor_ids or [None] * len(descriptors)
    cd_ids = _column_descriptors(transaction, rows, descriptors, given)
    with_serde = [descriptor for descriptor in descriptors if descriptor.serdeInfo is not None]
    serde_ids = iter(transaction.ids("MSerDeInfo", len(with_serde)))
    sd_ids = transaction.ids("MStorageDescriptor", len(descriptors))
    serde_of = {}
    for descriptor, sd_id in zip(descriptors, sd_ids, strict=True):
        if descriptor.serdeInfo is not None:
            serde_of[sd_id] = serde_id = next(serde_ids)
            rows.add(schema.SERDES, SERDE_ID=serde_id, **serde_values(descriptor.serdeInfo))
    for descriptor, sd_id in zip(descriptors, sd_ids, strict=True):
        if descriptor.serdeInfo is not None:
            for key, value in sorted((descriptor.serdeInfo.parameters or {}).items()):
                rows.add(schema.SERDE_PARAMS, SERDE_ID=serde_of[sd_id], PARAM_KEY=key, PARAM_VALUE=value)
    for descriptor, sd_id, cd_id in zip(descriptors, sd_ids, cd_ids, strict=True):
        rows.add(schema.SDS, SD_ID=sd_id, CD_ID=cd_id, SERDE_ID=serde_of.get(sd_id), **descriptor_values(descriptor))
    for descriptor, sd_id in zip(descriptors, sd_ids, strict=True):
        _add_lists(rows, sd_id, descriptor)
    _add_skew(transaction, rows, list(zip(sd_ids, descriptors, strict=True)))
    rows.write(transaction.connection)
    return sd_ids


def update_storage_descriptor(
    transaction: WriteTransaction,
    sd_id: int,
    serde_id: int | None,
    before: StorageDescriptor,
    after: StorageDescriptor,
    *,
    former_column_descriptor_id: int | None,
    column_descriptor_id: int | None,
) -> None:
    """Changes the rows of `sd_id` from `before` to `after`, with the columns of `column_descriptor_id`.

    Writes only differences. A missing serde is added only if `after` has one.
    """
    connection = transaction.connection
    rows = _Rows()
    former = {**descriptor_values(before), "CD_ID": former_column_descriptor_id, "SERDE_ID": serde_id}
    if after.serdeInfo is not None:
        if serde_id is None:
            serde_id = transaction.id("MSerDeInfo")
            rows.add(schema.SERDES, SERDE_ID=serde_id, **serde_values(after.serdeInfo))
            old_parameters: Mapping[str, str] = {}
        else:
            old_parameters = (before.serdeInfo.parameters or {}) if before.serdeInfo is not None else {}
            if before.serdeInfo is None or serde_values(before.serdeInfo) != serde_values(after.serdeInfo):
                connection.execute(
                    update(schema.SERDES)
                    .where(schema.SERDES.c.SERDE_ID == serde_id)
                    .values(**serde_values(after.serdeInfo))
                )
        rows.write(connection)
        write_parameters(
            connection, schema.SERDE_PARAMS, "SERDE_ID", serde_id, old_parameters, after.serdeInfo.parameters
        )
    values = {**descriptor_values(after), "CD_ID": column_descriptor_id, "SERDE_ID": serde_id}
    if values != former:
        connection.execute(update(schema.SDS).where(schema.SDS.c.SD_ID == sd_id).values(**values))
    write_parameters(connection, schema.SD_PARAMS, "SD_ID", sd_id, before.parameters or {}, after.parameters)
    if _list_values(before) != _list_values(after):
        _delete_lists(connection, sd_id)
        lists = _Rows()
        _add_lists(lists, sd_id, after, with_parameters=False)
        _add_skew(transaction, lists, [(sd_id, after)])
        lists.write(connection)


def write_parameters(
    connection: Connection,
    table: Any,
    owner_column: str,
    owner_id: int,
    before: Mapping[str, str],
    after: Mapping[str, str] | None,
) -> None:
    """Changes the rows of one owner in a parameter table from `before` to `after`. Writes only differences.

    Raises MetaException as `require_distinct_keys` does.
    """
    requested = dict(after or {})
    require_distinct_keys(connection, requested)
    gone = sorted(key for key in before if key not in requested)
    for some in batches(gone, _MANY_IDS):
        connection.execute(_delete_keys(table.c[owner_column]), {"owner_id": owner_id, "keys": list(some)})
    # Rows with null values were not read, so a key that is new here may have a row.
    upsert_rows(
        connection,
        table,
        [
            {owner_column: owner_id, "PARAM_KEY": key, "PARAM_VALUE": value}
            for key, value in sorted(requested.items())
            if before.get(key) != value
        ],
    )


@lru_cache
def _delete_keys(owner: Column[Any]) -> Delete:
    is_among = owner.table.c.PARAM_KEY.in_(bindparam("keys", expanding=True))
    return delete(owner.table).where(owner == bindparam("owner_id"), is_among)


def delete_storage_descriptors(connection: Connection, sd_ids: Iterable[int], *, kept_cd_id: int | None = None) -> None:
    """Deletes these descriptors and all rows that refer to them, including unused column descriptors.

    `kept_cd_id`: a column descriptor that is known to be in use. The rows that refer to the descriptors (TBLS,
    PARTITIONS) have been deleted before. A fixed number of statements per 5,000 ids.
    """
    ids = sorted(set(sd_ids))
    for some in batches(ids, _MANY_IDS):
        _delete_some(connection, some, kept_cd_id)


def delete_unused_column_descriptors(connection: Connection, cd_ids: Iterable[int]) -> None:
    """Deletes those column descriptors, with their columns, to which no storage descriptor and no constraint refers."""
    candidates = sorted(set(cd_ids))
    for some in batches(candidates, _MANY_IDS):
        constraints = schema.KEY_CONSTRAINTS.c
        unused = (
            connection.execute(
                select(schema.CDS.c.CD_ID).where(
                    schema.CDS.c.CD_ID.in_(some),
                    ~exists().where(schema.SDS.c.CD_ID == schema.CDS.c.CD_ID),
                    ~exists().where(
                        or_(
                            constraints.PARENT_CD_ID == schema.CDS.c.CD_ID,
                            constraints.CHILD_CD_ID == schema.CDS.c.CD_ID,
                        )
                    ),
                )
            )
            .scalars()
            .all()
        )
        if unused:
            delete_together(connection, [(schema.COLUMNS_V2.c.CD_ID, unused), (schema.CDS.c.CD_ID, unused)])


def _delete_some(connection: Connection, ids: list[int], kept_cd_id: int | None) -> None:
    found = connection.execute(_dependents_of_descriptors(), {"ids": ids}).all()
    # Most have none of the lists: without rows nothing is deleted.
    children = [child for number, child in enumerate(_CHILDREN_OF_SD) if any(row[3 + number] for row in found)]
    lists = _skew_lists(connection, schema.SDS.c.SD_ID.in_(ids)) if _SKEW.intersection(children) else []
    # A version of a schema may still use the serde, which it refers to by name.
    serde_ids = [row.SERDE_ID for row in found if row.SERDE_ID is not None and not row.IS_SERDE_OF_SCHEMA]
    try:
        delete_together(
            connection,
            [
                *((column, ids) for column in children),
                (schema.SKEWED_STRING_LIST_VALUES.c.STRING_LIST_ID, lists),
                (schema.SKEWED_STRING_LIST.c.STRING_LIST_ID, lists),
                (schema.SDS.c.SD_ID, ids),
                (schema.SERDE_PARAMS.c.SERDE_ID, serde_ids),
                (schema.SERDES.c.SERDE_ID, serde_ids),
            ],
        )
    except IntegrityError as error:
        raise RetryableConflict("something began to refer to a storage descriptor that was deleted") from error
    delete_unused_column_descriptors(connection, {row.CD_ID for row in found} - {None, kept_cd_id})


@lru_cache(1)
def _dependents_of_descriptors() -> Select[Any]:
    """Selects serde and columns of the descriptors `ids`, whether a schema of the registry uses the serde, and for each
    of `_CHILDREN_OF_SD` whether it has rows."""
    has = (exists().where(child == schema.SDS.c.SD_ID) for child in _CHILDREN_OF_SD)
    of_schema = exists().where(schema.SCHEMA_VERSION.c.SERDE_ID == schema.SDS.c.SERDE_ID).label("IS_SERDE_OF_SCHEMA")
    return select(schema.SDS.c.SERDE_ID, schema.SDS.c.CD_ID, of_schema, *has).where(in_ids(schema.SDS.c.SD_ID))


def _skew_lists(connection: Connection, of_descriptors: Any) -> list[int]:
    """Ids of the string lists that belong to the skew of these descriptors."""

    def owned(list_id: Any, sd_id: Any) -> Select[Any]:
        return (
            select(list_id)
            .select_from(list_id.table.join(schema.SDS, schema.SDS.c.SD_ID == sd_id))
            .where(of_descriptors)
        )

    values = owned(schema.SKEWED_VALUES.c.STRING_LIST_ID_EID, schema.SKEWED_VALUES.c.SD_ID_OID)
    locations = owned(schema.SKEWED_COL_VALUE_LOC_MAP.c.STRING_LIST_ID_KID, schema.SKEWED_COL_VALUE_LOC_MAP.c.SD_ID)
    return sorted(connection.execute(values.union(locations)).scalars().all())


def _delete_skew_lists(connection: Connection, list_ids: Sequence[int]) -> None:
    values, lists = schema.SKEWED_STRING_LIST_VALUES.c, schema.SKEWED_STRING_LIST.c
    delete_together(connection, [(values.STRING_LIST_ID, list_ids), (lists.STRING_LIST_ID, list_ids)])


def _delete_lists(connection: Connection, sd_id: int) -> None:
    lists = _skew_lists(connection, schema.SDS.c.SD_ID == sd_id)
    for column in _CHILDREN_OF_SD[1:]:
        connection.execute(delete(column.table).where(column == sd_id))
    _delete_skew_lists(connection, lists)


def _column_descriptors(
    transaction: WriteTransaction, rows: _Rows, descriptors: Sequence[StorageDescriptor], given: Sequence[int | None]
) -> list[int | None]:
    """The CD_ID of each descriptor; new ones are added to the rows. None if a descriptor has no columns."""
    key_of = ColumnsKeys()
    keys = [
        None if known is not None or descriptor.cols is None else key_of(descriptor.cols)
        for descriptor, known in zip(descriptors, given, strict=True)
    ]
    distinct = list(dict.fromkeys(key for key in keys if key is not None))
    ids = dict(zip(distinct, transaction.ids("MColumnDescriptor", len(distinct)), strict=True))
    for key, cd_id in ids.items():
        _add_columns(rows, cd_id, [FieldSchema(*column) for column in key])
    return [known if key is None else ids[key] for key, known in zip(keys, given, strict=True)]


def _add_columns(rows: _Rows, cd_id: int, columns: Sequence[FieldSchema]) -> int:
    rows.add(schema.CDS, CD_ID=cd_id)
    seen = set()
    for position, column in enumerate(columns):
        name = column.name.lower()
        if name in seen:
            raise InvalidObjectException(f"Invalid column name: {name} appears more than once")
        seen.add(name)
        rows.add(
            schema.COLUMNS_V2,
            CD_ID=cd_id,
            COMMENT=column.comment,
            COLUMN_NAME=name,
            TYPE_NAME=column.type,
            INTEGER_IDX=position,
        )
    return cd_id


def descriptor_values(descriptor: StorageDescriptor) -> dict[str, Any]:
    """The columns of SDS, without ids."""
    return {
        "INPUT_FORMAT": descriptor.inputFormat,
        "OUTPUT_FORMAT": descriptor.outputFormat,
        "IS_COMPRESSED": bool(descriptor.compressed),
        "IS_STOREDASSUBDIRECTORIES": bool(descriptor.storedAsSubDirectories),
        "LOCATION": descriptor.location,
        "NUM_BUCKETS": descriptor.numBuckets or 0,
    }


def serde_values(serde: SerDeInfo) -> dict[str, Any]:
    """The columns of SERDES, without the id."""
    return {
        "NAME": serde.name,
        "SLIB": serde.serializationLib,
        "DESCRIPTION": serde.description,
        "SERIALIZER_CLASS": serde.serializerClass,
        "DESERIALIZER_CLASS": serde.deserializerClass,
        # Hive stores 0 for a serde without a type.
        "SERDE_TYPE": known(SerdeType, serde.serdeType) or 0,
    }


def _list_values(descriptor: StorageDescriptor) -> tuple[Any, ...]:
    skew = descriptor.skewedInfo
    return (
        list(descriptor.bucketCols or ()),
        [(order.col, order.order or 0) for order in descriptor.sortCols or ()],  # in Java a missing number is 0
        list((skew.skewedColNames if skew else None) or ()),
        [list(values) for values in (skew.skewedColValues if skew else None) or ()],
        {tuple(key): value for key, value in ((skew.skewedColValueLocationMaps if skew else None) or {}).items()},
    )


def _add_lists(rows: _Rows, sd_id: int, descriptor: StorageDescriptor, *, with_parameters: bool = True) -> None:
    buckets, sorts, skewed, _, _ = _list_values(descriptor)
    if with_parameters:
        for key, value in sorted((descriptor.parameters or {}).items()):
            rows.add(schema.SD_PARAMS, SD_ID=sd_id, PARAM_KEY=key, PARAM_VALUE=value)
    for position, name in enumerate(buckets):
        rows.add(schema.BUCKETING_COLS, SD_ID=sd_id, BUCKET_COL_NAME=name, INTEGER_IDX=position)
    for position, (name, order) in enumerate(sorts):
        rows.add(schema.SORT_COLS, SD_ID=sd_id, COLUMN_NAME=name, ORDER=order, INTEGER_IDX=position)
    for position, name in enumerate(skewed):
        rows.add(schema.SKEWED_COL_NAMES, SD_ID=sd_id, SKEWED_COL_NAME=name, INTEGER_IDX=position)


def _add_skew(transaction: WriteTransaction, rows: _Rows, descriptors: Sequence[tuple[int, StorageDescriptor]]) -> None:
    """Adds skewed values, and the directories of some of them. Each is a string list of its own."""
    lists: list[tuple[int, Sequence[str], int | None, str | None]] = []
    for sd_id, descriptor in descriptors:
        _, _, _, values, locations = _list_values(descriptor)
        lists.extend((sd_id, texts, position, None) for position, texts in enumerate(values))
        lists.extend((sd_id, texts, None, location) for texts, location in sorted(locations.items()))
    if not lists:
        return
    ids = transaction.ids("MStringList", len(lists))
    for list_id in ids:
        rows.add(schema.SKEWED_STRING_LIST, STRING_LIST_ID=list_id)
    for list_id, (sd_id, texts, position, location) in zip(ids, lists, strict=True):
        for index, text in enumerate(texts):
            rows.add(
                schema.SKEWED_STRING_LIST_VALUES, STRING_LIST_ID=list_id, STRING_LIST_VALUE=text, INTEGER_IDX=index
            )
        if position is None:
            rows.add(schema.SKEWED_COL_VALUE_LOC_MAP, SD_ID=sd_id, STRING_LIST_ID_KID=list_id, LOCATION=location)
        else:
            rows.add(schema.SKEWED_VALUES, SD_ID_OID=sd_id, STRING_LIST_ID_EID=list_id, INTEGER_IDX=position)


def replace_lists(
    transaction: WriteTransaction, changes: Iterable[tuple[int, StorageDescriptor, StorageDescriptor]]
) -> None:
    """Changes buckets, sort order and skew of the descriptors (id, before, after) to those of `after`.

    A fixed number of statements per 5,000 that differ, none for the others.
    """
    connection = transaction.connection
    differing = [(sd_id, after) for sd_id, before, after in changes if _list_values(before) != _list_values(after)]
    for some in batches(differing, _MANY_IDS):
        ids = [sd_id for sd_id, _ in some]
        lists = _skew_lists(connection, schema.SDS.c.SD_ID.in_(ids))
        for column in _CHILDREN_OF_SD[1:]:
            connection.execute(delete(column.table).where(column.in_(ids)))
        _delete_skew_lists(connection, lists)
        rows = _Rows()
        for sd_id, descriptor in some:
            _add_lists(rows, sd_id, descriptor, with_parameters=False)
        _add_skew(transaction, rows, some)
        rows.write(connection)
