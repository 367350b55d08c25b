"""Resolves a request's selection to partition ids.

The database narrows a selection down as far as it is sure never to exclude a matching partition. The exact decision is
then made here, on the partition names, which contain the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Integer, and_, bindparam, func, or_, select

from hms_cache.expressions import (
    Bound,
    FilterLimits,
    KeyColumns,
    bind,
    evaluate,
    evaluate_expression,
    filter_errors_for_clients,
    name_patterns,
    parse_filter,
    sql_prefilter,
)
from hms_cache.expressions.bound import BoundOr
from hms_cache.expressions.hive_tree import parse_expression
from hms_cache.expressions.name_prefilter import LIKE_ESCAPE, LONGEST_LIKE
from hms_cache.metadata.name_ranges import may_begin_range
from hms_cache.metadata.partition_names import (
    DEFAULT_PARTITION_VALUE,
    escape_path_name,
    make_partition_name,
    values_of_name,
)
from hms_cache.store.contract import partitions as contract
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.direct_statements import CHARACTERS_OF_A_PACKET, DirectQuery
from hms_cache.store.engine.read_plans import Plan, PlannedQuery, execute_plan, fetch
from hms_cache.store.partitions.partitioned_tables import PartitionedTable
from hms_cache.store.partitions.text_orders import NameOrder, in_order_of_ascii, name_orders
from hms_cache.store.schema import PARTITION_KEY_VALS, PARTITIONS
from hms_cache.store.schema.text_planes import plane_of
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from hms_cache.values import frozen

LONGEST_NAME = 10_000
"""Maximum length of a name to look for: no database can index longer texts."""

NAMES_IN_A_STATEMENT = 5_000
"""Names or ids in one IN list: below SQLite's limit of 32,766 variables, and some 500 KB of SQL with long names."""

MAX_LISTED = 20_000
"""For more names or ids than this, it is cheaper to read all of the table's and select here."""

_LIMIT_SETTING = "metastore.limit.partition.request"
_MOST_ROWS = 2**31 - 1
"""PostgreSQL's driver sends a LIMIT as an integer of 32 bits. No table has as many partitions."""


@frozen
class SelectedPartitions:
    """Partitions, ascending by name. If `part_ids` is None, all partitions of the table are selected, and `names` is
    None, too."""

    part_ids: list[int] | None
    names: list[str] | None
    has_unknown: bool = False


_EVERYTHING = SelectedPartitions(None, None)


def values_of_stored_name(name: str, key_count: int) -> list[str]:
    """The values in a stored name. Raises MetaException if their number is not that of the table's keys."""
    values = values_of_name(name)
    if len(values) != key_count:
        raise MetaException(f"Expected {key_count} components, got {len(values)} ({name})")
    return values


def select_for_write(
    connection: Connection, table: PartitionedTable, selection: contract.PartitionSelection, context: StoreContext
) -> SelectedPartitions:
    """Resolves the selection of a write, with the statements of `selection_plan`."""
    return execute_plan(connection, selection_plan(connection, table, selection, context=context, is_write=True))


def select_by_each(
    connection: Connection, table: PartitionedTable, expressions: Sequence[contract.ByExpression], context: StoreContext
) -> list[SelectedPartitions]:
    """What each of the expressions selects. One statement finds all partitions that any of them may select.

    Raises MetaException for an expression that is a text but not a valid filter.
    """
    limits = context.filter_limits
    each = [bound_expression(table, one, limits) for one in expressions]
    if not each:
        return []
    any_of_them = replace(each[0], root=BoundOr(tuple(one.root for one in each)))
    candidates = _pairs(execute_plan(connection, fetch(_narrowing(connection, table, any_of_them))))
    candidates.sort(key=_name)
    columns = _key_columns(connection, table, any_of_them, candidates)
    selected: list[SelectedPartitions] = []
    for one in each:
        with filter_errors_for_clients():
            result = evaluate_expression(one, columns, limits)
        found = _masked(candidates, result.mask)
        selected.append(
            SelectedPartitions([part_id for part_id, _ in found], [name for _, name in found], result.has_unknown)
        )
    return selected


