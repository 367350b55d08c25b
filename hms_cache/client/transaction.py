"""A transaction as a client runs it: one snapshot at its begin, passed with every read (P2, P4).

What the metastore cannot know by itself, the client tells it: which write ids it may see of each table, its own
uncommitted ones among them, and which table it means by a name. Source of the scheme: Hive's "Synchronized Metastore
Cache"; of the calls and their order: Hive 4.0.1's `DbTxnManager`.
"""

from __future__ import annotations

import copy
import logging
import socket
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar

from thrift.Thrift import TException

from hms_cache.client.metastore_client import MetastoreClient
from hms_cache.clock import Clock, SystemClock
from hms_cache.errors import HmsCacheError
from hms_cache.system_user import system_user
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AbortTxnRequest,
    AllocateTableWriteIdsRequest,
    AlterTableRequest,
    CheckLockRequest,
    ClientCapabilities,
    ClientCapability,
    CommitTxnRequest,
    EnvironmentContext,
    GetPartitionsByNamesRequest,
    GetTableRequest,
    GetValidWriteIdsRequest,
    HeartbeatRequest,
    LockComponent,
    LockRequest,
    LockResponse,
    OpenTxnRequest,
    Partition,
    Table,
    TxnType,
)
from hms_cache.txn import ValidTxnList, ValidWriteIdList
from hms_cache.values import frozen

_log = logging.getLogger(__name__)

R = TypeVar("R")


CAPABILITIES = ClientCapabilities(values=[ClientCapability.INSERT_ONLY_TABLES])
"""Without it a metastore refuses insert-only tables; it fears for their files, which this client never reads."""


@frozen
class TableVersion:
    """What a transaction knows of a table it named at its begin; it changes only by the transaction's own writes."""

    write_ids: ValidWriteIdList
    table_id: int | None
    """None: there was no such table, or the metastore does not tell ids with write ids (Hive's own does not)."""
    own_write_id: int | None = None


