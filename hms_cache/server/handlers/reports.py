"""Reports of queries (runtime statistics, replication metrics, changed rows), named types, the database's UUID, file
metadata, which only HBase ever stored, and indexes, which no longer exist."""

from __future__ import annotations

from hms_cache.server.calls import Call, HandlerTable
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CacheFileMetadataResult,
    ClearFileMetadataResult,
    GetFileMetadataByExprResult,
    GetFileMetadataResult,
    Index,
    MetaException,
    NoSuchObjectException,
    PutFileMetadataResult,
    ReplicationMetricList,
    RuntimeStat,
    Type,
)

handlers = HandlerTable()


@handlers.read("get_metastore_db_uuid")
def get_metastore_db_uuid(call: Call, arguments: methods.get_metastore_db_uuid_args) -> str:
    return call.stores.auxiliary.identity.get()


@handlers.write("add_runtime_stats", audit=lambda a: "store_runtime_stats")
def add_runtime_stats(call: Call, arguments: methods.add_runtime_stats_args) -> None:
    call.stores.auxiliary.runtime_statistics.add(arguments.stat)


@handlers.read("get_runtime_stats")
def get_runtime_stats(call: Call, arguments: methods.get_runtime_stats_args) -> list[RuntimeStat]:
    request = arguments.rqst
    if request.maxWeight is None or request.maxCreateTime is None:
        raise MetaException("get_runtime_stats needs maxWeight and maxCreateTime; -1 and 0 are no limit")
    return call.stores.auxiliary.runtime_statistics.get(request.maxWeight, request.maxCreateTime)


@handlers.write("add_replication_metrics", audit=lambda a: "add_replication_metrics")
def add_replication_metrics(call: Call, arguments: methods.add_replication_metrics_args) -> None:
    metrics = arguments.replicationMetricList.replicationMetricList or ()
    call.stores.auxiliary.runtime_statistics.add_replication_metrics(metrics)


@handlers.read("get_replication_metrics")
def get_replication_metrics(call: Call, arguments: methods.get_replication_metrics_args) -> ReplicationMetricList:
    request = arguments.rqst
    statistics = call.stores.auxiliary.runtime_statistics
    return ReplicationMetricList(statistics.get_replication_metrics(request.policy, request.scheduledExecutionId))


@handlers.write("update_transaction_statistics", about=lambda a: a.req.tableId)
def update_transaction_statistics(call: Call, arguments: methods.update_transaction_statistics_args) -> None:
    request = arguments.req
    call.stores.auxiliary.runtime_statistics.add_changed_rows(
        request.tableId, request.insertCount or 0, request.updatedCount or 0, request.deletedCount or 0
    )


@handlers.write("create_type", about=lambda a: a.type.name)
def create_type(call: Call, arguments: methods.create_type_args) -> bool:
    call.stores.auxiliary.types.create(arguments.type)
    return True


@handlers.read("get_type")
def get_type(call: Call, arguments: methods.get_type_args) -> Type:
    return call.stores.auxiliary.types.get(arguments.name)


@handlers.write("drop_type", about=lambda a: a.type)
def drop_type(call: Call, arguments: methods.drop_type_args) -> bool:
    call.stores.auxiliary.types.drop(arguments.type)
    return True


@handlers.local("get_type_all")
def get_type_all(call: Call, arguments: methods.get_type_all_args) -> None:
    """Hive's answer, from 2.3 to 4.1."""
    raise MetaException("Not yet implemented")


@handlers.local("get_indexes")
def get_indexes(call: Call, arguments: methods.get_indexes_args) -> list[Index]:
    """None: Hive has had no indexes since 3.0.

    Hive 2 asks for the indexes of each table in a MapReduce query if `hive.optimize.index.filter` is on, which is
    required for pushing filters down to ORC, and fails without an answer. For Hive 2's own metastore, it makes no
    difference whether the table exists.
    """
    return []


@handlers.local("get_index_names")
def get_index_names(call: Call, arguments: methods.get_index_names_args) -> list[str]:
    return []


@handlers.local("get_index_by_name")
def get_index_by_name(call: Call, arguments: methods.get_index_by_name_args) -> Index:
    name = f"{arguments.db_name}.{arguments.tbl_name}"
    raise NoSuchObjectException(f"{name} has no index {arguments.index_name}: Hive has none since 3.0")


@handlers.local("get_file_metadata")
def get_file_metadata(call: Call, arguments: methods.get_file_metadata_args) -> GetFileMetadataResult:
    """Returns that it is not supported, as Hive does with every relational database."""
    return GetFileMetadataResult(metadata={}, isSupported=False)


@handlers.local("get_file_metadata_by_expr")
def get_file_metadata_by_expr(
    call: Call, arguments: methods.get_file_metadata_by_expr_args
) -> GetFileMetadataByExprResult:
    return GetFileMetadataByExprResult(metadata={}, isSupported=False)


@handlers.local("cache_file_metadata")
def cache_file_metadata(call: Call, arguments: methods.cache_file_metadata_args) -> CacheFileMetadataResult:
    return CacheFileMetadataResult(isSupported=False)


@handlers.local("put_file_metadata")
def put_file_metadata(call: Call, arguments: methods.put_file_metadata_args) -> PutFileMetadataResult:
    """Nothing is stored, which the reads report by `isSupported`: this struct has no field for it."""
    return PutFileMetadataResult()


@handlers.local("clear_file_metadata")
def clear_file_metadata(call: Call, arguments: methods.clear_file_metadata_args) -> ClearFileMetadataResult:
    """There never are any."""
    return ClearFileMetadataResult()
