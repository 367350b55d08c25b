"""Spark's own metastore client (Hive's, in Java) with a keytab, and with only a delegation token."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hms_cache.app.service import Service
from hms_cache.authentication.delegation.token_format import Token
from hms_cache.config import load
from tests.clients.spark.session import SparkProcess, remote
from tests.server.kerberos_realm import REALM, Realm, SaslSocket, running_realm
from tests.server.test_delegation_tokens import link_over, requested

pytest.importorskip("gssapi")
pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(900)]

SERVICE = f"hive/localhost@{REALM}"


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with running_realm(tmp_path_factory.mktemp("realm")) as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(running.configuration))
        patch.setenv("KRB5CCNAME", "FILE:/nonexistent")
        running.keytab("hive/localhost")
        running.ticket("ann")
        yield running


def credentials_file(path: Path, token: Token) -> Path:
    """Like Hadoop's `Credentials.writeTokenStorageFile`: what YARN gives a container."""

    def sized(data: bytes) -> bytes:
        assert len(data) < 2**15
        return (len(data).to_bytes(1, "big") if len(data) < 128 else b"\x8e" + struct.pack("!H", len(data))) + data

    fields = (token.identifier, token.password, token.kind, token.service)
    path.write_bytes(b"HDTS\0\1" + sized(b"hive") + b"".join(map(sized, fields)) + b"\0")
    return path


def class_path(directory: Path, quality: str = "authentication", **more: str) -> Path:
    """A directory with Hadoop's configuration of a Kerberized site."""
    site = directory / "hadoop-conf"
    site.mkdir()
    properties = {"hadoop.security.authentication": "kerberos", "hadoop.rpc.protection": quality, **more}
    entries = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in properties.items())
    (site / "core-site.xml").write_text(f"<configuration>{entries}</configuration>")
    return site


@pytest.mark.parametrize("quality", ["authentication", "integrity", "privacy"])
@pytest.mark.parametrize("by", ["keytab", "token"])
def test_spark_creates_writes_and_reads(
    tmp_path: Path, realm: Realm, by: str, quality: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        "server.port": 0,
        "admin.enabled": False,
        "database.url": f"sqlite:///{tmp_path / 'metastore.db'}",
        "warehouse.directory": f"file:{tmp_path / 'warehouse'}",
        "authentication.kerberos_enabled": True,
        "authentication.kerberos_principal": SERVICE,
        "authentication.kerberos_keytab_file": str(realm.directory / "hive_localhost.keytab"),
    }
    with ExitStack() as stack:
        service = Service(load(command_line=settings, environment={}))
        port = int(service.start().rpartition(":")[2])
        stack.callback(service.stop)
        conf = remote(tmp_path, f"thrift://localhost:{port}") | {
            "spark.hadoop.hive.metastore.sasl.enabled": "true",
            "spark.hadoop.hive.metastore.kerberos.principal": SERVICE,
            "spark.hadoop.hadoop.rpc.protection": quality,
        }
        conf["spark.driver.extraJavaOptions"] += f" -Djava.security.krb5.conf={realm.configuration}"
        if by == "keytab":
            conf |= {
                "spark.kerberos.principal": f"ann@{REALM}",
                "spark.kerberos.keytab": str(realm.directory / "ann.keytab"),
            }
        else:
            with socket.create_connection(("127.0.0.1", port)) as raw:
                sock = SaslSocket(raw)
                assert sock.gssapi(realm.directory / "ann.cache", SERVICE) == (5, b"")
                token = requested(link_over(sock), f"ann@{REALM}")
            monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(credentials_file(tmp_path / "tokens", token)))
        spark = SparkProcess(tmp_path, (class_path(tmp_path, quality),))
        stack.callback(spark.close)
        spark.session(conf)
        spark.sql("create database d")
        spark.sql("create table d.t (a int) partitioned by (p string) stored as parquet")
        spark.sql("insert into d.t values (1, 'x'), (2, 'y')")
        assert spark.sql("select a from d.t where p = 'y'") == [["2"]]
        assert service.metrics.server.authentications.values()[("ok",)] > 0
