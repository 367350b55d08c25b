"""Names of columns that end with a blank of another script, as in tables imported from spreadsheets.

Hive trims what Java's `String.trim` trims, and nothing else (`StringUtils.normalizeIdentifier`, 4.0.1).
"""

from __future__ import annotations

import pytest

from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.server.conftest import Link, Serve, database, table


@pytest.fixture
def link(serve: Serve) -> Link:
    return serve().link()


@pytest.mark.parametrize("column", ["a\u3000", "\u00a0a", "a\u2003"])
def test_such_a_column_can_have_constraints_and_lose_its_statistics(link: Link, column: str) -> None:
    link.call("create_database", database=database("d"))
    made = table("d", "t")
    made.partitionKeys, made.sd.cols = [], [t.FieldSchema(column, "int")]
    link.call("create_table", tbl=made)
    longs = t.ColumnStatisticsData(longStats=t.LongColumnStatsData(0, 1, 2, 3))
    description = t.ColumnStatisticsDesc(True, "d", "t")
    statistics = t.ColumnStatistics(description, [t.ColumnStatisticsObj(column, "int", longs)])
    link.call("update_table_column_statistics", stats_obj=statistics)
    assert link.call("delete_table_column_statistics", db_name="d", tbl_name="t", col_name=column, engine="hive")
    key = t.SQLNotNullConstraint("hive", "d", "t", column, "nn", True, True, True)
    link.call("add_not_null_constraint", req=t.AddNotNullConstraintRequest([key]))
    request = t.NotNullConstraintsRequest("hive", "d", "t")
    [found] = link.call("get_not_null_constraints", request=request).notNullConstraints
    assert found.column_name == column
    # And no other name refers to the table.
    with pytest.raises(t.NoSuchObjectException):
        link.call("get_table", dbname="d", tbl_name="t\u00a0")