def selection_plan(
    connection: Connection,
    table: PartitionedTable,
    selection: contract.PartitionSelection,
    *,
    max_parts: int = -1,
    context: StoreContext,
    is_write: bool = False,
) -> Plan[SelectedPartitions]:
    """Resolves a selection, then applies `max_parts` (negative: no limit; 0: no partitions, but the selection is
    checked).

    One round trip, plus one if a value may be stored as an empty text or the error about the limit needs a count. For a
    list of up to 20,000 names, one statement per 5,000. Raises MetaException for invalid filters, for a wrong number of
    values, and if a read selects more partitions than `metastore.limit.partition.request`.
    """
    if max_parts == 0 and isinstance(selection, contract.AllPartitions | contract.ByNames):
        return SelectedPartitions([], [])
    limit = -1 if is_write else context.settings.catalog.partition_request_limit
    checked = limit > -1 and (max_parts < 0 or max_parts > limit)
    if isinstance(selection, contract.AllPartitions) and max_parts < 0 and not checked:
        return _EVERYTHING
    if checked and isinstance(selection, contract.ByNames):
        check_request_limit(table.name, len(selection.names), limit)
    found, has_unknown = yield from _candidates(
        connection, table, selection, max_parts if not checked else min(limit + 1, _MOST_ROWS), context.filter_limits
    )
    if checked and not isinstance(selection, contract.ByNames):
        if isinstance(selection, contract.AllPartitions) and len(found) > limit:
            check_request_limit(table.name, (yield from count_plan(table)), limit)
        check_request_limit(table.name, len(found), limit)
    found.sort(key=_name)
    if 0 <= max_parts < len(found):
        del found[max_parts:]
    return SelectedPartitions([part_id for part_id, _ in found], [name for _, name in found], has_unknown)


def check_request_limit(table: str, count: int, limit: int) -> None:
    """Raises MetaException with Hive's text if a request is for more partitions than allowed."""
    if count > limit:
        raise MetaException(
            f"Number of partitions scanned (={count}) on table '{table}' exceeds limit (={limit}). "
            f"This is controlled on the metastore server by {_LIMIT_SETTING}."
        )


def _name(found: tuple[int, str]) -> str:
    return found[1]


_COUNT = select(func.count()).select_from(PARTITIONS).where(PARTITIONS.c.TBL_ID == bindparam("table_id"))
_NAMES = select(PARTITIONS.c.PART_ID, PARTITIONS.c.PART_NAME).where(PARTITIONS.c.TBL_ID == bindparam("table_id"))
_LISTED_NAMES = _NAMES.where(PARTITIONS.c.PART_NAME.in_(bindparam("names", expanding=True)))
_LIKE_NAMES = _NAMES.where(PARTITIONS.c.PART_NAME.like(bindparam("pattern"), escape=LIKE_ESCAPE))
_COUNT_QUERY = DirectQuery(_COUNT)
_ALL_QUERY = DirectQuery(_NAMES)
_LISTED_QUERY = DirectQuery(_LISTED_NAMES)
_LIKE_QUERY = DirectQuery(_LIKE_NAMES)
_EMPTY_VALUES = (
    select(PARTITION_KEY_VALS.c.PART_ID, PARTITION_KEY_VALS.c.INTEGER_IDX, PARTITION_KEY_VALS.c.PART_KEY_VAL)
    .select_from(PARTITIONS.join(PARTITION_KEY_VALS, PARTITION_KEY_VALS.c.PART_ID == PARTITIONS.c.PART_ID))
    .where(
        PARTITIONS.c.TBL_ID == bindparam("table_id"),
        (PARTITION_KEY_VALS.c.PART_KEY_VAL == "") | PARTITION_KEY_VALS.c.PART_KEY_VAL.is_(None),
    )
)


def count_plan(table: PartitionedTable) -> Plan[int]:
    """The number of the table's partitions."""
    [row] = yield from fetch(PlannedQuery(_COUNT_QUERY, {"table_id": table.table_id}))
    return int(row[0])


def all_names(connection: Connection, table: PartitionedTable) -> list[tuple[int, str]]:
    """(id, name) of all partitions, unordered."""
    return _pairs(connection.execute(_NAMES, {"table_id": table.table_id}).all())


def ids_and_names_plan(table: PartitionedTable, selected: SelectedPartitions) -> Plan[list[tuple[int, str]]]:
    """(id, name) of the selected partitions by name, also if all are selected."""
    if selected.part_ids is not None:
        return list(zip(selected.part_ids, selected.names or (), strict=True))
    found = _pairs((yield from fetch(PlannedQuery(_ALL_QUERY, {"table_id": table.table_id}))))
    found.sort(key=_name)
    return found


