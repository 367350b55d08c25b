"""Trino, or Presto, with one of this project's servers or with Hive's metastore."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.java_metastore import JavaMetastore
from tests.clients.hive import engine as hive_engine
from tests.clients.trino.coordinator import Coordinator, Session
from tests.conftest import ServerLookup
from tests.databases import DatabaseServer, SqliteFiles
from tests.differential.metastores import own_database
from tests.servers import ServerProcess, server_process

JAVA = "hive"
"""Hive 4.0.1's metastore: what is expected of ours must hold there, too."""

#: Of every module with Trino: the first test waits for its start, and on a new machine for 800 MB from Maven Central.
MARKS = [pytest.mark.soak, pytest.mark.long, pytest.mark.java, pytest.mark.timeout(2400)]


@dataclass(frozen=True)
class Engine:
    """A running Trino and the metastore it uses, unless that is Hive's."""

    metastore: ServerProcess | None
    coordinator: Coordinator

    def session(self, user: str = "admin") -> Session:
        return self.coordinator.session(user)

    @staticmethod
    def refused_calls(metastore: ServerProcess) -> list[str]:
        """Returns calls that the server answered with an internal error, or did not recognize."""
        found = re.search(r"management port on (\S+)", metastore.log)
        assert found, metastore.log[:2000]
        with urllib.request.urlopen(f"http://{found.group(1)}/metrics", timeout=60) as response:
            lines = response.read().decode().splitlines()
        calls = [line for line in lines if line.startswith("hms_cache_calls_total{")]
        assert len(calls) > 3
        return [line for line in calls if re.search(r'outcome="(error|unknown_method)"', line)]


EngineLookup = Callable[[str], Engine]


@contextmanager
def engine_lookup(
    of: type[Coordinator], database_servers: ServerLookup, directory: Callable[[], Path]
) -> Iterator[EngineLookup]:
    """Finds the engine over a server on a kind of database, which is started at its first use in a new directory."""
    started: dict[str, Engine] = {}
    with ExitStack() as stack:

        def engine_on(kind: str) -> Engine:
            if kind not in started:
                started[kind] = stack.enter_context(_engine(of, kind, database_servers, directory()))
            return started[kind]

        yield engine_on


@contextmanager
def _engine(of: type[Coordinator], kind: str, database_servers: ServerLookup, directory: Path) -> Iterator[Engine]:
    """On `JAVA`: over Hive's own metastore, on MariaDB."""
    with ExitStack() as stack:
        metastore = None
        if kind == JAVA:
            uri = stack.enter_context(_hives_metastore(database_servers("mariadb"), directory))
        else:
            metastore = stack.enter_context(_our_metastore(database_servers(kind), directory))
            uri = metastore.uri
        coordinator = of(directory / "engine", uri)
        stack.callback(coordinator.stop)
        coordinator.start()
        yield Engine(metastore, coordinator)


@contextmanager
def _our_metastore(databases: SqliteFiles | DatabaseServer, directory: Path) -> Iterator[ServerProcess]:
    url = databases.initialized_database()
    settings: dict[str, object] = {
        "warehouse.directory": f"file:{directory}/warehouse",
        "catalog.users_in_admin_role": "admin",
    }
    with server_process(directory / "metastore", url, settings) as metastore:
        yield metastore
    databases.give_back(url)


@contextmanager
def _hives_metastore(databases: SqliteFiles | DatabaseServer, directory: Path) -> Iterator[str]:
    properties = {
        "metastore.metadata.transformer.class": " ",
        "metastore.users.in.admin.role": "admin",
        "metastore.warehouse.dir": f"file:{directory}/warehouse",
        "metastore.warehouse.external.dir": f"file:{directory}/warehouse",
    }
    with ExitStack() as stack:
        metastore = JavaMetastore(
            own_database(databases, stack),
            directory / "metastore",
            cached=False,
            properties=properties,
            # It checks the ORC classes before it lets a table be transactional.
            classes=(hive_engine.fetch() / f"hive-exec-{hive_engine.VERSION}.jar",),
        )
        stack.callback(metastore.stop)
        yield f"thrift://{metastore.start()}"


@contextmanager
def checked(engines: EngineLookup, kind: str) -> Iterator[Engine]:
    """The engine for one test, none of whose calls may meet an internal error of the server."""
    found = engines(kind)
    yield found
    if found.metastore is not None:
        assert found.refused_calls(found.metastore) == []
        assert " ERROR " not in found.metastore.log


OWN_METASTORES = [pytest.param("mariadb", id="mariadb", marks=pytest.mark.mariadb), pytest.param("sqlite", id="sqlite")]
METASTORES = [*OWN_METASTORES, pytest.param(JAVA, id=JAVA, marks=pytest.mark.mariadb)]
