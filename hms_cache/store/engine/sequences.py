"""Ids of new rows, from SEQUENCE_TABLE, as Hive's DataNucleus allocates them.

``NEXT_VAL`` is the next unused id. Locking the row and adding the number of ids is safe together with Java servers. On
MySQL and PostgreSQL blocks are allocated in a short transaction of their own, *before* the write transaction begins:
inside it, the row lock would serialize all writers until they commit. SQLite has only one writer anyway, and ids are
allocated inside its transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, Connection, bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.store import schema
from hms_cache.store.engine.dialects import allocate_from_counter
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.values import frozen

if TYPE_CHECKING:
    from hms_cache.store.engine.database import Database

_PACKAGE = "org.apache.hadoop.hive.metastore.model."

NOTIFICATION_LOG = "MNotificationLog"

#: Minimum number of ids to allocate: Hive 4's block size. Unused ids of a block are lost when the server stops.
BLOCK_SIZE = 10

#: Every write that logs an event needs one of these, and combined transactions need dozens.
_BLOCK_SIZES: Mapping[str, int] = {NOTIFICATION_LOG: 1000}

#: The id column of each model class, for a sequence whose row is missing or too low.
ID_COLUMNS: Mapping[str, Column[Any]] = {
    "MCatalog": schema.CTLGS.c.CTLG_ID,
    "MColumnDescriptor": schema.CDS.c.CD_ID,
    "MCreationMetadata": schema.MV_CREATION_METADATA.c.MV_CREATION_METADATA_ID,
    "MDBPrivilege": schema.DB_PRIVS.c.DB_GRANT_ID,
    "MDCPrivilege": schema.DC_PRIVS.c.DC_GRANT_ID,
    "MDatabase": schema.DBS.c.DB_ID,
    "MFunction": schema.FUNCS.c.FUNC_ID,
    "MGlobalPrivilege": schema.GLOBAL_PRIVS.c.USER_GRANT_ID,
    "MISchema": schema.I_SCHEMA.c.SCHEMA_ID,
    "MMasterKey": schema.MASTER_KEYS.c.KEY_ID,
    "MNotificationLog": schema.NOTIFICATION_LOG.c.NL_ID,
    "MPackage": schema.PACKAGES.c.PKG_ID,
    "MPartition": schema.PARTITIONS.c.PART_ID,
    "MPartitionColumnPrivilege": schema.PART_COL_PRIVS.c.PART_COLUMN_GRANT_ID,
    "MPartitionColumnStatistics": schema.PART_COL_STATS.c.CS_ID,
    "MPartitionEvent": schema.PARTITION_EVENTS.c.PART_NAME_ID,
    "MPartitionPrivilege": schema.PART_PRIVS.c.PART_GRANT_ID,
    "MRole": schema.ROLES.c.ROLE_ID,
    "MRoleMap": schema.ROLE_MAP.c.ROLE_GRANT_ID,
    "MRuntimeStat": schema.RUNTIME_STATS.c.RS_ID,
    "MScheduledExecution": schema.SCHEDULED_EXECUTIONS.c.SCHEDULED_EXECUTION_ID,
    "MScheduledQuery": schema.SCHEDULED_QUERIES.c.SCHEDULED_QUERY_ID,
    "MSchemaVersion": schema.SCHEMA_VERSION.c.SCHEMA_VERSION_ID,
    "MSerDeInfo": schema.SERDES.c.SERDE_ID,
    "MStorageDescriptor": schema.SDS.c.SD_ID,
    "MStoredProc": schema.STORED_PROCS.c.SP_ID,
    "MStringList": schema.SKEWED_STRING_LIST.c.STRING_LIST_ID,
    "MTable": schema.TBLS.c.TBL_ID,
    "MTableColumnPrivilege": schema.TBL_COL_PRIVS.c.TBL_COLUMN_GRANT_ID,
    "MTableColumnStatistics": schema.TAB_COL_STATS.c.CS_ID,
    "MTablePrivilege": schema.TBL_PRIVS.c.TBL_GRANT_ID,
    "MTxnWriteNotificationLog": schema.TXN_WRITE_NOTIFICATION_LOG.c.WNL_ID,
    "MType": schema.TYPES.c.TYPES_ID,
    "MWMMapping": schema.WM_MAPPING.c.MAPPING_ID,
    "MWMPool": schema.WM_POOL.c.POOL_ID,
    "MWMResourcePlan": schema.WM_RESOURCEPLAN.c.RP_ID,
    "MWMTrigger": schema.WM_TRIGGER.c.TRIGGER_ID,
}


_IS_OF_CLASS = schema.SEQUENCE_TABLE.c.SEQUENCE_NAME == bindparam("sequence_name")


@frozen
class LaggingSequence:
    """A sequence that would have allocated an id in use: its value ``next_value`` was raised to ``raised_to``."""

    model: str
    next_value: int | None
    raised_to: int


def allocate_ids(connection: Connection, model: str, count: int) -> range:
    """``count`` consecutive new ids of ``model`` ("MTable", …), in the caller's transaction, which keeps the row lock.

    A missing row is created above the largest id in use.

    :raises RetryableConflict: another server has just created the missing row.
    :raises KeyError: no such model class.
    """
    column = ID_COLUMNS[model]
    table = schema.SEQUENCE_TABLE
    first = allocate_from_counter(
        connection, table.c.NEXT_VAL, count, _IS_OF_CLASS, {"sequence_name": _PACKAGE + model}
    )
    if first is None:
        first = _largest_id(connection, column) + 1
        try:
            connection.execute(insert(table).values(SEQUENCE_NAME=_PACKAGE + model, NEXT_VAL=first + count))
        except IntegrityError as error:
            raise RetryableConflict(f"another server began the sequence of {model} at the same moment") from error
    return range(first, first + count)


def raise_lagging_sequences(connection: Connection) -> list[LaggingSequence]:
    """Raises every sequence that is not above the largest id of its table, in the caller's transaction.

    Such a sequence makes all writes of its class fail (duplicate keys). To be called when a server starts. Missing
    tables or sequences are skipped.
    """
    table = schema.SEQUENCE_TABLE
    found: dict[str, int] = {
        name.removeprefix(_PACKAGE): next_value
        for name, next_value in connection.execute(select(table.c.SEQUENCE_NAME, table.c.NEXT_VAL))
    }
    raised = []
    for model in sorted(found.keys() & ID_COLUMNS.keys()):
        needed = _largest_id(connection, ID_COLUMNS[model]) + 1
        next_value = found[model]
        if next_value < needed:
            connection.execute(
                update(table)
                .where(table.c.SEQUENCE_NAME == _PACKAGE + model, table.c.NEXT_VAL < needed)
                .values(NEXT_VAL=needed)
            )
            raised.append(LaggingSequence(model, next_value, needed))
    return raised


def _largest_id(connection: Connection, column: Column[Any]) -> int:
    return int(connection.execute(select(func.coalesce(func.max(column), 0))).scalar_one())


class IdBlocks:
    """Unused ids allocated from SEQUENCE_TABLE, for MySQL and PostgreSQL. Thread-safe.

    ``_lock`` guards ``_free`` and is never held during a statement.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._free: dict[str, list[range]] = {}

    def allocate_free(self, model: str, count: int) -> list[int] | None:
        """``count`` unused ids, ascending within a block. None, and nothing is allocated, if there are fewer."""
        with self._lock:
            blocks = self._free.get(model, [])
            if sum(map(len, blocks)) < count:
                return None
            allocated: list[int] = []
            while len(allocated) < count:
                block = blocks[0]
                missing = count - len(allocated)
                allocated.extend(block[:missing])
                if missing < len(block):
                    blocks[0] = block[missing:]
                else:
                    blocks.pop(0)
            return allocated

    def reserve(self, requested: Mapping[str, int]) -> dict[str, list[int]]:
        """Ids per model class. Missing ones are allocated in one short transaction, which locks rows in order of their
        names.

        Must not be called while holding a connection.

        :raises RetryableConflict, DatabaseUnavailable: no id has been taken.
        """
        reserved: dict[str, list[int]] = {}
        short: dict[str, int] = {}
        for model, count in requested.items():
            ids = self.allocate_free(model, count)
            if ids is None:
                short[model] = count
            else:
                reserved[model] = ids
        if not short:
            return reserved
        try:
            blocks = self._allocate_blocks(short)
        except BaseException:
            self.give_back(reserved)
            raise
        for model, block in blocks.items():
            count = short[model]
            reserved[model] = list(block[:count])
            self._add(model, block[count:])
        return reserved

    def forget(self) -> None:
        """Drops all unused ids: another server may be the primary now, on which they are not allocated."""
        with self._lock:
            self._free.clear()

    def give_back(self, unused: Mapping[str, Iterable[int]]) -> None:
        """Returns ids that are in no committed row and in no transaction with an unknown outcome."""
        for model, ids in unused.items():
            with self._lock:
                # Before the newer blocks, so that the lowest ids are used first.
                self._free.setdefault(model, [])[:0] = _consecutive(ids)

    def _add(self, model: str, block: range) -> None:
        if block:
            with self._lock:
                self._free.setdefault(model, []).append(block)

    def _allocate_blocks(self, short: Mapping[str, int]) -> dict[str, range]:
        with self._database.writing() as connection:
            blocks = {
                model: allocate_ids(connection, model, max(short[model], _BLOCK_SIZES.get(model, BLOCK_SIZE)))
                for model in sorted(short)
            }
            # A lost acknowledgement only loses ids: the error is raised and none of the block is used.
            connection.commit()
        return blocks


def _consecutive(ids: Iterable[int]) -> Iterable[range]:
    start = stop = None
    for value in sorted(ids):
        if start is None or stop is None:
            start, stop = value, value + 1
        elif value == stop:
            stop += 1
        else:
            yield range(start, stop)
            start, stop = value, value + 1
    if start is not None and stop is not None:
        yield range(start, stop)
