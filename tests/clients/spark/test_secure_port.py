"""Spark's own metastore client (Hive's, in Java) with TLS, by its keys."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from hms_cache.app.service import Service
from hms_cache.config import load
from tests.clients.spark.session import SparkProcess, remote
from tests.server.test_tls import Authority

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(600)]

TRUST_PASSWORD = "changeit"


def trust_store(authority: Authority) -> Path:
    keytool = shutil.which("keytool") or f"{os.environ.get('JAVA_HOME', '')}/bin/keytool"
    store = authority.directory / "trust.jks"
    arguments = ["-importcert", "-noprompt", "-alias", "ca", "-file", str(authority.ca_file), "-storetype", "JKS"]
    subprocess.run(
        [keytool, *arguments, "-keystore", str(store), "-storepass", TRUST_PASSWORD], check=True, capture_output=True
    )
    return store


def test_spark_creates_writes_and_reads_over_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    settings = {
        "server.port": 0,
        "admin.enabled": False,
        "database.url": f"sqlite:///{tmp_path / 'metastore.db'}",
        "warehouse.directory": f"file:{tmp_path / 'warehouse'}",
    }
    with ExitStack() as stack:
        service = Service(load(command_line=settings | authority.settings(), environment={}))
        port = service.start().rpartition(":")[2]
        stack.callback(service.stop)
        conf = remote(tmp_path, f"thrift://localhost:{port}") | {
            "spark.hadoop.hive.metastore.use.SSL": "true",
            "spark.hadoop.hive.metastore.truststore.path": str(trust_store(authority)),
            "spark.hadoop.hive.metastore.truststore.password": TRUST_PASSWORD,
        }
        spark = SparkProcess(tmp_path)
        stack.callback(spark.close)
        spark.session(conf)
        spark.sql("create database d")
        spark.sql("create table d.t (a int) partitioned by (p string) stored as parquet")
        spark.sql("insert into d.t values (1, 'x'), (2, 'y')")
        assert spark.sql("select a from d.t where p = 'y'") == [["2"]]
        assert service.metrics.server.tls_handshakes.values()[("ok",)] > 0
