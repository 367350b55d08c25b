"""The job compared with Spark's own MSCK REPAIR TABLE: the same partitions for the same tree, equally readable by
Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hms_cache.client import MetastoreClient
from hms_cache.jobs.repair.definition import JOB
from tests.clients.spark.session import SparkProcess, remote
from tests.conftest import ServerStarter

pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.timeout(290)]


def partitions(client: MetastoreClient, table: str, root: Path) -> set[tuple[tuple[str, ...], str]]:
    found = client.call("get_partitions", "d", table, -1)
    return {(tuple(one.values), str(one.sd.location).replace(str(root / table), "T")) for one in found}


def test_the_same_partitions(spark: SparkProcess, start_server: ServerStarter, tmp_path: Path) -> None:
    server = start_server("sqlite")
    spark.session(remote(tmp_path, server.uri))
    spark.sql("create database d")
    root = tmp_path / "lake"
    for table in ("by_spark", "by_job"):
        location = f"location 'file:{root / table}'"
        spark.sql(
            f"create external table d.{table} (a int) partitioned by (p int, q string) stored as parquet {location}"
        )
        values = "(1, 1, 'a'), (2, 2, 'b/c'), (3, 3, 'ü %'), (4, null, 'x'), (5, 5, null), (6, 6, 'six')"
        spark.sql(f"insert into d.{table} select * from values {values}")
        # Two whose directories are deleted, and one with another location.
        for name in ("p=1", "p=6"):
            shutil.rmtree(root / table / name)
        shutil.copytree(root / table / "p=2", root / table / "p=22")
        spark.sql(f"alter table d.{table} drop partition (p=3)")
        (root / table / "p=7" / "q=empty").mkdir(parents=True)
        (root / table / "_temporary" / "p=8" / "q=z").mkdir(parents=True)
    spark.sql("msck repair table d.by_spark sync partitions")
    result = JOB.run(None, {"metastore": server.uri, "tables": ["d.by_job"]})
    assert (result.summary["added"], result.summary["dropped"], result.exit_status) == (3, 2, 0), result
    with MetastoreClient(server.uri) as client:
        by_job = partitions(client, "by_job", root)
        assert by_job == partitions(client, "by_spark", root)
        assert len(by_job) == 6
    for table in ("by_spark", "by_job"):
        spark.sql(f"refresh table d.{table}")
    rows = [sorted(spark.sql(f"select a, p, q from d.{table}")) for table in ("by_spark", "by_job")]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 5
