"""Fixtures of the tests of jobs: the Spark of all tests, without a metastore of its own."""

from __future__ import annotations

import pytest

from tests.clients.spark.session import SparkProcess, base_conf


@pytest.fixture(scope="session")
def job_conf(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    conf = base_conf(tmp_path_factory.mktemp("jobs"))
    return conf | {
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
    }


@pytest.fixture
def job_spark(spark: SparkProcess, job_conf: dict[str, str]) -> SparkProcess:
    """Spark with a session that jobs run in: ``job_spark.call(function, …)`` runs a function of the test's module."""
    spark.ensure_session(job_conf)
    return spark
