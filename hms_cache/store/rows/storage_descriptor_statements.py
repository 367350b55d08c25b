"""Statements that read storage descriptors, compiled once per scope. The server groups equal rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Integer,
    Select,
    String,
    bindparam,
    case,
    cast,
    func,
    literal,
    literal_column,
    null,
    select,
    true,
    union_all,
)
from sqlalchemy.types import TypeEngine

from hms_cache.store import schema
from hms_cache.store.engine.direct_statements import DirectQuery
from hms_cache.store.engine.text_conditions import ExactText
from hms_cache.store.schema.text_types import united_text
from hms_cache.values import frozen

# Kinds of details, including lists of skewed values.
SERDE_PARAMETER, PARAMETER, BUCKET_COLUMN, SORT_COLUMN, SKEWED_COLUMN, COLUMN = range(6)
SKEWED_VALUE, SKEWED_LOCATION = range(2)

DETAIL_COLUMNS = ("KIND", "POSITION", "TEXT_1", "TEXT_2", "TEXT_3", "NUMBER")
"""Columns of each detail; lists of ids follow."""


# The sixth tells that there is no serde: an empty serde also has only nulls.
DESCRIPTOR_COLUMNS: tuple[ColumnElement[Any], ...] = (
    *schema.SDS.c["CD_ID", "INPUT_FORMAT", "OUTPUT_FORMAT"],
    *schema.SDS.c["IS_COMPRESSED", "IS_STOREDASSUBDIRECTORIES", "NUM_BUCKETS"],
    case((schema.SDS.c.SERDE_ID.is_(None), literal_column("1")), else_=literal_column("0")),
    *schema.SERDES.c["NAME", "SLIB", "DESCRIPTION", "SERIALIZER_CLASS", "DESERIALIZER_CLASS", "SERDE_TYPE"],
)


@dataclass(frozen=True, eq=False)
class DescriptorScope:
    """The storage descriptors that a statement reads: those that `source` names in `descriptor_id` where `condition`
    holds.

    Create a scope once and keep it: statements are compiled once per scope, with values as parameters.
    """

    source: FromClause
    descriptor_id: ColumnElement[int]
    condition: ColumnElement[bool]


@frozen
class _Branch:
    """A SELECT of `columns` and an id, to be grouped by `keys`; `texts` are the keys that are texts."""

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
        """Distinct rows (columns…, comma-separated ids, sum of the ids)."""
        return (
            select(
                *self.columns,
                func.aggregate_strings(cast(self.identity, String), ",").label("IDS"),
                func.sum(self.identity).label("SUM_OF_IDS"),
            )
            .select_from(self.source)
            .where(self.condition)
            .group_by(*self.keys, *map(ExactText, self.texts))
        )


@frozen
class GroupedStatement:
    """One statement over one or more branches, and its ungrouped form for servers that truncate the list of ids."""

    grouped: Any
    plain: Any
    width: int

    @classmethod
    def over(cls, branches: Sequence[_Branch]) -> GroupedStatement:
        """A statement for the rows of all branches, which have the same columns."""
        width = len(branches[0].columns)
        if len(branches) == 1:
            return cls(branches[0].grouped(), branches[0].plain(), width)
        return cls(
            union_all(*(branch.grouped() for branch in branches)),
            union_all(*(branch.plain() for branch in branches)),
            width,
        )


class ScopeStatements:
    """The statements of one scope, each compiled at its first use, since few reads need all of them."""

    def __init__(self, scope: DescriptorScope) -> None:
        self._scope = scope

    @cached_property
    def base(self) -> GroupedStatement:
        """Selects descriptors and serdes."""
        return GroupedStatement.over([_base_branch(self._scope)])

    @cached_property
    def details(self) -> GroupedStatement:
        """Selects everything that refers to them, and the columns of the given `cd_ids`."""
        return GroupedStatement.over(_detail_branches(self._scope, _listed_columns()))

    @cached_property
    def details_at_once(self) -> DirectQuery:
        """Like `details`, with all columns in the scope, so that no ids have to be known. The database looks up the
        columns' ids itself: for scopes with few descriptors."""
        return DirectQuery(
            union_all(*(one.grouped() for one in _detail_branches(self._scope, _columns_of(self._scope))))
        )

    @cached_property
    def skew(self) -> Any:
        """Selects skewed values."""
        return _skew_statement(self._scope)


@lru_cache(maxsize=256)
def statements_of(scope: DescriptorScope) -> ScopeStatements:
    """The statements for a scope; cached, since compiling costs more than executing them."""
    return ScopeStatements(scope)


def _base_branch(scope: DescriptorScope) -> _Branch:
    return _Branch(
        DESCRIPTOR_COLUMNS,
        DESCRIPTOR_COLUMNS,
        [column for column in DESCRIPTOR_COLUMNS if isinstance(column.type, String)],
        scope.descriptor_id,
        _with_descriptors(scope).outerjoin(schema.SERDES, schema.SERDES.c.SERDE_ID == schema.SDS.c.SERDE_ID),
        scope.condition,
    )


