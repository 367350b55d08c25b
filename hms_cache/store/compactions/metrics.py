"""Counters of deltas that workers and cleaners report per table or partition (COMPACTION_METRICS_CACHE)."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, select, update

from hms_cache.store.engine.text_conditions import same_text
from hms_cache.store.schema import COMPACTION_METRICS_CACHE
from hms_cache.store.transactions.names import plain_database, plain_table
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CompactionMetricsDataRequest,
    CompactionMetricsDataStruct,
    CompactionMetricsMetricType,
    MetaException,
)

M = COMPACTION_METRICS_CACHE.c


def update_compaction_metrics(connection: Connection, data: CompactionMetricsDataStruct) -> bool:
    """Sets a counter, or removes it if it is below its threshold. False if another report changed it meanwhile."""
    condition = _condition(data.dbname, data.tblname, data.partitionname, data.type)
    known = connection.execute(select(M.CMC_METRIC_VALUE, M.CMC_VERSION).where(condition)).first()
    if data.metricvalue < data.threshold:
        if known is not None:
            connection.execute(delete(COMPACTION_METRICS_CACHE).where(condition))
        return True
    if known is None:
        connection.execute(
            insert(COMPACTION_METRICS_CACHE).values(
                CMC_DATABASE=plain_database(data.dbname),
                CMC_TABLE=plain_table(data.tblname),
                CMC_PARTITION=data.partitionname,
                CMC_METRIC_TYPE=_type_name(data.type),
                CMC_METRIC_VALUE=data.metricvalue,
                CMC_VERSION=1,
            )
        )
        return True
    updated = connection.execute(
        update(COMPACTION_METRICS_CACHE)
        .where(condition, known.CMC_VERSION == M.CMC_VERSION)
        .values(CMC_METRIC_VALUE=data.metricvalue, CMC_VERSION=known.CMC_VERSION + 1)
    )
    return updated.rowcount > 0


def remove_compaction_metrics(connection: Connection, request: CompactionMetricsDataRequest) -> None:
    """Removes a counter of a table or partition."""
    condition = _condition(request.dbName, request.tblName, request.partitionName, request.type)
    connection.execute(delete(COMPACTION_METRICS_CACHE).where(condition))


def _condition(database: str, table: str, partition: str | None, metric_type: int) -> ColumnElement[bool]:
    return and_(
        M.CMC_DATABASE == plain_database(database),
        M.CMC_TABLE == plain_table(table),
        M.CMC_METRIC_TYPE == _type_name(metric_type),
        same_text(M.CMC_PARTITION, partition),
    )


def _type_name(metric_type: int) -> str:
    name = CompactionMetricsMetricType._VALUES_TO_NAMES.get(metric_type)
    if name is None:
        raise MetaException(f"there is no compaction metric of type {metric_type}")
    return str(name)
