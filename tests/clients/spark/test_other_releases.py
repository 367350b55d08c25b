"""Older releases of Spark: the same results as with the embedded metastore of the same release."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.conftest import ServerStarter
from tests.clients.spark.comparison import differences
from tests.clients.spark.releases import pyspark
from tests.clients.spark.session import SparkProcess, embedded, remote

pytestmark = [pytest.mark.soak, pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("version", ["3.5.5"])
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
        found = differences(reference, scratch, spark.steps(tmp_path, server.port), tmp_path)
    finally:
        spark.close()
    assert not found, "\n".join(found)
    assert "ERROR" not in server.log
