"""A client's transaction: it takes one snapshot when it begins, and passes it with every read (P2, P4).

The client sends what the metastore cannot know by itself: the write ids that the transaction may see of each table,
including its own uncommitted ones, and the id of the table that it means by a name. The scheme is that of Hive's
"Synchronized Metastore Cache"; the calls and their order are those of `DbTxnManager` of Hive 4.0.1.
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
"""Without this capability, a metastore refuses insert-only tables, to protect their files, which this client never
reads."""


@frozen
class TableVersion:
    """A transaction's view of one of its tables. Only the transaction's own writes change it."""

    write_ids: ValidWriteIdList
    table_id: int | None
    """None if the table did not exist, or if the metastore does not return ids with write ids (Hive's own does not)."""
    own_write_id: int | None = None


class Transaction:
    """`with Transaction(client, ["db.table"]) as txn:` commits at the end of the block, and aborts if it raises.

    The snapshot is taken once, at the beginning, for all tables together, and every read carries it. The first write to
    a table allocates a write id, which the transaction's later reads treat as valid. No cache entry covers this id, so
    the database answers these reads, including the transaction's own changes.

    There is no background thread. For work that takes longer than the metastore's `metastore.txn.timeout` without a
    call, set `heartbeat_interval_s` (a call that comes this long after the last heartbeat sends one first), or call
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
        """Sends nothing yet.

        :param tables: all tables that will be read or written, as `database.table`.
        """
        self.client = client
        self.txn_id = 0
        """0 before `begin`."""
        self.valid_txns: ValidTxnList | None = None
        self._tables = list(dict.fromkeys(_full_name(table) for table in tables))
        self._versions: dict[str, TableVersion] = {}
        self._user = user or system_user()
        self._txn_type = txn_type
        self._heartbeat_interval_s = heartbeat_interval_s
        self._clock = clock or SystemClock()
        self._last_heartbeat_s = 0.0
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
            # The exception of the block is the one to report; the metastore aborts a transaction without heartbeats
            # itself.
            _log.warning("transaction %d could not be aborted", self.txn_id, exc_info=True)

    def begin(self) -> None:
        """Opens the transaction and takes the snapshot: write ids and table ids of all its tables, at one moment.

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
        self._last_heartbeat_s = self._clock.monotonic_s()
        try:
            self._fetch_snapshot()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    def _fetch_snapshot(self) -> None:
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
        """Commits. Raises TxnAbortedException if another commit conflicts or the transaction timed out; it has ended
        then."""
        self._is_open = False
        # The snapshot remains that of `begin`, even after a wait for a lock, so the metastore must look for conflicting
        # commits since then. With this flag, which is the default, it would take the lock as proof that there are none.
        self.client.call("commit_txn", CommitTxnRequest(txnid=self.txn_id, exclWriteEnabled=False))

    def abort(self) -> None:
        """Aborts. Raises NoSuchTxnException if the transaction has ended already."""
        self._is_open = False
        self.client.call("abort_txn", AbortTxnRequest(txnid=self.txn_id))

    def heartbeat(self) -> None:
        """Sends a heartbeat. Raises TxnAbortedException or NoSuchTxnException if the transaction timed out."""
        self.client.call("heartbeat", HeartbeatRequest(txnid=self.txn_id))
        self._last_heartbeat_s = self._clock.monotonic_s()

    def _keep_alive(self) -> None:
        interval_s = self._heartbeat_interval_s
        if interval_s is not None and self._clock.monotonic_s() - self._last_heartbeat_s >= interval_s:
            self.heartbeat()

    # Locks

    def lock(self, components: Sequence[LockComponent]) -> LockResponse:
        """Requests locks for the transaction. `state` of the answer says whether they are acquired or waiting (then
        call `check_lock`).

        The metastore detects conflicts between writers by their locks: a write without a lock never conflicts.
        """
        self._keep_alive()
        request = LockRequest(
            component=list(components), txnid=self.txn_id, user=self._user, hostname=socket.gethostname()
        )
        answer: LockResponse = self.client.call("lock", request)
        return answer

    def check_lock(self, lock_id: int) -> LockResponse:
        """Checks whether waiting locks have been acquired."""
        answer: LockResponse = self.client.call("check_lock", CheckLockRequest(lockid=lock_id, txnid=self.txn_id))
        return answer

    # Versions

    def version(self, table: str) -> TableVersion:
        """The version that reads of this table carry. Raises KeyError for a table that was not named at the
        beginning."""
        return self._versions[_full_name(table)]

    def write_id(self, table: str) -> int:
        """The transaction's write id of the table, allocated at the first call. Later reads treat it as valid."""
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
        """Adds the table's version to a read request: `validWriteIdList`, and `id` or `tableId` if the request has such
        a field. Returns the request."""
        version = self.version(table)
        _require_field(request, "validWriteIdList")
        request.validWriteIdList = version.write_ids.to_text()  # type: ignore[attr-defined]
        if version.table_id is not None:
            for field in ("id", "tableId"):
                if hasattr(request, field):
                    setattr(request, field, version.table_id)
        return request

    def writing(self, table: str, request: R) -> R:
        """Adds this transaction's `writeId` to a write request, and the list in which it is valid. Returns the request.

        The metastore reads the write id of some requests from the object that is written: `alter_table_req` from the
        table, `rename_partition_req` from the new partition. That object is copied, not changed.
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

    # Reads and writes. `through`: another client, perhaps connected to another metastore of the set; None: `client`.

    def read(self, method: str, table: str, request: Any, *, through: MetastoreClient | None = None) -> Any:
        """Reads one table with any `*_req` method that takes a write-id list. Raises the exceptions of the method."""
        self._keep_alive()
        return (through or self.client).call(method, self.reading(table, request))

    def write(self, method: str, table: str, request: Any, *, through: MetastoreClient | None = None) -> Any:
        """Writes to one table with any `*_req` method that takes a write-id list. Raises the exceptions of the
        method."""
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
        """Returns those of the named partitions that exist."""
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
