"""Storage descriptors of many partitions: read in a fixed number of statements whatever their number.

Thousands of partitions of a table usually have the same descriptor but for the location. Reading makes use of that:
`read_templates` lets the server group equal rows and answer each distinct one with the ids that have it, so what
crosses the wire and is decoded is a few rows, not one or more per partition. The grouping is exact: texts are compared
with their lengths (a collation that ignores trailing blanks must not merge " " with ""), and the ids come with their
sum, so that a list which the server cut short is noticed and read row by row instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    Select,
    String,
    Text,
    bindparam,
    case,
    cast,
    func,
    literal,
    literal_column,
    null,
    select,
    union_all,
)

from hms_cache.store.schema import (
    BUCKETING_COLS,
    COLUMNS_V2,
    SD_PARAMS,
    SDS,
    SERDE_PARAMS,
    SERDES,
    SKEWED_COL_NAMES,
    SKEWED_COL_VALUE_LOC_MAP,
    SKEWED_STRING_LIST_VALUES,
    SKEWED_VALUES,
    SORT_COLS,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    FieldSchema,
    Order,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
)

ColumnsKey: TypeAlias = tuple[tuple[str, str | None, str | None], ...]
"""Columns as a value: (name, type, comment) of each."""

_SERDE_PARAMETER, _PARAMETER, _BUCKET_COLUMN, _SORT_COLUMN, _SKEWED_COLUMN, _COLUMN = range(6)
_SKEWED_VALUE, _SKEWED_LOCATION = range(2)


@dataclass(frozen=True, eq=False)
class DescriptorScope:
    """Which storage descriptors a statement is about: those that `source` names in `descriptor_id` where `condition`.

    Build a scope once and keep it: the statements over it are built once per scope, values go in as parameters.
    """

    source: FromClause
    descriptor_id: ColumnElement[int]
    condition: ColumnElement[bool]


@dataclass(frozen=True, slots=True)
class _Branch:
    """A SELECT of `columns` and an id, to be grouped by `keys`; `texts` are those of the keys that are texts."""

    columns: Sequence[ColumnElement[Any]]
    keys: Sequence[ColumnElement[Any]]
    texts: Sequence[ColumnElement[Any]]
    identity: ColumnElement[int]
    source: FromClause
    condition: ColumnElement[bool]

    def plain(self) -> Select[Any]:
        """Rows (columns…, id)."""
        return select(*self.columns, self.identity.label("ID")).select_from(self.source).where(self.condition)

    def grouped(self) -> Select[Any]:
        """Distinct rows (columns…, ids with commas between them, sum of the ids)."""
        return (
            select(
                *self.columns,
                func.aggregate_strings(cast(self.identity, String), ",").label("IDS"),
                func.sum(self.identity).label("SUM_OF_IDS"),
            )
            .select_from(self.source)
            .where(self.condition)
            .group_by(*self.keys, *(func.length(text) for text in self.texts))
        )


@dataclass(frozen=True, slots=True)
class _GroupedStatement:
    """One statement over one or more branches, and its plain form for servers that cut the list of ids short."""

    grouped: Any
    plain: Any
    width: int

    @classmethod
    def over(cls, branches: Sequence[_Branch]) -> _GroupedStatement:
        width = len(branches[0].columns)
        if len(branches) == 1:
            return cls(branches[0].grouped(), branches[0].plain(), width)
        return cls(
            union_all(*(branch.grouped() for branch in branches)),
            union_all(*(branch.plain() for branch in branches)),
            width,
        )


@dataclass(frozen=True, slots=True)
class _ScopeStatements:
    base: _GroupedStatement
    details: _GroupedStatement
    skew: Any


class DescriptorTemplates:
    """Distinct storage descriptors without their locations, and which one each descriptor id has.

    `structs[number]` is the template; `number_of[sd_id]` its number. `column_descriptor_ids[number]` is its CD_ID.
    """

    __slots__ = ("column_descriptor_ids", "number_of", "structs")

    def __init__(
        self, structs: list[StorageDescriptor], number_of: dict[int, int], column_descriptor_ids: list[int | None]
    ) -> None:
        self.structs = structs
        self.number_of = number_of
        self.column_descriptor_ids = column_descriptor_ids


def columns_key(columns: Iterable[FieldSchema] | None) -> ColumnsKey:
    """Columns as a value that can be compared and hashed, as they are stored (names in lower case)."""
    return tuple((column.name.lower(), column.type, column.comment) for column in columns or ())


def read_templates(
    connection: Connection, scope: DescriptorScope, parameters: Mapping[str, Any]
) -> DescriptorTemplates:
    """The distinct descriptors of a scope: two statements, three when one of them is skewed."""
    statements = _statements(scope)
    return _build_templates(connection, _read_grouped(connection, statements.base, parameters), statements, parameters)


def build_templates(
    connection: Connection,
    rows: Iterable[tuple[tuple[Any, ...], list[int]]],
    scope: DescriptorScope,
    parameters: Mapping[str, Any],
) -> DescriptorTemplates:
    """As `read_templates` where the caller read `DESCRIPTOR_COLUMNS` of the scope itself: (values, ids having them)."""
    return _build_templates(connection, rows, _statements(scope), parameters)


# The sixth says that there is no serde at all: an empty one has nulls only, too.
DESCRIPTOR_COLUMNS: tuple[ColumnElement[Any], ...] = (
    SDS.c.CD_ID,
    SDS.c.INPUT_FORMAT,
    SDS.c.OUTPUT_FORMAT,
    SDS.c.IS_COMPRESSED,
    SDS.c.IS_STOREDASSUBDIRECTORIES,
    SDS.c.NUM_BUCKETS,
    case((SDS.c.SERDE_ID.is_(None), literal_column("1")), else_=literal_column("0")),
    SERDES.c.NAME,
    SERDES.c.SLIB,
    SERDES.c.DESCRIPTION,
    SERDES.c.SERIALIZER_CLASS,
    SERDES.c.DESERIALIZER_CLASS,
    SERDES.c.SERDE_TYPE,
)


def _build_templates(
    connection: Connection,
    base: Iterable[tuple[tuple[Any, ...], list[int]]],
    statements: _ScopeStatements,
    parameters: Mapping[str, Any],
) -> DescriptorTemplates:
    """Puts base rows and details together: descriptors with the same base row and the same details are one template."""
    bases: list[tuple[Any, ...]] = []
    signature_of: dict[int, int] = {}
    signatures: list[tuple[int, tuple[int, ...]]] = []
    for values, ids in base:
        number = len(signatures)
        bases.append(values)
        signatures.append((number, ()))
        signature_of.update(dict.fromkeys(ids, number))
    cd_ids = sorted({values[0] for values in bases if values[0] is not None})
    details: list[tuple[Any, ...]] = []
    columns: dict[int, list[tuple[int, FieldSchema]]] = {cd_id: [] for cd_id in cd_ids}
    known: dict[tuple[int, int], int] = {}
    skewed = False
    if signature_of:
        for values, ids in _read_grouped(connection, statements.details, {**parameters, "cd_ids": cd_ids}):
            if values[0] == _COLUMN:
                field = FieldSchema(name=values[2], type=values[3], comment=values[4])
                for cd_id in ids:
                    columns[cd_id].append((values[1], field))
                continue
            skewed = skewed or values[0] == _SKEWED_COLUMN
            _extend_signatures(signature_of, signatures, known, ids, len(details))
            details.append(values)
        if skewed:
            for values, ids in _read_skew(connection, statements.skew, parameters):
                _extend_signatures(signature_of, signatures, known, ids, len(details))
                details.append(values)
    fields = {cd_id: [field for _, field in sorted(found, key=_first)] for cd_id, found in columns.items()}
    used = sorted(set(signature_of.values()))
    renumbered = {number: index for index, number in enumerate(used)}
    chosen = [signatures[number] for number in used]
    structs = [_template(bases[base_number], fields, [details[d] for d in chain]) for base_number, chain in chosen]
    return DescriptorTemplates(
        structs,
        {sd_id: renumbered[number] for sd_id, number in signature_of.items()},
        [bases[base_number][0] for base_number, _ in chosen],
    )


def _first(pair: tuple[int, Any]) -> int:
    return pair[0]


def _extend_signatures(
    signature_of: dict[int, int],
    signatures: list[tuple[int, tuple[int, ...]]],
    known: dict[tuple[int, int], int],
    ids: Iterable[int],
    detail: int,
) -> None:
    """Gives each descriptor in `ids` the signature that its own becomes with one more detail."""
    for sd_id in ids:
        before = signature_of[sd_id]
        after = known.get((before, detail))
        if after is None:
            after = len(signatures)
            known[(before, detail)] = after
            base, chain = signatures[before]
            signatures.append((base, (*chain, detail)))
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
        if kind == _SERDE_PARAMETER:
            serde_parameters[values[1]] = values[2]
        elif kind == _PARAMETER:
            parameters[values[1]] = values[2]
        elif kind == _BUCKET_COLUMN:
            buckets.append((values[0], values[1]))
        elif kind == _SORT_COLUMN:
            sorts.append((values[0], Order(col=values[1], order=values[4])))
        elif kind == _SKEWED_COLUMN:
            skewed_columns.append((values[0], values[1]))
        elif kind == "value":
            skewed_values.append((values[0], list(values[1])))
        else:
            skewed_locations[values[1]] = values[2]
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
    connection: Connection, statement: _GroupedStatement, parameters: Mapping[str, Any]
) -> list[tuple[tuple[Any, ...], list[int]]]:
    """Distinct rows with the ids that have them; read row by row when the server cut a list of ids short."""
    width = statement.width
    answer = []
    for row in connection.execute(statement.grouped, parameters):
        ids = _whole_list(row[width], row[width + 1])
        if ids is None:
            break
        answer.append((tuple(row[:width]), ids))
    else:
        return answer
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row in connection.execute(statement.plain, parameters):
        groups.setdefault(tuple(row[:width]), []).append(row[width])
    return list(groups.items())


def _whole_list(text: str, sum_of_ids: Any) -> list[int] | None:
    """The ids of an aggregated list, None when the server cut it short (`group_concat_max_len`)."""
    if text.endswith(","):
        return None
    ids = list(map(int, text.split(",")))
    return ids if sum(ids) == int(sum_of_ids) else None


def _read_skew(
    connection: Connection, statement: Any, parameters: Mapping[str, Any]
) -> Iterable[tuple[tuple[Any, ...], list[int]]]:
    """Skewed values and the locations of some of them, as details: ("value", position, values) and
    ("location", None, values, location)."""
    lists: dict[tuple[int, int, int, str | None], list[tuple[int, str]]] = {}
    for sd_id, kind, number, index, value, location in connection.execute(statement, parameters):
        values = lists.setdefault((sd_id, kind, number, location), [])
        if index is not None:
            values.append((index, value))
    groups: dict[tuple[Any, ...], list[int]] = {}
    for (sd_id, kind, number, location), found in lists.items():
        values_in_order = tuple(value for _, value in sorted(found, key=_first))
        detail: tuple[Any, ...]
        if kind == _SKEWED_VALUE:
            detail = ("value", number, values_in_order)
        else:
            detail = ("location", None, values_in_order, location)
        groups.setdefault(detail, []).append(sd_id)
    return groups.items()


@lru_cache(maxsize=64)
def _statements(scope: DescriptorScope) -> _ScopeStatements:
    return _ScopeStatements(
        _GroupedStatement.over([_base_branch(scope)]),
        _GroupedStatement.over(_detail_branches(scope)),
        _skew_statement(scope),
    )


def _base_branch(scope: DescriptorScope) -> _Branch:
    return _Branch(
        DESCRIPTOR_COLUMNS,
        DESCRIPTOR_COLUMNS,
        [column for column in DESCRIPTOR_COLUMNS if isinstance(column.type, String)],
        scope.descriptor_id,
        _with_descriptors(scope).outerjoin(SERDES, SERDES.c.SERDE_ID == SDS.c.SERDE_ID),
        scope.condition,
    )


def _with_descriptors(scope: DescriptorScope) -> FromClause:
    return scope.source if scope.source is SDS else scope.source.join(SDS, scope.descriptor_id == SDS.c.SD_ID)


def _detail_branches(scope: DescriptorScope) -> list[_Branch]:
    """Rows (kind, position, text, text, text, number) of all that hangs on a descriptor, and of its columns."""
    sd_id = scope.descriptor_id

    def hanging_on(child: FromClause, join: ColumnElement[bool]) -> FromClause:
        return scope.source.join(child, join)

    serde, parameter, bucket = SERDE_PARAMS.c, SD_PARAMS.c, BUCKETING_COLS.c
    sort, skew, column = SORT_COLS.c, SKEWED_COL_NAMES.c, COLUMNS_V2.c
    branches = [
        (
            _SERDE_PARAMETER,
            (None, serde.PARAM_KEY, serde.PARAM_VALUE, None, None),
            _with_descriptors(scope).join(SERDE_PARAMS, serde.SERDE_ID == SDS.c.SERDE_ID),
        ),
        (
            _PARAMETER,
            (None, parameter.PARAM_KEY, parameter.PARAM_VALUE, None, None),
            hanging_on(SD_PARAMS, sd_id == parameter.SD_ID),
        ),
        (
            _BUCKET_COLUMN,
            (bucket.INTEGER_IDX, bucket.BUCKET_COL_NAME, None, None, None),
            hanging_on(BUCKETING_COLS, sd_id == bucket.SD_ID),
        ),
        (
            _SORT_COLUMN,
            (sort.INTEGER_IDX, sort.COLUMN_NAME, None, None, sort.ORDER),
            hanging_on(SORT_COLS, sd_id == sort.SD_ID),
        ),
        (
            _SKEWED_COLUMN,
            (skew.INTEGER_IDX, skew.SKEWED_COL_NAME, None, None, None),
            hanging_on(SKEWED_COL_NAMES, sd_id == skew.SD_ID),
        ),
    ]
    found = [_detail_branch(kind, values, sd_id, source, scope.condition) for kind, values, source in branches]
    found.append(
        _detail_branch(
            _COLUMN,
            (column.INTEGER_IDX, column.COLUMN_NAME, column.TYPE_NAME, column.COMMENT, None),
            column.CD_ID,
            COLUMNS_V2,
            column.CD_ID.in_(bindparam("cd_ids", expanding=True)),
        )
    )
    return found


def _detail_branch(
    kind: int,
    values: Sequence[ColumnElement[Any] | None],
    identity: ColumnElement[int],
    source: FromClause,
    condition: ColumnElement[bool],
) -> _Branch:
    """Absent values are typed nulls: the branches of one statement must agree in their types."""
    present = [value for value in values if value is not None]
    columns: list[ColumnElement[Any]] = [literal(kind, Integer, literal_execute=True)]
    for value, type_ in zip(values, (BigInteger, Text, Text, Text, BigInteger), strict=True):
        columns.append(cast(null(), type_) if value is None else value)
    labels = ("KIND", "POSITION", "TEXT_1", "TEXT_2", "TEXT_3", "NUMBER")
    return _Branch(
        [column.label(label) for column, label in zip(columns, labels, strict=True)],
        present,
        [value for value in present if isinstance(value.type, String)],
        identity,
        source,
        condition,
    )


def _skew_statement(scope: DescriptorScope) -> Any:
    names = SKEWED_STRING_LIST_VALUES

    def of(kind: int, child: Any, sd_id: Any, list_id: Any, number: Any, location: Any) -> Select[Any]:
        return (
            select(
                scope.descriptor_id.label("ID"),
                literal(kind, Integer, literal_execute=True).label("KIND"),
                number.label("NUMBER"),
                names.c.INTEGER_IDX.label("POSITION"),
                names.c.STRING_LIST_VALUE.label("LIST_VALUE"),
                location.label("LOCATION"),
            )
            .select_from(
                scope.source.join(child, sd_id == scope.descriptor_id).outerjoin(
                    names, list_id == names.c.STRING_LIST_ID
                )
            )
            .where(scope.condition)
        )

    values = SKEWED_VALUES
    locations = SKEWED_COL_VALUE_LOC_MAP
    return union_all(
        of(
            _SKEWED_VALUE,
            values,
            values.c.SD_ID_OID,
            values.c.STRING_LIST_ID_EID,
            values.c.INTEGER_IDX,
            cast(null(), Text),
        ),
        of(
            _SKEWED_LOCATION,
            locations,
            locations.c.SD_ID,
            locations.c.STRING_LIST_ID_KID,
            locations.c.STRING_LIST_ID_KID,
            locations.c.LOCATION,
        ),
    )
