"""Values of statistics as texts of the data source `hms_catalog`."""

from __future__ import annotations

from decimal import Decimal

import pytest

from hms_cache.jobs.sources.catalog_rows import statistics_rows
from hms_cache.metadata.object_names import table_name
from hms_cache.metadata.statistics_values import ColumnValues, StatisticsKind, statistics_of
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatistics, ColumnStatisticsDesc

LONGEST = "9" * 38


@pytest.mark.parametrize(
    ("hive_type", "text"),
    [
        ("decimal(38,0)", LONGEST),
        ("decimal(38,0)", f"-{LONGEST}"),
        ("decimal(38,10)", f"{LONGEST[:28]}.{LONGEST[28:]}"),
        ("decimal(38,38)", f"0.{LONGEST}"),
        ("decimal(38,10)", "0.0000000001"),
        ("decimal(10,2)", "-1.50"),
        ("decimal(10,2)", "0.00"),
    ],
)
def test_bounds_of_decimals_have_all_digits(hive_type: str, text: str) -> None:
    bound = Decimal(text)
    column = statistics_of("d", hive_type, ColumnValues(StatisticsKind.DECIMAL, distinct=1, low=bound, high=bound))
    statistics = ColumnStatistics(ColumnStatisticsDesc(True, "db", "t"), [column])
    [row] = statistics_rows(statistics, table_name("hive", "db", "t"), "hive")
    assert row[8:11] == ("decimal", text, text)
