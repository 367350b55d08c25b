"""Partition filters and Hive's expression trees: parsed to a typed tree, and evaluated exactly on key columns."""

from hms_cache.expressions.binding import bind
from hms_cache.expressions.bound import Bound
from hms_cache.expressions.errors import (
    FilterBindError,
    FilterError,
    FilterLimitError,
    FilterSyntaxError,
    filter_errors_for_clients,
)
from hms_cache.expressions.evaluate import ExpressionResult, evaluate, evaluate_expression
from hms_cache.expressions.filter_parser import FilterLimits, parse_filter
from hms_cache.expressions.hive_tree import ParsedExpression, parse_expression
from hms_cache.expressions.key_columns import KeyColumns
from hms_cache.expressions.key_types import DEFAULT_PARTITION_NAME, PartitionKey
from hms_cache.expressions.name_prefilter import decides_by_patterns, name_beginnings, name_patterns
from hms_cache.expressions.sql_prefilter import sql_prefilter
from hms_cache.expressions.table_filter import TableFilter, TableProperties, bind_table_filter

__all__ = [
    "DEFAULT_PARTITION_NAME",
    "Bound",
    "ExpressionResult",
    "FilterBindError",
    "FilterError",
    "FilterLimitError",
    "FilterLimits",
    "FilterSyntaxError",
    "KeyColumns",
    "ParsedExpression",
    "PartitionKey",
    "TableFilter",
    "TableProperties",
    "bind",
    "bind_table_filter",
    "decides_by_patterns",
    "evaluate",
    "evaluate_expression",
    "filter_errors_for_clients",
    "name_beginnings",
    "name_patterns",
    "parse_expression",
    "parse_filter",
    "sql_prefilter",
]
