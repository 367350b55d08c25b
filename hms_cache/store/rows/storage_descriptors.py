"""Storage descriptors of many partitions: read in a fixed number of statements.

Thousands of partitions of a table usually have descriptors that differ only in the location. So callers pass the
distinct ones (`build_templates`, see `descriptor_texts`), or `read_templates` lets the server group equal rows and
return each distinct one with its ids: only a few rows are transferred and decoded instead of one or more per partition.
The grouping is exact: texts are compared byte by byte (a collation that ignores trailing blanks must not merge " " with
""), and the ids are returned with their sum, so that a list that the server has truncated is detected and read row by
row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from sqlalchemy import Connection

from hms_cache.metadata.names import normalize_identifier
from hms_cache.store.rows.storage_descriptor_statements import (
    BUCKET_COLUMN,
    COLUMN,
    DETAIL_COLUMNS,
    PARAMETER,
    SERDE_PARAMETER,
    SKEWED_COLUMN,
    SKEWED_VALUE,
    SORT_COLUMN,
    DescriptorScope,
    GroupedStatement,
    statements_of,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, Order, SerDeInfo, SkewedInfo, StorageDescriptor

ColumnsKey: TypeAlias = tuple[tuple[str, str | None, str | None], ...]
"""Columns as a hashable value: (name, type, comment) of each."""


class DescriptorTemplates:
    """Distinct storage descriptors without locations, and the one that each descriptor id has.

    `structs[number]` is the template, `number_of[sd_id]` its number, `column_descriptor_ids[number]` its CD_ID.
    """

    __slots__ = ("column_descriptor_ids", "number_of", "structs")

    def __init__(
        self, structs: list[StorageDescriptor], number_of: dict[int, int], column_descriptor_ids: list[int | None]
    ) -> None:
        self.structs = structs
        self.number_of = number_of
        self.column_descriptor_ids = column_descriptor_ids


def columns_key(columns: Iterable[FieldSchema] | None) -> ColumnsKey:
    """Columns as a hashable value, as they are stored (names in lower case)."""
    return tuple((column.name.lower(), column.type, column.comment) for column in columns or ())


class ColumnsKeys:
    """`columns_key` for many descriptors: computed once for a list that several of them share."""

    def __init__(self) -> None:
        self._of_list: dict[int, tuple[Sequence[FieldSchema], ColumnsKey]] = {}
        """By the list's `id()`; with the list itself, so that the id is not reused."""

    def __call__(self, columns: Sequence[FieldSchema] | None) -> ColumnsKey:
        if columns is None:
            return columns_key(columns)
        found = self._of_list.get(id(columns))
        if found is None:
            found = self._of_list[id(columns)] = (columns, columns_key(columns))
        return found[1]


def stored_orders(sent: Sequence[Order] | None) -> list[Order]:
    """The sort columns, with names as stored. Of a descriptor's lists, Hive normalizes only the names in this one
    (`ObjectStore.convertToMOrders`), and treats a missing number as 0."""
    return [Order(order.col and normalize_identifier(order.col), order.order or 0) for order in sent or ()]


def own_descriptor(sent: StorageDescriptor) -> StorageDescriptor:
    """A copy of a client's descriptor that may be changed, with a value for every field that is not nullable in the
    database."""
    return StorageDescriptor(
        cols=sent.cols,
        location=sent.location,
        inputFormat=sent.inputFormat,
        outputFormat=sent.outputFormat,
        compressed=bool(sent.compressed),
        numBuckets=sent.numBuckets or 0,
        serdeInfo=sent.serdeInfo,
        bucketCols=sent.bucketCols or [],
        sortCols=stored_orders(sent.sortCols),
        parameters=sent.parameters or {},
        skewedInfo=sent.skewedInfo,
        storedAsSubDirectories=bool(sent.storedAsSubDirectories),
    )


def read_templates(
    connection: Connection, scope: DescriptorScope, parameters: Mapping[str, Any]
) -> DescriptorTemplates:
    """The distinct descriptors of a scope: two statements, three if one of them is skewed."""
    rows = _read_grouped(connection, statements_of(scope).base, parameters)
    return build_templates(connection, rows, scope, parameters)


