"""Hive 4.0.1's own client over HTTP: with an unverified name, and with a bearer token over TLS."""

from __future__ import annotations

import getpass
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from hms_cache.app.service import Service
from hms_cache.config import load
from tests.clients.spark.test_secure_port import TRUST_PASSWORD, trust_store
from tests.protocol.releases import class_path, java_program
from tests.python_client.test_java_client import LIBRARIES
from tests.server.test_bearer_tokens import Issuer
from tests.server.test_tls import Authority

pytestmark = [pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(600)]


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with closing(Issuer()) as running:
        yield running


def program(
    port: int, scheme_host: str, environment: dict[str, str], **properties: str
) -> subprocess.CompletedProcess[str]:
    classes = class_path(*LIBRARIES)
    source = Path(__file__).parent / "java" / "CallsOverHttp.java"
    told = {
        "metastore.thrift.uris": f"{scheme_host}:{port}",
        "metastore.client.thrift.transport.mode": "http",
        "metastore.thrift.connection.retries": "1",
        "metastore.failure.retries": "0",
    } | properties
    return subprocess.run(
        [java_program(), "-cp", classes, str(source), *(f"{name}={value}" for name, value in told.items())],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | environment,
    )


def started(stack: ExitStack, directory: Path, **settings: Any) -> int:
    given = {
        "server.port": 0,
        "server.transport_mode": "http",
        "admin.enabled": False,
        "database.url": f"sqlite:///{directory / 'metastore.db'}",
        "warehouse.directory": f"file:{directory / 'warehouse'}",
        **settings,
    }
    service = Service(load(command_line=given, environment={}))
    port = int(service.start().rpartition(":")[2])
    stack.callback(service.stop)
    return port


def lines_of(owner: str) -> list[str]:
    return [f"over_http of {owner} 105000"] * 3 + ["default,over_http", "missing", "closed"]


def test_a_name_that_is_only_said(tmp_path: Path) -> None:
    with ExitStack() as stack:
        port = started(stack, tmp_path)
        done = program(port, "thrift://localhost", {"HADOOP_USER_NAME": "ann"})
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.splitlines() in (lines_of("ann"), lines_of(getpass.getuser()))


def test_a_bearer_token_within_tls(tmp_path: Path, issuer: Issuer) -> None:
    authority = Authority(tmp_path)
    with ExitStack() as stack:
        settings = {"authentication.jwt_jwks_url": issuer.url, "authentication.jwt_issuer": "issuer"}
        port = started(stack, tmp_path, **settings, **authority.settings())
        keys = {
            "metastore.client.auth.mode": "JWT",
            "metastore.use.SSL": "true",
            "metastore.truststore.path": str(trust_store(authority)),
            "metastore.truststore.password": TRUST_PASSWORD,
            "metastore.trustmanagerfactory.algorithm": "PKIX",
        }
        done = program(port, "thrift://localhost", {"HMS_JWT": issuer.token()}, **keys)
        assert done.returncode == 0, done.stderr[-3000:]
        assert [line.rpartition(" of ")[0] or line for line in done.stdout.splitlines()] == [
            *["over_http"] * 3,
            *("default,over_http", "missing", "closed"),
        ]
        refused = program(port, "thrift://localhost", {"HMS_JWT": issuer.token(iss="other")}, **keys)
        assert refused.returncode != 0 and "401" in refused.stderr, refused.stderr[-3000:]
