"""Reads partitions from the database: first rows, then structs made from them.

`read_partition_rows` returns columns as parallel lists, in a fixed number of statements for any number of partitions;
`partitions_of_rows` creates the structs. Caches use the rows and avoid the cost of structs.

The structs of one answer share the equal parts of their descriptors (columns, serde, parameters of the descriptor,
skew). Only `values`, `parameters`, the `StorageDescriptor` and the `Partition` are their own. Treat the shared parts as
frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, bindparam, func, literal, literal_column, select
from sqlalchemy.types import Text

from hms_cache.expressions import Bound, FilterLimits, decides_by_patterns, name_patterns
from hms_cache.expressions.name_prefilter import MAX_NAME_PATTERNS
from hms_cache.store.contract import partitions as contract
from hms_cache.store.engine.bulk_writes import in_ids
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.dialects import CharacterCount, SqlFunction
from hms_cache.store.engine.direct_statements import DirectQuery
from hms_cache.store.engine.read_plans import Plan, PlannedQuery
from hms_cache.store.partitions.partitioned_tables import PartitionedTable
from hms_cache.store.partitions.selection import (
    LONGEST_NAME,
    MAX_LISTED,
    SelectedPartitions,
    bound_expression,
    bound_filter,
    empty_values,
    has_components,
    has_default_value,
    like_any,
    name_of_values,
    named_by_partial_values,
    pattern_of_components,
    selected_by_expression,
    selected_by_filter,
    selection_plan,
    values_of_patterns,
    values_of_stored_name,
    values_with_empty,
)
from hms_cache.store.rows.descriptor_texts import DESCRIPTOR_TEXT, values_of_text
from hms_cache.store.rows.storage_descriptor_statements import DESCRIPTOR_COLUMNS, DescriptorScope, statements_of
from hms_cache.store.rows.storage_descriptors import DescriptorTemplates, build_templates, read_templates
from hms_cache.store.schema import PARTITION_PARAMS, PARTITIONS, SDS, SERDES
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition, StorageDescriptor
from hms_cache.values import frozen

FEW: Final = 200
"""Up to this many partitions are read with their complete descriptors in one statement. More are grouped by
descriptor."""

MAX_CHARACTERS_AT_ONCE: Final = 30_000
"""Maximum length of all names or patterns by which partitions are read in one round trip. The statements contain each
of them seven times, with an additional character per escaped quotation mark, and must stay below a megabyte, which
every server accepts."""

# Separators in the parameters that the server joins. If a parameter contains one, the counts do not match.
_KEY_END, _PAIR_END = "\x01", "\x02"


@dataclass(slots=True)
class PartitionRows:
    """Partitions of one table as parallel lists, ascending by name (code points).

    `template_numbers` are indexes into `templates`, which have no location (None: a partition of a view, without a
    descriptor). `empty_values` has, by row, the positions of values that are stored as empty texts although the name
    contains the default partition's name. `parameters` are in key order, without those stored as NULL, as in Hive.
    """

    table: PartitionedTable
    part_ids: list[int]
    names: list[str]
    create_times: list[int]
    last_access_times: list[int]
    write_ids: list[int]
    sd_ids: list[int | None]
    locations: list[str | None]
    template_numbers: list[int | None]
    templates: list[StorageDescriptor]
    column_descriptor_ids: list[int | None]
    parameters: list[dict[str, str]]
    empty_values: dict[int, dict[int, str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.part_ids)

    def only(self, names: Collection[str]) -> PartitionRows:
        """The partitions with these names."""
        kept = [row for row, name in enumerate(self.names) if name in names]
        if len(kept) == len(self.names):
            return self
        return replace(
            self,
            part_ids=[self.part_ids[row] for row in kept],
            names=[self.names[row] for row in kept],
            create_times=[self.create_times[row] for row in kept],
            last_access_times=[self.last_access_times[row] for row in kept],
            write_ids=[self.write_ids[row] for row in kept],
            sd_ids=[self.sd_ids[row] for row in kept],
            locations=[self.locations[row] for row in kept],
            template_numbers=[self.template_numbers[row] for row in kept],
            parameters=[self.parameters[row] for row in kept],
            empty_values={at: self.empty_values[row] for at, row in enumerate(kept) if row in self.empty_values},
        )

    def values(self, row: int) -> list[str]:
        """The values of one partition, in key order."""
        values = values_of_stored_name(self.names[row], len(self.table.keys))
        return values_with_empty(values, self.empty_values.get(row)) if self.empty_values else values


class _NumberedText(SqlFunction[str]):
    """Joins two numbers and a text into one text, with `_PAIR_END` after each number. If the text is NULL, the result
    is the first number only.

    MySQL joins numbers with texts of any character set; a cast would give the numbers a character set that may not fit
    the text's.
    """

    name = "numbered_text"
    type = Text()
    inherit_cache = True
    sql = (
        "coalesce("
        f"CAST({{0}} AS VARCHAR(20)) || '{_PAIR_END}' || CAST({{1}} AS VARCHAR(20)) || '{_PAIR_END}' || {{2}},"
        f" CAST({{0}} AS VARCHAR(20)) || '{_PAIR_END}')"
    )
    sql_on_mysql = f"coalesce(concat({{0}}, '{_PAIR_END}', {{1}}, '{_PAIR_END}', {{2}}), concat({{0}}, '{_PAIR_END}'))"


_OF_TABLE = PARTITIONS.c.TBL_ID == bindparam("table_id")

_Reach = Literal["table", "range", "ids", "names"] | int
"""A number stands for the names that match one of this many patterns (`selection.like_any`)."""

_CONDITIONS: dict[_Reach, ColumnElement[bool]] = {
    "table": _OF_TABLE,
    "range": and_(_OF_TABLE, PARTITIONS.c.PART_ID.between(bindparam("lowest_id"), bindparam("highest_id"))),
    "ids": in_ids(PARTITIONS.c.PART_ID, "part_ids"),
    "names": and_(_OF_TABLE, PARTITIONS.c.PART_NAME.in_(bindparam("names", expanding=True))),
}

_NARROW_COLUMNS = (
    PARTITIONS.c.PART_ID,
    PARTITIONS.c.PART_NAME,
    PARTITIONS.c.CREATE_TIME,
    PARTITIONS.c.LAST_ACCESS_TIME,
    PARTITIONS.c.WRITE_ID,
    PARTITIONS.c.SD_ID,
    SDS.c.LOCATION,
)
_WIDTH = len(_NARROW_COLUMNS) + 1
"""Includes the text with all parameters. After it come columns of the descriptor for few partitions, otherwise one
text."""


@frozen
class _Statements:
    narrow: Select[Any]
    wide: Select[Any]
    plain_parameters: Select[Any]
    scope: DescriptorScope
    narrow_query: DirectQuery
    wide_query: DirectQuery


@lru_cache(maxsize=2 * (len(_CONDITIONS) + MAX_NAME_PATTERNS.bit_length() + 1))
def _statements(reach: _Reach, has_write_ids: bool) -> _Statements:
    """Schemas before Hive 4 store no write ids with partitions."""
    condition = and_(_OF_TABLE, like_any(reach)) if isinstance(reach, int) else _CONDITIONS[reach]
    columns: list[ColumnElement[Any]] = [
        column if has_write_ids or column is not PARTITIONS.c.WRITE_ID else literal_column("0").label("WRITE_ID")
        for column in _NARROW_COLUMNS
    ]
    with_descriptors = PARTITIONS.outerjoin(SDS, SDS.c.SD_ID == PARTITIONS.c.SD_ID).outerjoin(
        SERDES, SERDES.c.SERDE_ID == SDS.c.SERDE_ID
    )
    parameters = PARTITION_PARAMS.c
    pair = parameters.PARAM_KEY + literal(_KEY_END) + parameters.PARAM_VALUE
    characters = func.sum(CharacterCount(parameters.PARAM_KEY) + CharacterCount(parameters.PARAM_VALUE))
    columns.append(
        select(_NumberedText(func.count(), characters, func.aggregate_strings(pair, _PAIR_END)))
        .where(parameters.PART_ID == PARTITIONS.c.PART_ID, parameters.PARAM_VALUE.is_not(None))
        .correlate(PARTITIONS)
        .scalar_subquery()
    )
    with_parameters = PARTITIONS.join(PARTITION_PARAMS, parameters.PART_ID == PARTITIONS.c.PART_ID)
    present = and_(condition, parameters.PARAM_VALUE.is_not(None))
    narrow = select(*columns, DESCRIPTOR_TEXT).select_from(with_descriptors).where(condition)
    wide = select(*columns, *DESCRIPTOR_COLUMNS).select_from(with_descriptors).where(condition)
    return _Statements(
        narrow=narrow,
        wide=wide,
        narrow_query=DirectQuery(narrow),
        wide_query=DirectQuery(wide),
        plain_parameters=select(parameters.PART_ID, parameters.PARAM_KEY, parameters.PARAM_VALUE)
        .select_from(with_parameters)
        .where(present),
        scope=DescriptorScope(PARTITIONS, PARTITIONS.c.SD_ID, condition),
    )


@frozen
class _Reading:
    """Statements that read partitions, and their parameters. `requested`: the ids to keep, if they read more."""

    statements: _Statements
    parameters: dict[str, Any]
    requested: frozenset[int] | None


def _plan(connection: Connection, table: PartitionedTable, part_ids: Sequence[int] | None) -> _Reading:
    has_write_ids = features_of(connection).has(PARTITIONS.c.WRITE_ID)
    if part_ids is None:
        return _Reading(_statements("table", has_write_ids), {"table_id": table.table_id}, None)
    if len(part_ids) > MAX_LISTED:
        span = {"table_id": table.table_id, "lowest_id": min(part_ids), "highest_id": max(part_ids)}
        return _Reading(_statements("range", has_write_ids), span, frozenset(part_ids))
    return _Reading(_statements("ids", has_write_ids), {"part_ids": list(part_ids)}, None)


def read_partition_rows(connection: Connection, table: PartitionedTable, selected: SelectedPartitions) -> PartitionRows:
    """The selected partitions as rows, by name.

    At most seven statements for any number of partitions, usually two: one for partitions with parameters and
    descriptors, and one for details of the distinct descriptors. Further ones are for skew, for descriptors and
    parameters whose joined texts are incomplete, and for empty values.
    """
    part_ids = selected.part_ids
    if part_ids is not None and not part_ids:
        return _no_rows(table)
    reading = _plan(connection, table, part_ids)
    few = part_ids is not None and len(part_ids) <= FEW
    return _read_rows(connection, table, reading, few, lambda: empty_values(connection, table))


def _no_rows(table: PartitionedTable) -> PartitionRows:
    return PartitionRows(table, [], [], [], [], [], [], [], [], [], [], [])


def partitions_plan(
    connection: Connection,
    table: PartitionedTable,
    selection: contract.PartitionSelection,
    *,
    max_parts: int,
    context: StoreContext,
) -> Plan[tuple[PartitionRows, bool]]:
    """`selection_plan` and `read_partition_rows` in one, for reads. The bool says whether some partitions could not be
    decided.

    Requires a connection on which all statements show one snapshot. One round trip if names identify the partitions,
    two for a few partitions, three if the database has to examine many.
    """
    limits = context.filter_limits
    if max_parts < 0 and context.settings.catalog.partition_request_limit < 0:
        named = _named(connection, table, selection, limits)
        if named is not None:
            rows = yield from _rows_at_once(connection, table, named.reach, named.values, named.is_few)
            return named.chosen(rows)
    selected = yield from selection_plan(connection, table, selection, max_parts=max_parts, context=context)
    part_ids = selected.part_ids
    if part_ids is None or len(part_ids) > FEW:
        return read_partition_rows(connection, table, selected), selected.has_unknown
    if not part_ids:
        return _no_rows(table), selected.has_unknown
    rows = yield from _rows_at_once(connection, table, "ids", {"part_ids": part_ids}, True)
    return rows, selected.has_unknown


def few_partitions_plan(connection: Connection, table: PartitionedTable) -> Plan[PartitionRows]:
    """All partitions of a table that is known to have few, in one round trip."""
    return (yield from _rows_at_once(connection, table, "table", {"table_id": table.table_id}, True))


def named_partitions_plan(
    connection: Connection, table: PartitionedTable, names: contract.ByNames, context: StoreContext
) -> Plan[PartitionRows]:
    """The partitions with these names, for loads, to which limits on requests do not apply."""
    named = _named(connection, table, names, context.filter_limits)
    if named is None:
        selected = yield from selection_plan(connection, table, names, context=context, is_write=True)
        return read_partition_rows(connection, table, selected)
    return named.chosen((yield from _rows_at_once(connection, table, named.reach, named.values, named.is_few)))[0]


class _Named(NamedTuple):
    """Partitions that the database finds by their names, with few superfluous ones."""

    reach: _Reach
    values: dict[str, Any]
    is_few: bool
    chosen: Callable[[PartitionRows], tuple[PartitionRows, bool]]
    """Selects the requested rows among those found; the bool says whether some could not be decided."""


def _named(
    connection: Connection, table: PartitionedTable, selection: contract.PartitionSelection, limits: FilterLimits
) -> _Named | None:
    """None if names do not identify the partitions, or there are too many names. Raises MetaException for invalid
    selections."""
    of_table: dict[str, Any] = {"table_id": table.table_id}

    def by_names(names: Sequence[str]) -> _Named | None:
        # MySQL cannot compare other characters with names in Hive's schema, and PostgreSQL does not support NUL.
        if len(names) > FEW or sum(map(len, names)) > MAX_CHARACTERS_AT_ONCE:
            return None
        if not all(name.isascii() and len(name) <= LONGEST_NAME and "\0" not in name for name in names):
            return None
        requested = frozenset(names)
        return _Named(
            "names", {**of_table, "names": sorted(requested)}, True, lambda rows: (rows.only(requested), False)
        )

    def by_patterns(
        patterns: Sequence[str], decide: Callable[[list[tuple[int, str]]], tuple[list[tuple[int, str]], bool]]
    ) -> _Named | None:
        if not patterns or not all(pattern.isascii() for pattern in patterns):
            return None

        def chosen(rows: PartitionRows) -> tuple[PartitionRows, bool]:
            found, has_unknown = decide(list(zip(rows.part_ids, rows.names, strict=True)))
            return rows.only({name for _, name in found}), has_unknown

        # Building a statement costs 5 to 10 ms and some 0.2 MB, so the number of patterns is rounded up to a power of
        # two: at most seven statements.
        count = 1 << (len(patterns) - 1).bit_length()
        given = [*patterns, *[min(patterns, key=len)] * (count - len(patterns))]
        if sum(map(len, given)) > MAX_CHARACTERS_AT_ONCE:
            return None
        return _Named(count, {**of_table, **values_of_patterns(given)}, False, chosen)

    match selection:
        case contract.ByNames(names):
            return by_names(names)
        case contract.ByValues(values):
            return by_names([name_of_values(table, values)])
        case contract.ByPartialValues(values):
            meant = named_by_partial_values(table, values)
            if isinstance(meant, str):
                return by_names([meant])
            known = [one for one in meant if one is not None]
            if not known or meant[: len(known)] != known:
                return None
            return by_patterns(
                [pattern_of_components(meant)],
                lambda pairs: ([pair for pair in pairs if has_components(pair[1], meant)], False),
            )
        case contract.ByFilter(text) if text.strip():
            bound = bound_filter(table, text, limits)
            return by_patterns(
                _deciding_patterns(bound, table),
                lambda pairs: (selected_by_filter(connection, table, bound, pairs, limits), False),
            )
        case contract.ByExpression():
            tree = bound_expression(table, selection, limits)
            return by_patterns(
                _deciding_patterns(tree, table),
                lambda pairs: selected_by_expression(connection, table, tree, pairs, limits),
            )
    return None


def _deciding_patterns(bound: Bound, table: PartitionedTable) -> Sequence[str]:
    """Empty if names cannot decide."""
    return (name_patterns(bound, table.keys) or ()) if decides_by_patterns(bound, table.keys) else ()


def _rows_at_once(
    connection: Connection, table: PartitionedTable, reach: _Reach, values: dict[str, Any], is_few: bool
) -> Plan[PartitionRows]:
    """All partitions that `reach` selects, with their descriptors."""
    statements = _statements(reach, features_of(connection).has(PARTITIONS.c.WRITE_ID))
    query = statements.wide_query if is_few else statements.narrow_query
    rows, details = yield [
        PlannedQuery(query, values),
        PlannedQuery(statements_of(statements.scope).details_at_once, values),
    ]
    if not rows:
        return _no_rows(table)
    reading = _Reading(statements, values, None)
    return _made_rows(connection, table, reading, is_few, lambda: empty_values(connection, table), rows, details)


def read_partition_page(
    connection: Connection,
    table: PartitionedTable,
    lowest_id: int,
    highest_id: int,
    empty: Callable[[], dict[int, dict[int, str]]],
) -> PartitionRows:
    """The table's partitions with ids in this range (inclusive), as `read_partition_rows` reads them.

    `empty` returns the values that are stored as empty texts. It is called only if a name may hide one.
    """
    span = {"table_id": table.table_id, "lowest_id": lowest_id, "highest_id": highest_id}
    statements = _statements("range", features_of(connection).has(PARTITIONS.c.WRITE_ID))
    return _read_rows(connection, table, _Reading(statements, span, None), False, empty)


def _read_rows(
    connection: Connection,
    table: PartitionedTable,
    reading: _Reading,
    few: bool,
    empty: Callable[[], dict[int, dict[int, str]]],
) -> PartitionRows:
    statement = reading.statements.wide if few else reading.statements.narrow
    rows: Sequence[Row[Any]] = connection.execute(statement, reading.parameters).all()
    return _made_rows(connection, table, reading, few, empty, rows, None)


def _made_rows(
    connection: Connection,
    table: PartitionedTable,
    reading: _Reading,
    few: bool,
    empty: Callable[[], dict[int, dict[int, str]]],
    rows: Sequence[Any],
    details: Sequence[Any] | None,
) -> PartitionRows:
    """`details`: the rows that belong to the descriptors, or None if they have not been read yet."""
    make_templates = _templates if few else _templates_of_texts
    templates = make_templates(connection, reading, rows, details)
    if reading.requested is not None:
        rows = [row for row in rows if row[0] in reading.requested]
    rows = sorted(rows, key=itemgetter(1))
    columns = list(zip(*rows, strict=True)) if rows else [()] * _WIDTH
    ids, names, create_times, access_times, write_ids, sd_ids, locations, texts = (list(c) for c in columns[:_WIDTH])
    number_of = templates.number_of
    parameters = _parameters_of_texts(texts)
    if parameters is None:
        parameters = _read_plain_parameters(connection, reading, ids)
    found = PartitionRows(
        table,
        part_ids=ids,
        names=names,
        create_times=create_times,
        last_access_times=access_times,
        # Values of 0 and below mean "none", for which Hive returns -1.
        write_ids=[write_id if write_id and write_id > 0 else -1 for write_id in write_ids],
        sd_ids=sd_ids,
        locations=locations,
        template_numbers=[None if sd_id is None else number_of.get(sd_id) for sd_id in sd_ids],
        templates=templates.structs,
        column_descriptor_ids=templates.column_descriptor_ids,
        parameters=parameters,
    )
    if has_default_value(names):
        values = empty()
        found.empty_values = {row: values[part_id] for row, part_id in enumerate(ids) if part_id in values}
    return found


def _templates(
    connection: Connection, reading: _Reading, rows: Sequence[Any], details: Sequence[Any] | None
) -> DescriptorTemplates:
    """The templates of rows that have the columns of their descriptors."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row in rows:
        if row[5] is not None:
            groups.setdefault(tuple(row[_WIDTH:]), []).append(row[5])
    return build_templates(connection, groups.items(), reading.statements.scope, reading.parameters, details)