def empty_values(connection: Connection, table: PartitionedTable) -> dict[int, dict[int, str]]:
    """Positions of values that are stored as empty texts, by partition id. The names contain the default partition's
    name instead.

    Called only if a name contains that: most writers also store the default partition's name as the value.
    """
    found: dict[int, dict[int, str]] = {}
    for part_id, position, value in connection.execute(_EMPTY_VALUES, {"table_id": table.table_id}):
        if not value:  # on some databases the condition ignores trailing blanks
            found.setdefault(part_id, {})[position] = ""
    return found


def values_with_empty(values: list[str], empty: dict[int, str] | None) -> list[str]:
    """The values of a name, with those replaced that are stored as empty texts."""
    if empty:
        for position, value in empty.items():
            if position < len(values) and values[position] == DEFAULT_PARTITION_VALUE:
                values[position] = value
    return values


def _pairs(rows: Iterable[Any]) -> list[tuple[int, str]]:
    return [(row[0], row[1]) for row in rows]


def batches_of_texts(connection: Connection, texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """The texts in batches for `comparable_rows`. On MySQL, texts with characters that some columns cannot represent
    are in batches of their own, so that they do not affect the others.

    A batch has at most `size` texts, and no more characters than fit into one statement. Texts that no column can
    contain are left out. Background: MySQL ignores trailing blanks, and PostgreSQL does not accept NUL.
    """
    ordered = sorted(text for text in texts if len(text.rstrip(" ")) <= LONGEST_NAME)
    if connection.dialect.name == "postgresql":
        ordered = [text for text in ordered if "\0" not in text]
    groups = [ordered]
    if connection.dialect.name in ("mysql", "mariadb") and not all(text.isascii() for text in ordered):
        groups = [[text for text in ordered if plane_of(text) == plane] for plane in range(3)]
    for group in groups:
        batch: list[str] = []
        characters = 0
        for text in group:
            if batch and (len(batch) == size or characters + len(text) > CHARACTERS_OF_A_PACKET):
                yield batch
                batch, characters = [], 0
            batch.append(text)
            characters += len(text)
        if batch:
            yield batch


def _candidates(
    connection: Connection,
    table: PartitionedTable,
    selection: contract.PartitionSelection,
    max_parts: int,
    limits: FilterLimits,
) -> Plan[tuple[list[tuple[int, str]], bool]]:
    """(id, name) of the selected partitions. `max_parts` is applied only if nothing is filtered afterwards."""
    match selection:
        case contract.AllPartitions():
            return (yield from _first_of_all(connection, table, max_parts)), False
        case contract.ByNames(names):
            return (yield from by_name_plan(connection, table, names)), False
        case contract.ByValues(values):
            return (yield from by_name_plan(connection, table, [name_of_values(table, values)])), False
        case contract.ByPartialValues(values):
            return (yield from _by_partial_values(connection, table, values)), False
        case contract.ByFilter(text):
            return (yield from _by_filter(connection, table, text, limits)), False
        case contract.ByExpression():
            return (yield from _by_expression(connection, table, selection, limits))


def _first_of_all(connection: Connection, table: PartitionedTable, max_parts: int) -> Plan[list[tuple[int, str]]]:
    """The first `max_parts` partitions by name or more; all if it is negative."""
    parameters: dict[str, Any] = {"table_id": table.table_id}
    if max_parts >= 0:
        order = name_orders(connection)[0]
        found = _pairs((yield from fetch(PlannedQuery(_first_query(order), {**parameters, "limit": max_parts}))))
        if len(found) < max_parts or not found:
            return found
        # If the database sorts names in its own order, the last name may be followed by smaller ones.
        if order.holds_for(found[-1][1]) and may_begin_range(found[-1][1]):
            return found
    return _pairs((yield from fetch(PlannedQuery(_ALL_QUERY, parameters))))


@lru_cache(maxsize=len(NameOrder))
def _first_query(order: NameOrder) -> DirectQuery:
    return DirectQuery(_NAMES.order_by(order.column).limit(bindparam("limit", type_=Integer())))


def name_of_values(table: PartitionedTable, values: Sequence[str]) -> str:
    """The name of the partition with these values.

    Raises MetaException unless there is one value per key (Hive: `Warehouse.makePartName`).
    """
    return make_partition_name(table.key_names, values)


def partitions_by_name(
    connection: Connection, table: PartitionedTable, names: Iterable[str], *, is_exact: bool = True
) -> list[tuple[int, str]]:
    """(id, name) of the names that exist, each once.

    If `is_exact` is false, also names that only the database considers equal: MySQL ignores trailing blanks.
    """
    return execute_plan(connection, by_name_plan(connection, table, names, is_exact=is_exact))


def by_name_plan(
    connection: Connection, table: PartitionedTable, names: Iterable[str], *, is_exact: bool = True
) -> Plan[list[tuple[int, str]]]:
    """Like `partitions_by_name`, as a plan."""
    requested = frozenset(names)
    if len(requested) > MAX_LISTED:
        without_blanks = frozenset() if is_exact else {name.rstrip(" ") for name in requested}
        return [
            pair
            for pair in all_names(connection, table)
            if pair[1] in requested or pair[1].rstrip(" ") in without_blanks
        ]
    found: dict[int, str] = {}
    # One after the other, because the size of a packet is limited.
    for batch in batches_of_texts(connection, requested, NAMES_IN_A_STATEMENT):
        parameters = {"table_id": table.table_id, "names": batch}
        rows = yield from fetch(PlannedQuery(_LISTED_QUERY, parameters, compares_texts=True))
        found.update(pair for pair in _pairs(rows) if pair[1] in requested or not is_exact)
    return list(found.items())


def _by_partial_values(
    connection: Connection, table: PartitionedTable, values: Sequence[str]
) -> Plan[list[tuple[int, str]]]:
    found = named_by_partial_values(table, values)
    if isinstance(found, str):
        return (yield from by_name_plan(connection, table, [found]))
    parameters: dict[str, Any] = {"table_id": table.table_id}
    if not any(found):
        return _pairs((yield from fetch(PlannedQuery(_ALL_QUERY, parameters))))
    parameters["pattern"] = pattern_of_components(found)
    pairs = _pairs((yield from fetch(PlannedQuery(_LIKE_QUERY, parameters, compares_texts=True))))
    return [pair for pair in pairs if has_components(pair[1], found)]


def named_by_partial_values(table: PartitionedTable, values: Sequence[str]) -> str | list[str | None]:
    """What the values of Hive's `_ps` calls select: one partition's name, or name components, where None matches any.

    Names are compared component by component; an empty value matches any component.
    """
    if len(values) > len(table.keys):
        raise MetaException(
            f"Incorrect number of partition values. numPartKeys={len(table.keys)}, part_val=[{', '.join(values)}]"
        )
    components = [
        f"{escape_path_name(key.lower())}={escape_path_name(value)}" if value else None
        for key, value in zip(table.key_names, values, strict=False)
    ]
    if len(components) == len(table.keys) and None not in components:
        return "/".join(part for part in components if part is not None)
    return components


def pattern_of_components(components: Sequence[str | None]) -> str:
    """The LIKE pattern of names that begin with the known components before the first unknown one."""
    fixed = components.index(None) if None in components else len(components)
    prefix = "".join(f"{component}/" for component in components[:fixed])[:LONGEST_LIKE]
    return prefix.replace("!", "!!").replace("%", "!%").replace("_", "!_") + "%"


def has_components(name: str, components: Sequence[str | None]) -> bool:
    """Whether a name has all components that are known."""
    parts = name.split("/")
    return all(component is None or parts[at] == component for at, component in enumerate(components))


def _by_filter(
    connection: Connection, table: PartitionedTable, text: str, limits: FilterLimits
) -> Plan[list[tuple[int, str]]]:
    if not text.strip():
        return _pairs((yield from fetch(PlannedQuery(_ALL_QUERY, {"table_id": table.table_id}))))
    bound = bound_filter(table, text, limits)
    pairs = _pairs((yield from fetch(_narrowing(connection, table, bound))))
    return selected_by_filter(connection, table, bound, pairs, limits)


def bound_filter(table: PartitionedTable, text: str, limits: FilterLimits) -> Bound:
    """A filter bound to the table's keys. Raises MetaException."""
    with filter_errors_for_clients():
        return bind(parse_filter(text, limits), table.keys)


def selected_by_filter(
    connection: Connection,
    table: PartitionedTable,
    bound: Bound,
    candidates: list[tuple[int, str]],
    limits: FilterLimits,
) -> list[tuple[int, str]]:
    """The candidates that the filter selects. Raises MetaException."""
    with filter_errors_for_clients():
        return _masked(candidates, evaluate(bound, _key_columns(connection, table, bound, candidates), limits))


def _by_expression(
    connection: Connection, table: PartitionedTable, selection: contract.ByExpression, limits: FilterLimits
) -> Plan[tuple[list[tuple[int, str]], bool]]:
    """For Hive's serialized trees. Partitions that cannot be decided are included, and the bool is true."""
    bound = bound_expression(table, selection, limits)
    pairs = _pairs((yield from fetch(_narrowing(connection, table, bound))))
    return selected_by_expression(connection, table, bound, pairs, limits)


def bound_expression(table: PartitionedTable, selection: contract.ByExpression, limits: FilterLimits) -> Bound:
    """Like `bound_filter`, for Hive's serialized trees."""
    default = selection.default_partition_name or DEFAULT_PARTITION_VALUE
    with filter_errors_for_clients():
        return parse_expression(selection.expression, selection.plain_text, limits).bind(table.keys, default)


def selected_by_expression(
    connection: Connection,
    table: PartitionedTable,
    bound: Bound,
    candidates: list[tuple[int, str]],
    limits: FilterLimits,
) -> tuple[list[tuple[int, str]], bool]:
    """Like `selected_by_filter`. Candidates that cannot be decided are included, and the bool is true."""
    with filter_errors_for_clients():
        result = evaluate_expression(bound, _key_columns(connection, table, bound, candidates), limits)
    return _masked(candidates, result.mask), result.has_unknown


def _masked(candidates: list[tuple[int, str]], mask: Any) -> list[tuple[int, str]]:
    return [candidates[row] for row in mask.nonzero()[0].tolist()]


def _key_columns(
    connection: Connection, table: PartitionedTable, bound: Bound, pairs: Sequence[tuple[int, str]]
) -> KeyColumns:
    """The values of these partitions as columns."""
    return KeyColumns.from_values(table.keys, read_values(connection, table, pairs), bound.default_partition_name)


def _narrowing(connection: Connection, table: PartitionedTable, bound: Bound) -> PlannedQuery:
    """The query that finds all partitions that the database cannot rule out: by prefixes of names if these are
    known, otherwise by key values."""
    parameters: dict[str, Any] = {"table_id": table.table_id}
    patterns = name_patterns(bound, table.keys)
    if patterns is not None and len(patterns) == 1:
        return PlannedQuery(_LIKE_QUERY, {**parameters, "pattern": patterns[0]}, compares_texts=True)
    if patterns is not None:
        return PlannedQuery(
            DirectQuery(_NAMES.where(like_any(len(patterns))), is_kept=False),
            {**parameters, **values_of_patterns(patterns)},
            compares_texts=True,
        )
    joins: dict[int, Any] = {}

    def column(index: int) -> ColumnElement[str]:
        if index not in joins:
            joins[index] = _key_value_alias(index)
        value = joins[index].c.PART_KEY_VAL
        return in_order_of_ascii(connection, value, PARTITION_KEY_VALS.c.PART_KEY_VAL)

    condition = sql_prefilter(bound, column, text_order=True)
    if condition is None or not joins:
        return PlannedQuery(_ALL_QUERY, parameters)
    source: Any = PARTITIONS
    for index, values in joins.items():
        source = source.join(values, and_(values.c.PART_ID == PARTITIONS.c.PART_ID, values.c.INTEGER_IDX == index))
    statement = _NAMES.select_from(source).where(condition)
    return PlannedQuery(DirectQuery(statement, is_kept=False), parameters, compares_texts=True)


def like_any(count: int) -> ColumnElement[bool]:
    """A condition: the name matches one of `count` patterns, which `values_of_patterns` binds."""
    name = PARTITIONS.c.PART_NAME
    return or_(*(name.like(bindparam(f"pattern_{at}"), escape=LIKE_ESCAPE) for at in range(count)))


def values_of_patterns(patterns: Sequence[str]) -> dict[str, str]:
    """The parameters of `like_any`."""
    return {f"pattern_{at}": pattern for at, pattern in enumerate(patterns)}


@lru_cache(maxsize=64)
def _key_value_alias(index: int) -> Any:
    return PARTITION_KEY_VALS.alias(f"KEY_{index}")


def read_values(connection: Connection, table: PartitionedTable, pairs: Sequence[tuple[int, str]]) -> list[list[str]]:
    """The stored values of these partitions. One statement if one may be an empty text, otherwise none."""
    key_count = len(table.keys)
    values = [values_of_stored_name(name, key_count) for _, name in pairs]
    if any(DEFAULT_PARTITION_VALUE in name for _, name in pairs):
        empty = empty_values(connection, table)
        for (part_id, _), row in zip(pairs, values, strict=True):
            values_with_empty(row, empty.get(part_id))
    return values


def has_default_value(names: Iterable[str]) -> bool:
    """Whether a name contains the default partition's name, so that its value may be stored as an empty text."""
    return any(DEFAULT_PARTITION_VALUE in name for name in names)
