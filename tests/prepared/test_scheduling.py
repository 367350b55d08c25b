"""Tests with Spark are one group, in whatever files; others are one group per file."""

from __future__ import annotations

from tests.documentation.pages import ROOT
from tests.scheduling import SPARK, group_of

WITHOUT = "tests/prepared/test_scheduling_of_none.py"


def test_a_file_with_spark_is_of_its_group() -> None:
    assert group_of("tests/clients/spark/test_statements.py", ROOT) == SPARK
    assert group_of("tests/jobs/statistics/test_claims.py", ROOT) == SPARK


def test_any_other_file_is_a_group() -> None:
    for file in ("tests/wire/test_versions.py", WITHOUT):
        assert group_of(file, ROOT) == file