def _templates_of_texts(
    connection: Connection, reading: _Reading, rows: Sequence[Any], details: Sequence[Any] | None
) -> DescriptorTemplates:
    """The templates of rows that have their descriptors as texts, for all rows that the statements read."""
    groups: dict[str, list[int]] = {}
    for row in rows:
        text = row[_WIDTH]
        if text is not None:
            ids = groups.get(text)
            if ids is None:
                groups[text] = [row[5]]
            else:
                ids.append(row[5])
    found: list[tuple[tuple[Any, ...], list[int]]] = []
    for text, ids in groups.items():
        values = values_of_text(text)
        if values is None:
            return read_templates(connection, reading.statements.scope, reading.parameters)
        found.append((values, ids))
    return build_templates(connection, found, reading.statements.scope, reading.parameters, details)


def _parameters_of_texts(texts: Sequence[str]) -> list[dict[str, str]] | None:
    """Parameters of partitions, each joined by the server into one text. None if a text is incomplete: it was
    truncated, is too long for the server's packets, or contains the separators."""
    found: list[dict[str, str]] = []
    for text in texts:
        number, *rest = text.split(_PAIR_END)
        count = int(number)
        if not count:
            found.append({})
            continue
        characters, *pairs = rest
        if len(pairs) != count or text.count(_KEY_END) != count:
            return None
        if len(text) != len(number) + len(characters) + int(characters) + 2 * count + 1:
            return None
        pairs.sort()
        found.append(dict([pair.split(_KEY_END) for pair in pairs]))
    return found


