"""Servers without sockets: the parts of servers on one database, each with its own database handle."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thrift.Thrift import TException

from hms_cache.cache.dump.capture import capture
from hms_cache.cache.dump.restore import Restore
from hms_cache.cache.dump.writing import Identity, write_dump
from hms_cache.cache.reads.assembly import Cache, CacheOptions, build_cache
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.verification import invariants
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.clock import Clock, SystemClock
from hms_cache.config import Settings
from hms_cache.config.sections import WarehouseSettings
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.notifications.messages import MessageFormat
from hms_cache.notifications.poller import Poller
from hms_cache.store.auxiliary.auxiliary_store import AuxiliaryStores
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import Database
from hms_cache.store.events.notification_log import NotificationLog
from hms_cache.store.object_store import ObjectStore
from hms_cache.store.transactions.committed_writes import read_committed_writes
from hms_cache.store.txn_store import TxnStore
from hms_cache.store.warehouse import Warehouse
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import encode_struct
from tests.store.contract.both import Both
from tests.txn.client import TxnClient

CATALOG = "hive"
IDENTITY = Identity("this build", "these settings")


@dataclass
class Server:
    """The stores of one server. `reads` records how each read was answered."""

    url: str
    directory: Path
    options: CacheOptions = field(default_factory=CacheOptions)
    clock: Clock = field(default_factory=SystemClock)
    settings: Settings = field(default_factory=Settings)
    message_format: MessageFormat = MessageFormat.JSON
    reads: list[tuple[str, Reason]] = field(default_factory=list)
    dump: Path | None = None
    """What it begins with. Large sets of partitions come by `restore.step()`."""
    files: str = "leave"
    """What it does with directories: `warehouse.files`."""

    def __post_init__(self) -> None:
        self.database = Database(self.url, clock=self.clock)
        context = StoreContext(
            self.database,
            MessageBuilder(self.message_format),
            Warehouse(WarehouseSettings(directory=str(self.directory), files="leave")),
            self.settings,
            self.clock,
        )
        self.objects = ObjectStore(context)
        self.transactions = TxnClient(TxnStore(self.database, MessageBuilder(self.message_format)), self.database)
        self.auxiliary = AuxiliaryStores(context)
        self.log = NotificationLog(self.database)
        self.cache: Cache = build_cache(
            self.objects.reads,
            self.clock,
            self.options,
            self._follow,
            resolve_commits=lambda txn_ids: read_committed_writes(self.database, txn_ids),
            observe=lambda kind, reason: self.reads.append((kind, reason)),
        )
        self.database.commit_listeners.append(self.cache.own_writes)
        self.restore = Restore(self.cache.shared, self.dump, IDENTITY) if self.dump is not None else None
        self.poller.start(self.restore.begin() if self.restore is not None else None)
        self.poller.step()

    def _follow(self, sink: Any) -> Poller:
        self.poller = Poller(self.log, sink, self.clock, self.settings.events, header_filter=sink.reason_to_skip)
        return self.poller

    @property
    def store(self) -> MetadataStore:
        """What clients of this server get."""
        return Both(self.cache.reads, self.objects.writes)

    def write_dump(self, path: Path) -> bool:
        """Writes a cache dump. Returns whether there was something to write."""
        captured = capture(self.cache.shared, self.poller.position, threading.Event())
        if captured is None:
            return False
        write_dump(path, captured, IDENTITY, lambda written: None)
        return True

    def close(self) -> None:
        """Checks the cache's invariants, then closes it."""
        try:
            if self.restore is not None:
                self.restore.close()
            invariants.check(self.cache.shared)
        finally:
            self.database.close()

    def during_loads(self, action: Callable[[], object]) -> None:
        """From now on, calls this in each load, after its snapshot was closed and before anything is installed."""
        loader, go_on = self.cache.loader, self.cache.loader.apply_up_to

        def act_first(fence: int) -> bool:
            action()
            return go_on(fence)

        loader.apply_up_to = act_first  # type: ignore[method-assign]

    def loaded(self) -> list[LoadRequest]:
        """Returns a growing list of what is requested from the loader from now on."""
        requested: list[LoadRequest] = []
        loader, go_on = self.cache.loader, self.cache.loader.load

        def load(wanted: Iterable[LoadRequest], **how: bool) -> bool:
            wanted = tuple(wanted)
            requested.extend(wanted)
            return go_on(wanted, **how)

        loader.load = load  # type: ignore[method-assign]
        return requested

    def reasons(self) -> list[Reason]:
        """Returns how the reads since the last call were answered."""
        taken = [reason for _, reason in self.reads]
        self.reads.clear()
        return taken


def descriptor(location: str | None = None, columns: tuple[str, ...] = ("a", "b")) -> ttypes.StorageDescriptor:
    """An ordinary storage descriptor."""
    return ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema(name, "string", None) for name in columns],
        location=location,
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=ttypes.SerDeInfo(
            None, "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", {"serialization.format": "1"}
        ),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def table(database: str, name: str, keys: tuple[tuple[str, str], ...] = (), **parameters: str) -> ttypes.Table:
    """An ordinary managed table."""
    return ttypes.Table(
        tableName=name,
        dbName=database,
        catName=CATALOG,
        owner="tester",
        createTime=1_700_000_000,
        sd=descriptor(),
        partitionKeys=[ttypes.FieldSchema(key, type_, None) for key, type_ in keys],
        parameters=dict(parameters),
        tableType="MANAGED_TABLE",
    )


def partition(of: ttypes.Table, values: tuple[str, ...], **parameters: str) -> ttypes.Partition:
    """A partition with the table's storage descriptor."""
    sd = copy.deepcopy(of.sd)
    sd.location = None
    return ttypes.Partition(
        values=list(values),
        dbName=of.dbName,
        tableName=of.tableName,
        catName=CATALOG,
        createTime=1_700_000_000,
        sd=sd,
        parameters=dict(parameters),
    )


def create_database(store: MetadataStore, name: str, **parameters: str) -> None:
    """An ordinary database."""
    store.writes.databases.create_database(
        ttypes.Database(name=name, catalogName=CATALOG, description="d", parameters=dict(parameters), ownerName="o")
    )


def changed_table(store: MetadataStore, database: str, name: str, **parameters: str) -> ttypes.Table:
    """The table with these parameters."""
    changed = copy.deepcopy(store.reads.tables.get_table(TableName(CATALOG, database, name)))
    changed.parameters = {**(changed.parameters or {}), **parameters}
    return changed


def encoded(ask: Callable[[], Any]) -> Any:
    """Returns an answer as bytes, or the exception's type and text; two stores must agree on it. Any exception that no
    client would get is a defect, either of the test or of both stores."""
    try:
        answer = ask()
    except TException as error:
        return type(error).__name__, getattr(error, "message", str(error))
    return encoded_value(answer)


def encoded_value(answer: Any) -> Any:
    """An answer that is at hand, as bytes."""
    if hasattr(answer, "thrift_spec"):
        return encode_struct(answer)
    if isinstance(answer, list | tuple):
        return [encoded_value(one) for one in answer]
    if hasattr(answer, "partitions"):
        return [encoded_value(answer.partitions), answer.has_unknown]
    return answer
