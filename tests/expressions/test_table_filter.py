"""Filters over tables: Iceberg's and Trino's texts, each field, Hive's refusals."""

from __future__ import annotations

import pytest

from hms_cache.expressions import FilterBindError, parse_filter
from hms_cache.expressions.table_filter import TableProperties, bind_table_filter

ICEBERG = TableProperties("ice", "EXTERNAL_TABLE", "amy", 100, {"table_type": "ICEBERG", "discover.partitions": "True"})
PLAIN = TableProperties("plain", "MANAGED_TABLE", None, 0, {})


@pytest.mark.parametrize(
    ("text", "iceberg", "plain"),
    [
        ("", True, True),
        ('hive_filter_field_params__table_type like "ICEBERG"', True, False),
        ('hive_filter_field_params__table_type = "iceberg"', False, False),
        ('hive_filter_field_params__table_type != "DELTA"', True, False),
        ('not hive_filter_field_params__table_type = "DELTA"', True, False),
        ('(hive_filter_field_params__table_type) in ("x", "ICEBERG")', True, False),
        ('hive_filter_field_params__table_type like "ICE.*"', True, False),
        ('hive_filter_field_params__discover__partitions = "true"', True, False),
        ('`hive_filter_field_params__discover.partitions` = "True"', True, False),
        ('hive_filter_field_owner__ like ".*m.*"', True, False),
        ('hive_filter_field_owner__ > "amx" and hive_filter_field_last_access__ <= 100', True, False),
        ("hive_filter_field_last_access__ = 0", False, True),
        ("50 < hive_filter_field_last_access__", True, False),
        ("hive_filter_field_last_access__ not between 1 and 200", False, True),
        ('hive_filter_field_tableName__ = "plain" or hive_filter_field_owner__ = "amy"', True, True),
        ('hive_filter_field_tableType__ <> "MANAGED_TABLE"', True, False),
    ],
)
def test_tables_of_filter(text: str, iceberg: bool, plain: bool) -> None:
    chosen = bind_table_filter(parse_filter(text))
    assert (chosen.matches(ICEBERG), chosen.matches(PLAIN)) == (iceberg, plain)


def test_parameter_keys_are_known_beforehand() -> None:
    text = 'hive_filter_field_params__a = "1" and hive_filter_field_params__discover__partitions = "true"'
    assert bind_table_filter(parse_filter(text)).parameter_keys == {"a", "discover.partitions"}
    assert bind_table_filter(parse_filter("hive_filter_field_last_access__ = 1")).parameter_keys == frozenset()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dt = 1", "Invalid key name in filter.  Use constants from org.apache.hadoop.hive.metastore.api"),
        ("hive_filter_field_last_access__ like 'x'", "Like is not supported for HIVE_FILTER_FIELD_LAST_ACCESS"),
        (
            "hive_filter_field_params__a > 'x'",
            "Only [=, LIKE, !=, <>] are supported operators for HIVE_FILTER_FIELD_PARAMS",
        ),
        ("'x' like hive_filter_field_owner__", "Value should be on the RHS for LIKE operator"),
        ("hive_filter_field_last_access__ = 'soon'", "The last access time is an integer, not 'soon'"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(FilterBindError) as caught:
        bind_table_filter(parse_filter(text))
    assert str(caught.value).startswith(message)