def build_templates(
    connection: Connection,
    rows: Iterable[tuple[tuple[Any, ...], list[int]]],
    scope: DescriptorScope,
    parameters: Mapping[str, Any],
    known_details: Iterable[Sequence[Any]] | None = None,
) -> DescriptorTemplates:
    """Like `read_templates`, for a caller that has read `DESCRIPTOR_COLUMNS` of the scope itself: (values, ids that
    have them).

    Descriptors with the same base row and the same details share a template. `known_details`: the result of the scope's
    `details_at_once`, read together with the rows; None: not read yet.
    """
    statements = statements_of(scope)
    bases: list[tuple[Any, ...]] = []
    signature_of: dict[int, int] = {}
    signatures: list[_Signature] = []
    for values, ids in rows:
        number = len(signatures)
        bases.append(values)
        signatures.append((None, number))
        signature_of.update(dict.fromkeys(ids, number))
    cd_ids = sorted({values[0] for values in bases if values[0] is not None})
    details: list[tuple[Any, ...]] = []
    columns: dict[int, list[tuple[int, FieldSchema]]] = {cd_id: [] for cd_id in cd_ids}
    known: dict[tuple[int, int], int] = {}
    skewed = False
    if signature_of:
        grouped = _grouped(known_details, len(DETAIL_COLUMNS)) if known_details is not None else None
        if grouped is None:
            grouped = _read_grouped(connection, statements.details, {**parameters, "cd_ids": cd_ids})
        for values, ids in grouped:
            if values[0] == COLUMN:
                field = FieldSchema(name=values[2], type=values[3], comment=values[4])
                for cd_id in ids:
                    columns[cd_id].append((values[1], field))
                continue
            skewed = skewed or values[0] == SKEWED_COLUMN
            _extend_signatures(signature_of, signatures, known, ids, len(details))
            details.append(values)
        if skewed:
            for values, ids in _read_skew(connection, statements.skew, parameters):
                _extend_signatures(signature_of, signatures, known, ids, len(details))
                details.append(values)
    fields = {cd_id: [field for _, field in sorted(found, key=_first)] for cd_id, found in columns.items()}
    used = sorted(set(signature_of.values()))
    renumbered = {number: index for index, number in enumerate(used)}
    chosen = [_parts(signatures, number) for number in used]
    structs = [_template(bases[base_number], fields, [details[d] for d in found]) for base_number, found in chosen]
    return DescriptorTemplates(
        structs,
        {sd_id: renumbered[number] for sd_id, number in signature_of.items()},
        [bases[base_number][0] for base_number, _ in chosen],
    )


def _first(pair: tuple[int, Any]) -> int:
    return pair[0]


_Signature = tuple[int | None, int]
"""What a descriptor consists of: the number of a signature and that of one more detail, or None and the number of a
base row. Each refers to the previous one; storing all details with each would need quadratic space."""


def _parts(signatures: Sequence[_Signature], number: int) -> tuple[int, list[int]]:
    """The number of the base row, and those of the details in their order."""
    found: list[int] = []
    before, last = signatures[number]
    while before is not None:
        found.append(last)
        before, last = signatures[before]
    found.reverse()
    return last, found


def _extend_signatures(
    signature_of: dict[int, int],
    signatures: list[_Signature],
    known: dict[tuple[int, int], int],
    ids: Iterable[int],
    detail: int,
) -> None:
    """Replaces the signature of each descriptor in `ids` by its own with one more detail."""
    for sd_id in ids:
        before = signature_of[sd_id]
        after = known.get((before, detail))
        if after is None:
            after = len(signatures)
            known[(before, detail)] = after
            signatures.append((before, detail))
        signature_of[sd_id] = after


