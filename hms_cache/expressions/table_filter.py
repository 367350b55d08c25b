"""Filters of `get_table_names_by_filter`: the filter language on properties of tables instead of partition keys.

Field names in Hive 4 (2.3 and 3.1 lack the first two):

| field | compares | operators |
|---|---|---|
| `hive_filter_field_tableName__`, `hive_filter_field_tableType__`, `hive_filter_field_owner__` | text | all |
| `hive_filter_field_last_access__` | integer | all but LIKE |
| `hive_filter_field_params__KEY` | text of the table parameter KEY | `=`, `!=`, `<>`, LIKE |

If a table does not have the parameter or an owner, the field is NULL: no comparison with it is true, also under NOT. A
name cannot contain a dot; `discover__partitions` stands for `discover.partitions`, compared case-insensitively, as in
Hive; other names with dots can be written in backticks. LIKE uses `.*` and `.` (`like_pattern`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from hms_cache.expressions import tree
from hms_cache.expressions.errors import FilterBindError, FilterLimitError
from hms_cache.expressions.filter_parser import DEFAULT_LIMITS, FilterLimits
from hms_cache.expressions.like_pattern import expression_pattern
from hms_cache.input_limits import exceeded, input_limits
from hms_cache.values import frozen

FIELD_TABLE_NAME = "hive_filter_field_tableName__"
FIELD_TABLE_TYPE = "hive_filter_field_tableType__"
FIELD_OWNER = "hive_filter_field_owner__"
FIELD_LAST_ACCESS = "hive_filter_field_last_access__"
FIELD_PARAMETERS = "hive_filter_field_params__"


@frozen
class TableProperties:
    """The properties of a table that a filter can use."""

    table_name: str
    table_type: str | None
    owner: str | None
    last_access_time_s: int
    parameters: Mapping[str, str]


_Test: TypeAlias = Callable[[TableProperties], bool]


@frozen
class TableFilter:
    """A checked filter. `parameter_keys`: the table parameters that it reads; no others need be fetched."""

    parameter_keys: frozenset[str]
    _test: _Test
    _comparisons: int

    def names(self, tables: Sequence[TableProperties], limits: FilterLimits = DEFAULT_LIMITS) -> list[str]:
        """The names of the tables for which the filter is true, in their order.

        Raises `FilterLimitError` above `limits.max_comparisons`.
        """
        if len(tables) * self._comparisons > limits.max_comparisons:
            limits.refuse_comparisons()
        return [table.table_name for table in tables if self._test(table)]

    def matches(self, table: TableProperties) -> bool:
        """Whether the filter is true for the table."""
        return self._test(table)


def bind_table_filter(predicate: tree.Predicate) -> TableFilter:
    """Binds the tree of a filter text to properties of tables.

    Raises `FilterBindError` with Hive's text for unknown fields and unsupported operators, `FilterLimitError` for more
    than `limits.table_filter_parameters`.
    """
    binder = _TableBinder()
    test = binder.bind(predicate, negated=False)
    most = input_limits().table_filter_parameters
    if len(binder.parameter_keys) > most:
        setting = exceeded("table_filter_parameters")
        raise FilterLimitError(f"A filter of tables may name {most} parameters ({setting})")
    return TableFilter(frozenset(binder.parameter_keys), test, binder.comparisons)


class _TableBinder:
    def __init__(self) -> None:
        self.parameter_keys: set[str] = set()
        self.comparisons = 0

    def bind(self, node: tree.Predicate, negated: bool) -> _Test:
        self.comparisons += 1
        match node:
            case tree.Not(child):
                return self.bind(child, not negated)
            case tree.And(children) | tree.Or(children):
                tests = [self.bind(child, negated) for child in children]
                join = all if isinstance(node, tree.And) != negated else any
                return lambda table: join(test(table) for test in tests)
            case tree.Comparison(comparison, tree.Column(name), tree.Constant(value)):
                return self._comparison(name, comparison.negated if negated else comparison, value)
            case tree.Comparison(comparison, tree.Constant(value), tree.Column(name)):
                mirrored = comparison.mirrored
                return self._comparison(name, mirrored.negated if negated else mirrored, value)
            case tree.Between(operand, lower, upper):
                above = tree.Comparison(tree.ComparisonOperator.GREATER_OR_EQUAL, operand, lower)
                below = tree.Comparison(tree.ComparisonOperator.LESS_OR_EQUAL, operand, upper)
                return self.bind(tree.And((above, below)), negated)
            case tree.In(operand, values):
                return self.bind(_any_equal(operand, values), negated)
            case tree.Like(tree.Column(name), tree.Constant(value)):
                return self._like(name, value, negated)
            case tree.Like(_, tree.Column(name)):
                raise FilterBindError(f"Value should be on the RHS for LIKE operator : Key <{name}>")
            case _:
                raise FilterBindError(f"A filter cannot hold {type(node).__name__}")

    def _comparison(self, name: str, comparison: tree.ComparisonOperator, value: tree.Literal) -> _Test:
        compare = comparison.compare
        if name == FIELD_LAST_ACCESS:
            number = _integer(value)
            return lambda table: compare(table.last_access_time_s, number)
        text = str(value)
        if name.startswith(FIELD_PARAMETERS) and comparison not in (
            tree.ComparisonOperator.EQUAL,
            tree.ComparisonOperator.NOT_EQUAL,
        ):
            raise FilterBindError("Only [=, LIKE, !=, <>] are supported operators for HIVE_FILTER_FIELD_PARAMS")
        if name == FIELD_PARAMETERS + "discover__partitions":
            text = text.upper()
        field = self._text_field(name)
        return lambda table: (found := field(table)) is not None and compare(found, text)

    def _like(self, name: str, value: tree.Literal, negated: bool) -> _Test:
        if name == FIELD_LAST_ACCESS:
            raise FilterBindError("Like is not supported for HIVE_FILTER_FIELD_LAST_ACCESS")
        field = self._text_field(name)
        upper = name == FIELD_PARAMETERS + "discover__partitions"
        self.comparisons += len(str(value)) // 64
        pattern = expression_pattern(str(value).upper() if upper else str(value))
        return lambda table: (found := field(table)) is not None and pattern.matches(found) != negated

    def _text_field(self, name: str) -> Callable[[TableProperties], str | None]:
        if name == FIELD_TABLE_NAME:
            return lambda table: table.table_name
        if name == FIELD_TABLE_TYPE:
            return lambda table: table.table_type
        if name == FIELD_OWNER:
            return lambda table: table.owner
        if name.startswith(FIELD_PARAMETERS):
            key = name[len(FIELD_PARAMETERS) :]
            if key == "discover__partitions":
                self.parameter_keys.add("discover.partitions")
                return lambda table: _upper(table.parameters.get("discover.partitions"))
            self.parameter_keys.add(key)
            return lambda table: table.parameters.get(key)
        raise FilterBindError("Invalid key name in filter.  Use constants from org.apache.hadoop.hive.metastore.api")


def _any_equal(operand: tree.Operand, values: tuple[tree.Operand, ...]) -> tree.Predicate:
    return tree.Or(tuple(tree.Comparison(tree.ComparisonOperator.EQUAL, operand, value) for value in values))


def _integer(value: tree.Literal) -> int:
    try:
        return int(str(value))
    except ValueError as error:
        raise FilterBindError(f"The last access time is an integer, not {str(value)[:40]!r}") from error


def _upper(text: str | None) -> str | None:
    return None if text is None else text.upper()
