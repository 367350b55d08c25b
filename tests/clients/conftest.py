"""Fixtures of the tests with real clients: server processes, and one Spark for all."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clients.spark.session import SparkProcess
from tests.conftest import ServerLookup
from tests.protocol.releases import jar
from tests.servers import ServerProcess, server_process

ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"

#: Makes servers: kind of database or the URL of one, directory under the test's, settings.
ServerStarter = Callable[..., ServerProcess]


@pytest.fixture
def start_server(tmp_path: Path, database_servers: ServerLookup) -> Iterator[ServerStarter]:
    """``start_server("mariadb", "a", **{"cache.enabled": "false"})``: a server process, stopped after the test.

    Servers that share a database are given the URL of the first one; their warehouse is shared too.
    """
    with ExitStack() as stack:

        def start(database: str, name: str = "server", **settings: object) -> ServerProcess:
            url = database
            if "://" not in database:
                databases = database_servers(database)
                url = databases.initialized_database()
                stack.callback(databases.give_back, url)
            settings.setdefault("warehouse.directory", tmp_path / "warehouse")
            return stack.enter_context(server_process(tmp_path / name, url, settings))

        yield start


@pytest.fixture(scope="session")
def iceberg_jar() -> Path:
    """Iceberg's runtime for Spark."""
    return jar(ICEBERG)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkProcess]:
    """Spark in a process of its own; a test begins with `SparkProcess.session`."""
    jars: tuple[Path, ...] = ()
    if shutil.which("mvn"):
        jars = (jar(ICEBERG),)
    process = SparkProcess(tmp_path_factory.mktemp("spark"), jars)
    yield process
    process.close()