def _template(
    base: tuple[Any, ...], fields: Mapping[int, list[FieldSchema]], details: Iterable[tuple[Any, ...]]
) -> StorageDescriptor:
    serde_parameters: dict[str, str] = {}
    parameters: dict[str, str] = {}
    buckets: list[tuple[int, str]] = []
    sorts: list[tuple[int, Order]] = []
    skewed_columns: list[tuple[int, str]] = []
    skewed_values: list[tuple[int, list[str]]] = []
    skewed_locations: dict[tuple[str, ...], str] = {}
    for kind, *values in details:
        if kind in (SERDE_PARAMETER, PARAMETER):
            # As for tables: a null value in a map of parameters counts as absent.
            if values[2] is not None:
                (serde_parameters if kind == SERDE_PARAMETER else parameters)[values[1]] = values[2]
        elif kind == BUCKET_COLUMN:
            buckets.append((values[0], values[1] or ""))
        elif kind == SORT_COLUMN:
            sorts.append((values[0], Order(col=values[1], order=values[4])))
        elif kind == SKEWED_COLUMN:
            skewed_columns.append((values[0], values[1] or ""))
        elif kind == "value":
            skewed_values.append((values[0], list(values[1])))
        else:
            skewed_locations[values[1]] = values[2] or ""
    cd_id, input_format, output_format, compressed, sub_directories, buckets_number, no_serde, *serde = base
    serde_info = None
    if not no_serde:
        name, library, description, serializer, deserializer, serde_type = serde
        serde_info = SerDeInfo(
            name=name,
            serializationLib=library,
            parameters=dict(sorted(serde_parameters.items())),
            description=description,
            serializerClass=serializer,
            deserializerClass=deserializer,
            serdeType=serde_type or None,
        )
    return StorageDescriptor(
        cols=None if cd_id is None else fields[cd_id],
        inputFormat=input_format,
        outputFormat=output_format,
        compressed=bool(compressed),
        numBuckets=buckets_number,
        serdeInfo=serde_info,
        bucketCols=[name for _, name in sorted(buckets, key=_first)],
        sortCols=[order for _, order in sorted(sorts, key=_first)],
        parameters=dict(sorted(parameters.items())),
        skewedInfo=SkewedInfo(
            skewedColNames=[name for _, name in sorted(skewed_columns, key=_first)],
            skewedColValues=[found for _, found in sorted(skewed_values, key=_first)],
            skewedColValueLocationMaps=dict(sorted(skewed_locations.items())),
        ),
        storedAsSubDirectories=bool(sub_directories),
    )


def _read_grouped(
    connection: Connection, statement: GroupedStatement, parameters: Mapping[str, Any]
) -> list[tuple[tuple[Any, ...], list[int]]]:
    """Distinct rows with the ids that have them. Read row by row if the server has truncated a list of ids."""
    width = statement.width
    answer = _grouped(connection.execute(statement.grouped, parameters), width)
    if answer is not None:
        return answer
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row in connection.execute(statement.plain, parameters):
        groups.setdefault(tuple(row[:width]), []).append(row[width])
    return list(groups.items())


def _grouped(rows: Iterable[Sequence[Any]], width: int) -> list[tuple[tuple[Any, ...], list[int]]] | None:
    """None if the server has truncated a list of ids."""
    answer = []
    for row in rows:
        ids = _whole_list(row[width], row[width + 1])
        if ids is None:
            return None
        answer.append((tuple(row[:width]), ids))
    return answer


def _whole_list(text: str, sum_of_ids: Any) -> list[int] | None:
    """The ids of an aggregated list; None if the server has truncated it (`group_concat_max_len`)."""
    if text.endswith(","):
        return None
    ids = list(map(int, text.split(",")))
    return ids if sum(ids) == int(sum_of_ids) else None


def _read_skew(
    connection: Connection, statement: Any, parameters: Mapping[str, Any]
) -> Iterable[tuple[tuple[Any, ...], list[int]]]:
    """Skewed values and the locations of some of them, as details: ("value", position, values) and ("location", None,
    values, location)."""
    lists: dict[tuple[int, int, int, str | None], list[tuple[int, str]]] = {}
    for sd_id, kind, number, index, value, location in connection.execute(statement, parameters):
        values = lists.setdefault((sd_id, kind, number, location), [])
        if index is not None:
            values.append((index, value or ""))  # a row from Oracle may have NULL for an empty text
    groups: dict[tuple[Any, ...], list[int]] = {}
    for (sd_id, kind, number, location), found in lists.items():
        values_in_order = tuple(value for _, value in sorted(found, key=_first))
        detail: tuple[Any, ...]
        if kind == SKEWED_VALUE:
            detail = ("value", number, values_in_order)
        else:
            detail = ("location", None, values_in_order, location)
        groups.setdefault(detail, []).append(sd_id)
    return groups.items()
