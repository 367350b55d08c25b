"""Hive 4.0.1's standalone metastore and this project's, side by side."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import NullPool, create_engine, make_url, text

from benchmarks.java_metastore import JavaMetastore, fetch, load_schema
from hms_cache.app.service import Service
from hms_cache.client import MetastoreClient
from hms_cache.config import load
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    DropCatalogRequest,
    DropDataConnectorRequest,
    MetaException,
    NoSuchObjectException,
)
from tests.databases import DatabaseServer, SqliteFiles
from tests.differential.leftovers import forget
from tests.protocol.releases import jar

JAVA_PROPERTIES = {
    # Ours stores what it gets, too, unless configured otherwise.
    "metastore.metadata.transformer.class": " ",
    # Otherwise it repeats for 20 s what its database refuses; the answer is the same.
    "metastore.hmshandler.retry.attempts": "1",
    "metastore.hmshandler.retry.interval": "1ms",
    # As in a server that Hive itself uses; without its jars, each expression is refused.
    "metastore.expression.proxy": "org.apache.hadoop.hive.ql.optimizer.ppr.PartitionExpressionForMetastore",
}
JAVA_LIBRARIES = ("org.apache.hive:hive-exec:4.0.1", "org.apache.commons:commons-math3:3.6.1")
"""Hive's expressions and functions, and the file formats that transactional tables are checked for."""


class Side:
    """One of the two, and a client of it."""

    def __init__(self, uri: str, directory: Path, database_url: str) -> None:
        """`directory`: holds the warehouse, in `managed` and `external`."""
        self.uri = uri
        self.database_url = database_url
        self._directory = directory
        self.kept: dict[str, Any] = {}
        self.engine = create_engine(database_url, poolclass=NullPool)
        self.warehouse_uri = f"file:{directory}"
        self._client = MetastoreClient(uri, call_timeout_s=30)
        self._client.call("set_ugi", "client", ["group"])

    def call(self, method: str, *arguments: Any) -> Any:
        """One call through the generated classes."""
        return self._client.call(method, *arguments)

    def begin_anew(self) -> None:
        """Opens a new connection. Java keeps a transaction open after some failures, until the connection ends."""
        self._client.close()
        self._client.call("set_ugi", "client", ["group"])

    def empty(self) -> None:
        """Drops everything that scenarios create: databases, catalogs, functions, roles, the rest, and all files."""
        forget(self.engine)
        self._empty_catalogs()
        with suppress(MetaException):  # schemas of Hive 3.1 have none
            for connector in self.call("get_dataconnectors"):
                self.call("drop_dataconnector_req", DropDataConnectorRequest(connector, False, False))
        for role in self.call("get_role_names"):
            if role not in ("admin", "public"):
                self.call("drop_role", role)
        for file in (path for warehouse in ("managed", "external") for path in (self._directory / warehouse).glob("*")):
            shutil.rmtree(file)

    def _empty_catalogs(self) -> None:
        for catalog in self.call("get_catalogs").names:
            for database in self.call("get_databases", f"@{catalog}#*"):
                name = f"@{catalog}#{database}"
                for function in self.call("get_functions", name, "*"):
                    self.call("drop_function", name, function)
                if database == "default":
                    for table in self.call("get_all_tables", name):
                        self.call("drop_table", name, table, True)
                else:
                    with suppress(NoSuchObjectException):
                        self.call("drop_database", name, True, True)
            if catalog != "hive":
                with suppress(MetaException, NoSuchObjectException):
                    self.call("drop_database", f"@{catalog}#default", True, True)
                self.call("drop_catalog", DropCatalogRequest(name=catalog))

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()


def start_ours(database_url: str, directory: Path, **settings: Any) -> Service:
    """Returns this project's metastore in this process, with the same warehouse directories as Hive's; not started
    yet."""
    given = {
        "server.port": 0,
        "admin.enabled": False,
        "database.url": database_url,
        "warehouse.directory": str(directory / "managed"),
        "warehouse.external_directory": str(directory / "external"),
        "security.delegation_tokens": True,
        # Java takes any location: scenarios put databases and tables beside the two warehouses.
        "warehouse.allowed_locations": str(directory),
        **settings,
    }
    return Service(load(command_line=given, environment={}))


@dataclass(frozen=True)
class Sides:
    """The two metastores to compare."""

    java: Side
    ours: Side


def own_database(databases: SqliteFiles | DatabaseServer, stack: ExitStack) -> str:
    """Returns the URL of a new MariaDB database created by Hive's script; its account has a password, which Java
    needs."""
    url = databases.create_database()
    stack.callback(databases.drop_database, url)
    load_schema(fetch(), url)
    engine = create_engine(url)
    with engine.connect() as connection:
        connection.execute(text("CREATE USER IF NOT EXISTS hms_test@'%' IDENTIFIED BY 'hms_test'"))
        connection.execute(text(f"GRANT ALL ON `{make_url(url).database}`.* TO hms_test@'%'"))
    engine.dispose()
    account = make_url(url).set(username="hms_test", password="hms_test")
    return account.render_as_string(hide_password=False)


@contextmanager
def java_metastore(
    database_url: str, directory: Path, *, cached: bool = False, classes: Sequence[Path] = (), **properties: str
) -> Iterator[Side]:
    """Runs Hive 4.0.1 on this database during the block. `cached`: with its CachedStore."""
    process = JavaMetastore(
        database_url,
        directory,
        cached=cached,
        pool_size=10,
        heap="1g",
        properties={**JAVA_PROPERTIES, **properties},
        # The handler names a class of this jar in a catch clause; without it DROP TABLE ends the connection.
        classes=[jar("org.apache.hadoop:hadoop-hdfs:3.3.6"), *classes],
        libraries=[jar(library) for library in JAVA_LIBRARIES],
    )
    try:
        address = process.start()
        side = Side(f"thrift://{address}", directory, database_url)
        try:
            yield side
        finally:
            side.close()
    finally:
        process.stop()


@contextmanager
def our_metastore(database_url: str, directory: Path, **settings: Any) -> Iterator[Side]:
    """Ours on this database, until the end of the block."""
    service = start_ours(database_url, directory, **settings)
    side = Side(service.start(), directory, database_url)
    try:
        yield side
    finally:
        side.close()
        service.stop()