def _read_plain_parameters(connection: Connection, reading: _Reading, part_ids: Sequence[int]) -> list[dict[str, str]]:
    """Like `_parameters_of_texts`, with one row per parameter."""
    found: dict[int, dict[str, str]] = {}
    for part_id, key, value in connection.execute(reading.statements.plain_parameters, reading.parameters):
        found.setdefault(part_id, {})[key] = value
    return [dict(sorted(found.get(part_id, {}).items())) for part_id in part_ids]


def partitions_of_rows(rows: PartitionRows) -> list[Partition]:
    """Structs of the rows, in their order. Raises MetaException if a name does not have the table's number of keys."""
    return [partition_of_row(rows, row, rows.values(row)) for row in range(len(rows))]


def partition_of_row(rows: PartitionRows, row: int, values: list[str]) -> Partition:
    """Struct of one row. `values`: the result of `PartitionRows.values` for this row."""
    table = rows.table
    number = rows.template_numbers[row]
    return Partition(
        values,
        table.database,
        table.name,
        rows.create_times[row],
        rows.last_access_times[row],
        None if number is None else _at_location(rows.templates[number], rows.locations[row]),
        rows.parameters[row],
        None,
        table.catalog,
        rows.write_ids[row],
    )


def _at_location(template: StorageDescriptor, location: str | None) -> StorageDescriptor:
    """A descriptor that shares everything except its location with the template."""
    return StorageDescriptor(
        template.cols,
        location,
        template.inputFormat,
        template.outputFormat,
        template.compressed,
        template.numBuckets,
        template.serdeInfo,
        template.bucketCols,
        template.sortCols,
        template.parameters,
        template.skewedInfo,
        template.storedAsSubDirectories,
    )
