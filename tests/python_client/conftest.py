"""Two metastores on one database that follow its events only on request, so that a test controls what each has seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from hms_cache.app.service import Service
from hms_cache.client import MetastoreClient
from hms_cache.config import load
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    ClientCapabilities,
    ClientCapability,
    Database,
    EnvironmentContext,
    FieldSchema,
    GetTableRequest,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.conftest import ServerLookup


class Metastore:
    """A metastore in this process, and a client of it."""

    def __init__(self, service: Service, uri: str, client: MetastoreClient) -> None:
        self.service = service
        self.uri = uri
        self.client = client

    def sees(self) -> None:
        """Applies all events in the log."""
        caching = self.service._caching
        assert caching is not None
        last = self.client.call("get_current_notificationEventId").eventId
        assert caching.poller.ensure_applied(last, 30.0)

    @contextmanager
    def answers(self) -> Iterator[list[str]]:
        """Records how reads are answered meanwhile: the names of the outcomes (`hit`, `stale_write_ids`, …)."""
        before = self.service.reads_by_outcome()
        outcomes: list[str] = []
        yield outcomes
        after = self.service.reads_by_outcome()
        for outcome in sorted(after):
            outcomes.extend([outcome] * (after[outcome] - before.get(outcome, 0)))

    def plain_table(self, name: str) -> Table:
        """As a client without transactions reads it."""
        request = GetTableRequest(dbName="d", tblName=name, capabilities=INSERT_ONLY)
        return self.client.call("get_table_req", request).table


INSERT_ONLY = ClientCapabilities(values=[ClientCapability.INSERT_ONLY_TABLES])

StartMetastore = Callable[..., Metastore]


@pytest.fixture
def start_metastore(tmp_path: Path, database_servers: ServerLookup) -> Iterator[StartMetastore]:
    """`start_metastore(**{"cache.write_id_reads": "trust"})`: one more metastore of the test's database."""
    databases = database_servers("sqlite")
    with ExitStack() as stack:
        url = databases.initialized_database()
        stack.callback(databases.give_back, url)

        def start(**settings: Any) -> Metastore:
            given = {
                "server.port": 0,
                "admin.enabled": False,
                "database.url": url,
                "warehouse.directory": str(tmp_path / "warehouse"),
                "events.poll_interval_s": 3600,
                "cache.warm": "off",
                "cache.refill": "none",
                **settings,
            }
            service = Service(load(command_line=given, environment={}))
            uri = service.start()
            stack.callback(service.stop)
            return Metastore(service, uri, stack.enter_context(MetastoreClient(uri)))

        yield start


@contextmanager
def statements() -> Iterator[list[str]]:
    """Records every SQL statement that any part of this process sends meanwhile, through any engine."""
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def columns(*names: str) -> list[FieldSchema]:
    return [FieldSchema(name, "int", None) for name in names]


def table(name: str, *, keys: tuple[str, ...] = (), kind: str = "MANAGED_TABLE", **parameters: str) -> Table:
    """A table of database `d`."""
    return Table(
        tableName=name,
        dbName="d",
        catName="hive",
        owner="o",
        sd=StorageDescriptor(
            cols=columns("a"),
            inputFormat="org.apache.hadoop.mapred.TextInputFormat",
            outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
            numBuckets=-1,
            serdeInfo=SerDeInfo(None, "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", {}),
            bucketCols=[],
            sortCols=[],
            parameters={},
        ),
        partitionKeys=[FieldSchema(key, "string", None) for key in keys],
        parameters=dict(parameters),
        tableType=kind,
    )


def transactional(name: str, *, keys: tuple[str, ...] = ()) -> Table:
    """A transactional, insert-only table of database `d`: its files may have any format."""
    return table(name, keys=keys, transactional="true", transactional_properties="insert_only")


def partition(of: Table, *values: str, **parameters: str) -> Partition:
    return Partition(
        values=list(values),
        dbName=of.dbName,
        tableName=of.tableName,
        catName="hive",
        sd=StorageDescriptor(
            cols=of.sd.cols,
            inputFormat=of.sd.inputFormat,
            outputFormat=of.sd.outputFormat,
            numBuckets=-1,
            serdeInfo=of.sd.serdeInfo,
            bucketCols=[],
            sortCols=[],
            parameters={},
        ),
        parameters=dict(parameters),
    )


KEEP_STATISTICS = EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"})

DATABASE = Database(name="d", description="", parameters={})


@pytest.fixture
def database_of_two(start_metastore: StartMetastore) -> tuple[Metastore, Metastore]:
    """Two metastores that never check their position, trust write-id lists, and have a database `d`."""
    settings = {"cache.write_id_reads": "trust", "cache.max_staleness_ms": "inf"}
    first, second = start_metastore(**settings), start_metastore(**settings)
    first.client.call("create_database", DATABASE)
    second.sees()
    return first, second
