"""Older releases of Spark: the same results as with the embedded metastore of the same release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import ServerStarter
from tests.clients.spark.comparison import ANSWERS_SINCE_HIVE_3, differences
from tests.clients.spark.releases import pyspark
from tests.clients.spark.session import SparkProcess, embedded, remote

pytestmark = [pytest.mark.soak, pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(1800)]


#: Before Spark 3.4, Spark itself refuses the location of a database for a Hive before 3.
OTHERWISE: dict[str, dict[str, dict[str, Any]]] = {"3.3.4": {}}


@pytest.mark.parametrize("version", ["3.5.5", "3.4.4", "3.3.4"])
def test_results_are_those_of_the_releases_own_metastore(
    start_server: ServerStarter, tmp_path: Path, version: str
) -> None:
    spark = SparkProcess(tmp_path, pyspark=pyspark(version))
    try:
        scratch = tmp_path / "embedded"
        spark.session(embedded(scratch))
        assert spark.python("result = spark.version") == version
        reference = spark.steps(scratch)
        server = start_server("sqlite")
        spark.session(remote(tmp_path, server.uri))
        answers = spark.steps(tmp_path, server.port)
        otherwise = OTHERWISE.get(version, ANSWERS_SINCE_HIVE_3)
        found = differences(reference, scratch, answers, tmp_path, otherwise)
    finally:
        spark.close()
    assert not found, "\n".join(found)
    assert "ERROR" not in server.log
