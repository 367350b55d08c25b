"""Spark with a policy: what its user may not read is hidden, and what the user may not do fails."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from hms_cache.app.service import Service
from hms_cache.config import load
from tests.clients.spark.session import SparkProcess, remote

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(600)]

POLICY = """
[[grants]]
users = ["etl"]
actions = ["create", "alter", "drop", "write"]
databases = ["shop"]
"""
READING = """
[[grants]]
users = ["etl"]
actions = ["read"]
databases = ["shop"]
tables = ["orders"]
"""


def test_spark_under_a_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "etl")
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    settings = {
        "server.port": 0,
        "admin.enabled": False,
        "database.url": f"sqlite:///{tmp_path / 'metastore.db'}",
        "warehouse.directory": f"file:{tmp_path / 'warehouse'}",
        "authorization.provider": "policy",
        "authorization.policy_file": str(policy),
        "security.accept_insecure": True,
    }
    with ExitStack() as stack:
        configuration = load(command_line=settings, environment={})
        service = Service(configuration)
        port = service.start().rpartition(":")[2]
        stack.callback(service.stop)
        spark = SparkProcess(tmp_path)
        stack.callback(spark.close)
        spark.session(remote(tmp_path, f"thrift://localhost:{port}"))
        spark.sql("create database shop")
        for name in ("orders", "salaries"):
            spark.sql(f"create table shop.{name} (a int) partitioned by (p string) stored as parquet")
            spark.sql(f"insert into shop.{name} values (1, 'x'), (2, 'y')")
        with pytest.raises(AssertionError, match="Permission denied: user etl may not create"):
            spark.sql("create database other")

        policy.write_text(READING)
        service.reload(configuration)
        assert spark.sql("show databases") == [["default"], ["shop"]]
        assert [row[1] for row in spark.sql("show tables in shop")] == ["orders"]
        assert spark.sql("select a from shop.orders where p = 'y'") == [["2"]]
        for name in ("salaries", "absent"):
            with pytest.raises(AssertionError, match="TABLE_OR_VIEW_NOT_FOUND"):
                spark.sql(f"select * from shop.{name}")
        for statement in (
            "insert into shop.orders values (3, 'z')",
            "drop table shop.orders",
            "alter table shop.orders add columns (b int)",
        ):
            with pytest.raises(AssertionError, match="Permission denied: user etl"):
                spark.sql(statement)
        assert spark.sql("select count(*) from shop.orders") == [["2"]]