def _with_descriptors(scope: DescriptorScope) -> FromClause:
    return (
        scope.source
        if scope.source is schema.SDS
        else scope.source.join(schema.SDS, scope.descriptor_id == schema.SDS.c.SD_ID)
    )


def _listed_columns() -> tuple[FromClause, ColumnElement[bool]]:
    return schema.COLUMNS_V2, schema.COLUMNS_V2.c.CD_ID.in_(bindparam("cd_ids", expanding=True))


def _columns_of(scope: DescriptorScope) -> tuple[FromClause, ColumnElement[bool]]:
    cd_id = schema.SDS.c.CD_ID
    own = select(cd_id).select_from(_with_descriptors(scope)).where(scope.condition, cd_id.is_not(None)).distinct()
    named = own.subquery("OWN")
    return named.join(schema.COLUMNS_V2, schema.COLUMNS_V2.c.CD_ID == named.c.CD_ID), true()


def _detail_branches(scope: DescriptorScope, columns: tuple[FromClause, ColumnElement[bool]]) -> list[_Branch]:
    """Rows (kind, position, text, text, text, number) of everything that refers to a descriptor, and of its columns:
    `columns` has their FROM clause and condition."""
    sd_id = scope.descriptor_id

    def hanging_on(child: FromClause, join: ColumnElement[bool]) -> FromClause:
        return scope.source.join(child, join)

    serde, parameter, bucket = schema.SERDE_PARAMS.c, schema.SD_PARAMS.c, schema.BUCKETING_COLS.c
    sort, skew, column = schema.SORT_COLS.c, schema.SKEWED_COL_NAMES.c, schema.COLUMNS_V2.c
    branches = [
        (
            SERDE_PARAMETER,
            (None, serde.PARAM_KEY, serde.PARAM_VALUE, None, None),
            _with_descriptors(scope).join(schema.SERDE_PARAMS, serde.SERDE_ID == schema.SDS.c.SERDE_ID),
        ),
        (
            PARAMETER,
            (None, parameter.PARAM_KEY, parameter.PARAM_VALUE, None, None),
            hanging_on(schema.SD_PARAMS, sd_id == parameter.SD_ID),
        ),
        (
            BUCKET_COLUMN,
            (bucket.INTEGER_IDX, bucket.BUCKET_COL_NAME, None, None, None),
            hanging_on(schema.BUCKETING_COLS, sd_id == bucket.SD_ID),
        ),
        (
            SORT_COLUMN,
            (sort.INTEGER_IDX, sort.COLUMN_NAME, None, None, sort.ORDER),
            hanging_on(schema.SORT_COLS, sd_id == sort.SD_ID),
        ),
        (
            SKEWED_COLUMN,
            (skew.INTEGER_IDX, skew.SKEWED_COL_NAME, None, None, None),
            hanging_on(schema.SKEWED_COL_NAMES, sd_id == skew.SD_ID),
        ),
    ]
    found = [_detail_branch(kind, values, sd_id, source, scope.condition) for kind, values, source in branches]
    found.append(
        _detail_branch(
            COLUMN,
            (column.INTEGER_IDX, column.COLUMN_NAME, column.TYPE_NAME, column.COMMENT, None),
            column.CD_ID,
            *columns,
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
    """Missing values are typed nulls: the branches of one statement must have equal types."""
    present = [value for value in values if value is not None]
    columns: list[ColumnElement[Any]] = [literal(kind, Integer, literal_execute=True)]
    types: list[TypeEngine[Any]] = [BigInteger(), *[united_text()] * 3, BigInteger()]
    for value, type_ in zip(values, types, strict=True):
        columns.append(cast(null(), type_) if value is None else value)
    return _Branch(
        [column.label(label) for column, label in zip(columns, DETAIL_COLUMNS, strict=True)],
        present,
        [value for value in present if isinstance(value.type, String)],
        identity,
        source,
        condition,
    )


def _skew_statement(scope: DescriptorScope) -> Any:
    names = schema.SKEWED_STRING_LIST_VALUES

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

    values = schema.SKEWED_VALUES
    locations = schema.SKEWED_COL_VALUE_LOC_MAP
    return union_all(
        of(
            SKEWED_VALUE,
            values,
            values.c.SD_ID_OID,
            values.c.STRING_LIST_ID_EID,
            values.c.INTEGER_IDX,
            cast(null(), united_text()),
        ),
        of(
            SKEWED_LOCATION,
            locations,
            locations.c.SD_ID,
            locations.c.STRING_LIST_ID_KID,
            locations.c.STRING_LIST_ID_KID,
            locations.c.LOCATION,
        ),
    )
