"""Reports of clients about running queries: runtime statistics, replication metrics, counts of changed rows.

Facts: `ObjectStore`, `TxnHandler` (Hive 4.0.1). None of them has events or is cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.config.quantities import whole_seconds
from hms_cache.store.engine.context import PartOfStore, require_table
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.listing import limited, listed
from hms_cache.store.engine.text_conditions import same_text
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.schema import MV_TABLES_USED, REPLICATION_METRICS, RUNTIME_STATS
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, ReplicationMetrics, RuntimeStat
from hms_cache.values import frozen

_LONGEST_METADATA = 4000
_LONGEST_PROGRESS = 10000
"""Width of the column in characters. Longer texts are replaced by a note, as in Hive."""

_BATCH_SIZE = 1000
"""Rows deleted in one transaction: payloads have some KiB, and other calls do not wait long."""


@frozen
class Cleaned:
    """Number of rows that `RuntimeStatistics.clean` deleted."""

    statistics: int
    metrics: int


class RuntimeStatistics(PartOfStore):
    """Reads and writes of reports about queries. Thread-safe; each method is one transaction."""

    def add(self, statistic: RuntimeStat) -> None:
        """Stores operator statistics of a query, with the current time regardless of theirs, as in Hive.

        :raises MetaException: weight or payload is missing.
        """
        if statistic.weight is None or statistic.payload is None:
            raise MetaException("Runtime statistics need a weight and a payload")
        created_s = self._context.now_s()
        values = {"CREATE_TIME": created_s, "WEIGHT": statistic.weight, "PAYLOAD": statistic.payload}

        def work(transaction: WriteTransaction) -> None:
            row = {**values, "RS_ID": transaction.id("MRuntimeStat")}
            transaction.connection.execute(insert(RUNTIME_STATS).values(row))

        require_table(self._database, RUNTIME_STATS)
        run_write(self._database, work, ids={"MRuntimeStat": 1})

    def get(self, max_weight: int, max_create_time_s: int) -> list[RuntimeStat]:
        """The newest ones, up to and including the one with which their weights reach `max_weight` (negative: all).

        :param max_create_time_s: only those created before it, unless it is 0 or below.
        """
        table = RUNTIME_STATS.c
        statement = select(table.CREATE_TIME, table.WEIGHT, table.PAYLOAD)
        if max_create_time_s > 0:
            statement = statement.where(table.CREATE_TIME < max_create_time_s)
        statement = statement.order_by(table.CREATE_TIME.desc(), table.RS_ID.desc())

        def read(connection: Connection) -> list[RuntimeStat]:
            found, total = [], 0
            for created_s, weight, payload in connection.execute(limited(statement)):
                found.append(RuntimeStat(created_s, weight, payload))
                total += weight
                if 0 <= max_weight <= total:
                    return found
            return list(listed(found, "runtime statistics"))

        require_table(self._database, RUNTIME_STATS)
        return run_read(self._database, read)

    def clean(self) -> Cleaned:
        """Deletes statistics and metrics that are older than the settings permit.

        :raises DatabaseUnavailable: the database became unavailable; rows deleted before stay deleted.
        """
        settings, features = self._context.settings.workload, self._database.features
        kinds = (
            (RUNTIME_STATS.c.RS_ID, RUNTIME_STATS.c.CREATE_TIME, settings.runtime_statistics_retention_s),
            (
                REPLICATION_METRICS.c.RM_SCHEDULED_EXECUTION_ID,
                REPLICATION_METRICS.c.RM_START_TIME,
                settings.replication_metrics_retention_s,
            ),
        )
        now_s = self._context.now_s()
        statistics, metrics = (
            self._remove(key, made, now_s - whole_seconds(retention_s)) if features.has(made) else 0
            for key, made, retention_s in kinds
        )
        return Cleaned(statistics, metrics)

    def _remove(self, key: Column[Any], made: Column[Any], max_time_s: int) -> int:
        """Deletes in transactions of 1,000 rows."""
        some = select(key).where(made <= max_time_s).order_by(made).limit(_BATCH_SIZE)

        def work(transaction: WriteTransaction) -> tuple[int, int]:
            connection = transaction.connection
            found = list(connection.execute(some).scalars())
            # Another server may delete the same rows.
            return len(found), connection.execute(delete(key.table).where(key.in_(found))).rowcount if found else 0

        removed = 0
        while True:
            found, deleted = run_write(self._database, work)
            removed += deleted
            if found < _BATCH_SIZE:
                return removed

    def add_replication_metrics(self, metrics: Sequence[ReplicationMetrics]) -> None:
        """Inserts or updates metrics by their scheduled execution. Empty texts leave stored ones unchanged.

        :raises MetaException: an execution or a policy is missing.
        """
        for one in metrics:
            if None in (one.scheduledExecutionId, one.policy, one.dumpExecutionId):
                raise MetaException(
                    "Replication metrics need a scheduled execution, a policy and an execution of the dump"
                )

        def work(transaction: WriteTransaction) -> None:
            connection, table = transaction.connection, REPLICATION_METRICS
            features = features_of(connection)
            for one in metrics:
                values = features.writable(table, _metric_values(one))
                is_it = table.c.RM_SCHEDULED_EXECUTION_ID == one.scheduledExecutionId
                key = select(table.c.RM_SCHEDULED_EXECUTION_ID).where(is_it).with_for_update()
                if connection.execute(key).first() is not None:
                    if values:
                        connection.execute(update(table).where(is_it).values(values))
                    continue
                values |= {
                    "RM_SCHEDULED_EXECUTION_ID": one.scheduledExecutionId,
                    "RM_POLICY": one.policy,
                    "RM_DUMP_EXECUTION_ID": one.dumpExecutionId,
                    "RM_START_TIME": self._context.now_s(),
                }
                try:
                    connection.execute(insert(table).values(values))
                except IntegrityError as error:
                    raise RetryableConflict("somebody else wrote these metrics") from error

        require_table(self._database, REPLICATION_METRICS)
        run_write(self._database, work)

    def get_replication_metrics(self, policy: str | None, execution_id: int | None) -> list[ReplicationMetrics]:
        """The metrics of a policy, otherwise of a scheduled execution, newest first; empty if neither is given."""
        table = REPLICATION_METRICS.c
        if policy is None and execution_id is None:
            return []
        condition = table.RM_SCHEDULED_EXECUTION_ID == execution_id
        if policy is not None:
            condition = same_text(table.RM_POLICY, policy)

        def read(connection: Connection) -> list[ReplicationMetrics]:
            statement = (
                select(
                    table.RM_SCHEDULED_EXECUTION_ID,
                    table.RM_POLICY,
                    table.RM_DUMP_EXECUTION_ID,
                    table.RM_METADATA,
                    table.RM_PROGRESS,
                    features_of(connection).column(table.MESSAGE_FORMAT),
                )
                .where(condition)
                .order_by(table.RM_SCHEDULED_EXECUTION_ID.desc())
            )
            rows = listed(connection.execute(limited(statement)).all(), "replication metrics")
            return [ReplicationMetrics(*row) for row in rows]

        require_table(self._database, REPLICATION_METRICS)
        return run_read(self._database, read)

    def add_changed_rows(self, table_id: int, inserted: int, updated: int, deleted: int) -> None:
        """Adds to the counts that materialized views store for their source tables. Without such a view nothing
        happens."""
        used = MV_TABLES_USED.c

        def work(transaction: WriteTransaction) -> None:
            if features_of(transaction.connection).has(used.INSERTED_COUNT):
                transaction.connection.execute(
                    update(MV_TABLES_USED)
                    .where(used.TBL_ID == table_id)
                    .values(
                        INSERTED_COUNT=used.INSERTED_COUNT + inserted,
                        UPDATED_COUNT=used.UPDATED_COUNT + updated,
                        DELETED_COUNT=used.DELETED_COUNT + deleted,
                    )
                )

        run_write(self._database, work)


def _metric_values(metric: ReplicationMetrics) -> dict[str, Any]:
    # Set even if absent: the column's own default is not Hive's, and the stored text that is replaced may have another
    # format.
    values: dict[str, Any] = {"MESSAGE_FORMAT": metric.messageFormat}
    if metric.metadata:
        if len(metric.metadata) > _LONGEST_METADATA:
            values["RM_PROGRESS"] = f"RM_Metadata limit exceeded to {len(metric.metadata)}"
        else:
            values["RM_METADATA"] = metric.metadata
    if metric.progress:
        is_long = len(metric.progress) > _LONGEST_PROGRESS
        note = f"RM_Progress limit exceeded to {len(metric.progress)}"
        values["RM_PROGRESS"] = note if is_long else metric.progress
    return values
