"""The metastores for recording and replay: Hive 4.0.1's on MariaDB, and this project's."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.java_metastore import JavaMetastore
from hms_cache.app.service import Service
from hms_cache.config import load
from tests.databases import DatabaseServer, SqliteFiles
from tests.differential.metastores import JAVA_LIBRARIES, own_database
from tests.differential.test_one_database import compiled_listener
from tests.protocol.releases import jar
from tests.recordings.recording import PLACE

ADMINISTRATORS = "root,admin"
"""Accounts of the recorded clients: Hive's and Spark's is that of their process, Trino's the one it is told."""


@dataclass(frozen=True)
class Metastore:
    """A running one. Its warehouse is in `wh` and `ext` below the root, whose name has the length of `PLACE`."""

    uri: str
    root: Path
    database_url: str
    is_java: bool = False


@contextmanager
def directory_of_fixed_length() -> Iterator[Path]:
    """A new directory whose name is as long as `PLACE`."""
    base = tempfile.mkdtemp(prefix="h")
    path = Path(base.ljust(len(PLACE), "x"))
    assert len(str(path)) == len(PLACE), f"{base} is too long"
    Path(base).rename(path)
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextmanager
def hives_metastore(databases: SqliteFiles | DatabaseServer, directory: Path) -> Iterator[Metastore]:
    """Hive 4.0.1's, with a database and a root of its own; it logs events, cleans up nothing and compacts nothing."""
    with ExitStack() as stack:
        root = stack.enter_context(directory_of_fixed_length())
        url = own_database(databases, stack)
        process = JavaMetastore(
            url,
            directory,
            cached=False,
            pool_size=30,
            heap="1g",
            properties={
                "metastore.metadata.transformer.class": " ",
                "metastore.expression.proxy": "org.apache.hadoop.hive.ql.optimizer.ppr.PartitionExpressionForMetastore",
                "metastore.users.in.admin.role": ADMINISTRATORS,
                "metastore.warehouse.dir": f"file:{root}/wh",
                "metastore.warehouse.external.dir": f"file:{root}/ext",
                "metastore.transactional.event.listeners": "LogListener",
                # Off by default there, on by default in ours: the cleaner's limit by write ids is compared, too.
                "metastore.txn.use.minhistorywriteid": "true",
            },
            classes=[jar("org.apache.hadoop:hadoop-hdfs:3.3.6"), compiled_listener(_folder(directory / "classes"))],
            libraries=[jar(library) for library in JAVA_LIBRARIES],
        )
        stack.callback(process.stop)
        yield Metastore(f"thrift://{process.start()}", root, url, is_java=True)


@contextmanager
def our_metastore(database_url: str, *, is_cached: bool = True) -> Iterator[Metastore]:
    """Ours in this process, with a root of its own."""
    with directory_of_fixed_length() as root:
        given = {
            "server.port": 0,
            "admin.enabled": False,
            "cache.enabled": is_cached,
            "database.url": database_url,
            "warehouse.directory": f"file:{root}/wh",
            "warehouse.external_directory": f"file:{root}/ext",
            "warehouse.allowed_locations": str(root),
            "catalog.users_in_admin_role": ADMINISTRATORS,
            "transactions.housekeeping_interval_s": "inf",
        }
        service = Service(load(command_line=given, environment=dict(os.environ)))
        uri = service.start()
        try:
            yield Metastore(uri, root, database_url)
        finally:
            service.stop()


def _folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path