class Transaction:
    """`with Transaction(client, ["db.table"]) as txn:` commits at the end, and aborts if the block raises.

    The snapshot is taken once, at the begin, for all tables together; every read carries it. A write takes a write id
    of the table, once, and from then on the transaction's reads count that id as valid: no memory holds it, so the
    database answers, and with what was written.

    Nothing runs in the background: whoever works longer than the metastore's `metastore.txn.timeout` without a call
    gives `heartbeat_interval_s` (a call that comes so much later than the last sign of life sends one first), or calls
    `heartbeat`. For one thread at a time.
    """

    def __init__(
        self,
        client: MetastoreClient,
        tables: Iterable[str],
        *,
        user: str | None = None,
        txn_type: int = TxnType.DEFAULT,
        heartbeat_interval_s: float | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`tables`: all that will be read or written, as `database.table`. Nothing is sent yet."""
        self.client = client
        self.txn_id = 0
        """0 before the begin."""
        self.valid_txns: ValidTxnList | None = None
        self._tables = list(dict.fromkeys(_full_name(table) for table in tables))
        self._versions: dict[str, TableVersion] = {}
        self._user = user or system_user()
        self._txn_type = txn_type
        self._heartbeat_interval_s = heartbeat_interval_s
        self._clock = clock or SystemClock()
        self._last_sign_s = 0.0
        self._is_open = False

    # Its life

    def __enter__(self) -> Transaction:
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_open:
            return
        if error is None:
            self.commit()
            return
        try:
            self.abort()
        except (TException, HmsCacheError):
            # The block's error is what matters; the metastore gives up by itself a transaction without heartbeats.
            _log.warning("transaction %d could not be aborted", self.txn_id, exc_info=True)

    def begin(self) -> None:
        """Opens it and takes the snapshot: write ids and table ids of all its tables, at one moment.

        Raises MetaException, MetastoreUnavailableError, OutcomeUnknownError.
        """
        opened = self.client.call(
            "open_txns",
            OpenTxnRequest(
                num_txns=1,
                user=self._user,
                hostname=socket.gethostname(),
                agentInfo="hms-cache client",
                txn_type=self._txn_type,
            ),
        )
        self.txn_id = opened.txn_ids[0]
        self._is_open = True
        self._last_sign_s = self._clock.monotonic_s()
        try:
            self._take_snapshot()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    def _take_snapshot(self) -> None:
        self.valid_txns = ValidTxnList.from_open_txns(self.client.call("get_open_txns"), self.txn_id)
        if not self._tables:
            return
        answer = self.client.call(
            "get_valid_write_ids",
            GetValidWriteIdsRequest(fullTableNames=self._tables, validTxnList=self.valid_txns.to_text()),
        )
        for name, element in zip(self._tables, answer.tblValidWriteIds, strict=True):
            self._versions[name] = TableVersion(ValidWriteIdList.from_thrift(element), element.tableId)

    def commit(self) -> None:
        """Raises TxnAbortedException: it lost to a conflicting commit or was given up. Then it is over too."""
        self._is_open = False
        # Its snapshot stays that of the begin, also after a wait for a lock: what others committed meanwhile has to be
        # looked for. With the flag, the default, the metastore would take the lock for proof that there is nothing.
        self.client.call("commit_txn", CommitTxnRequest(txnid=self.txn_id, exclWriteEnabled=False))

    def abort(self) -> None:
        """Raises NoSuchTxnException when it is over already."""
        self._is_open = False
        self.client.call("abort_txn", AbortTxnRequest(txnid=self.txn_id))

    def heartbeat(self) -> None:
        """A sign of life. Raises TxnAbortedException, NoSuchTxnException when the metastore gave it up."""
        self.client.call("heartbeat", HeartbeatRequest(txnid=self.txn_id))
        self._last_sign_s = self._clock.monotonic_s()

    def _keep_alive(self) -> None:
        interval_s = self._heartbeat_interval_s
        if interval_s is not None and self._clock.monotonic_s() - self._last_sign_s >= interval_s:
            self.heartbeat()

    # Locks

    def lock(self, components: Sequence[LockComponent]) -> LockResponse:
        """Asks for locks in its name; `state` tells whether it has them or waits (then: `check_lock`).

        Conflicts between writers are found from what they locked: a write without a lock conflicts with nobody.
        """
        self._keep_alive()
        request = LockRequest(
            component=list(components), txnid=self.txn_id, user=self._user, hostname=socket.gethostname()
        )
        answer: LockResponse = self.client.call("lock", request)
        return answer

    def check_lock(self, lock_id: int) -> LockResponse:
        """Asks again for locks that wait."""
        answer: LockResponse = self.client.call("check_lock", CheckLockRequest(lockid=lock_id, txnid=self.txn_id))
        return answer

    # Versions

    def version(self, table: str) -> TableVersion:
        """What its reads of this table carry. Raises KeyError for a table not named at the begin."""
        return self._versions[_full_name(table)]

    def write_id(self, table: str) -> int:
        """Its write id of the table, allocated at the first call; its reads count it as valid from now on."""
        name = _full_name(table)
        version = self._versions[name]
        if version.own_write_id is not None:
            return version.own_write_id
        self._keep_alive()
        database, _, short_name = name.partition(".")
        answer = self.client.call(
            "allocate_table_write_ids",
            AllocateTableWriteIdsRequest(dbName=database, tableName=short_name, txnIds=[self.txn_id]),
        )
        own = int(answer.txnToWriteIds[0].writeId)
        self._versions[name] = replace(version, write_ids=version.write_ids.with_own(own), own_write_id=own)
        return own

    def reading(self, table: str, request: R) -> R:
        """The request with the version of the table it reads: `validWriteIdList`, and `id` or `tableId` where it has
        one."""
        version = self.version(table)
        _require_field(request, "validWriteIdList")
        request.validWriteIdList = version.write_ids.to_text()  # type: ignore[attr-defined]
        if version.table_id is not None:
            for field in ("id", "tableId"):
                if hasattr(request, field):
                    setattr(request, field, version.table_id)
        return request

    def writing(self, table: str, request: R) -> R:
        """The request as a write of this transaction: its `writeId`, and the list in which that is valid.

        Some requests have the id in the object that is written, where the metastore reads it: `alter_table_req` in the
        table, `rename_partition_req` in the new partition. That object is copied, not changed.
        """
        own = self.write_id(table)
        _require_field(request, "validWriteIdList")
        if hasattr(request, "writeId"):
            request.writeId = own
        for field in ("table", "newPart"):
            written = getattr(request, field, None)
            if written is not None and hasattr(written, "writeId"):
                written = copy.copy(written)
                written.writeId = own
                setattr(request, field, written)
        request.validWriteIdList = self.version(table).write_ids.to_text()  # type: ignore[attr-defined]
        return request

    # Reads and writes. `through`: another connection, perhaps to another metastore of the set; its own if None.

    def read(self, method: str, table: str, request: Any, *, through: MetastoreClient | None = None) -> Any:
        """A read of one table by any `*_req` method that takes a list. Raises as the method does."""
        self._keep_alive()
        return (through or self.client).call(method, self.reading(table, request))

    def write(self, method: str, table: str, request: Any, *, through: MetastoreClient | None = None) -> Any:
        """A write to one table by any `*_req` method that takes a list. Raises as the method does."""
        self._keep_alive()
        return (through or self.client).call(method, self.writing(table, request))

    def get_table(self, table: str, *, through: MetastoreClient | None = None) -> Table:
        """Raises NoSuchObjectException."""
        database, name = _full_name(table).split(".")
        request = GetTableRequest(dbName=database, tblName=name, capabilities=CAPABILITIES)
        answer: Table = self.read("get_table_req", table, request, through=through).table
        return answer

    def get_partitions_by_names(
        self, table: str, names: Sequence[str], *, through: MetastoreClient | None = None
    ) -> list[Partition]:
        """Those of the named partitions that exist."""
        database, name = _full_name(table).split(".")
        request = GetPartitionsByNamesRequest(db_name=database, tbl_name=name, names=list(names))
        answer: list[Partition] = self.read("get_partitions_by_names_req", table, request, through=through).partitions
        return answer

    def alter_table(
        self,
        table: str,
        changed: Table,
        *,
        environment: EnvironmentContext | None = None,
        through: MetastoreClient | None = None,
    ) -> None:
        """Raises InvalidOperationException, MetaException."""
        database, name = _full_name(table).split(".")
        request = AlterTableRequest(
            catName="hive", dbName=database, tableName=name, table=changed, environmentContext=environment
        )
        self.write("alter_table_req", table, request, through=through)


def _full_name(table: str) -> str:
    database, separator, name = table.strip().lower().partition(".")
    if not separator or not database or not name or "." in name:
        raise ValueError(f"a table is named as database.table: {table!r}")
    return f"{database}.{name}"


def _require_field(request: object, field: str) -> None:
    if not hasattr(request, field):
        raise TypeError(f"{type(request).__name__} has no field {field}: this call cannot carry a version")
