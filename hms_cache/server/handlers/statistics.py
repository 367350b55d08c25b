"""Column statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.partition_names import parse_partition_name
from hms_cache.server.calls import Call, HandlerTable
from hms_cache.server.handlers.names import (
    is_of_table,
    requested_table,
    specified_table,
    table_name,
    version,
    writer,
)
from hms_cache.server.handlers.partitions import positional
from hms_cache.store.contract.environment import ANY_WRITER, Writer
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AggrStats,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsObj,
    InvalidInputException,
    InvalidObjectException,
    LongColumnStatsData,
    MetaException,
    NoSuchObjectException,
    PartitionsStatsRequest,
    PartitionsStatsResult,
    SetPartitionsStatsRequest,
    SetPartitionsStatsResponse,
    TableStatsRequest,
    TableStatsResult,
)

handlers = HandlerTable()

DEFAULT_ENGINE = "hive"
"""The engine of statistics if a client names none: clients before 4.0 have no such field, and it is never null."""


def _described(statistics: ColumnStatistics) -> TableName:
    description = statistics.statsDesc
    if description is None:
        raise InvalidObjectException("Invalid column stats object: it describes no table")
    name = table_name(description.dbName, description.tableName, description.catName)
    description.catName, description.dbName, description.tableName = name
    if statistics.engine is None:
        statistics.engine = DEFAULT_ENGINE
    return name


def _usable(found: ColumnStatistics) -> list[ColumnStatisticsObj]:
    """What a reader may use to answer a query: nothing from a writer that is not in its list of valid write ids."""
    return [] if found.isStatsCompliant is False else found.statsObj or []


def _for_reader(found: Sequence[ColumnStatisticsObj] | None, engine: str | None) -> list[ColumnStatisticsObj]:
    """Statistics in the form that the client knows.

    Clients before Hive 4 name no `engine`, and know statistics of timestamps as those of integers. Trino 476 fails on
    others: it reads no statistics of such a table, cannot analyze it, and cannot insert into it.
    """
    if engine is not None:
        return list(found or ())
    return [_before_hive_4(one) for one in found or ()]


def _before_hive_4(statistics: ColumnStatisticsObj) -> ColumnStatisticsObj:
    timestamps = None if statistics.statsData is None else statistics.statsData.timestampStats
    if timestamps is None:
        return statistics
    numbers = LongColumnStatsData(
        None if timestamps.lowValue is None else timestamps.lowValue.secondsSinceEpoch,
        None if timestamps.highValue is None else timestamps.highValue.secondsSinceEpoch,
        timestamps.numNulls,
        timestamps.numDVs,
        timestamps.bitVectors,
    )
    return ColumnStatisticsObj(statistics.colName, statistics.colType, ColumnStatisticsData(longStats=numbers))


def _required(value: str | None, what: str) -> str:
    if not value:
        raise MetaException(f"{what} name is invalid. {value or ''}")
    return value


def _existing(work: Callable[[], None], name: str) -> bool:
    """Runs a change of partitions' statistics. For a missing table, Hive has a separate exception type."""
    try:
        work()
    except NoSuchObjectException as error:
        if is_of_table(error):
            raise InvalidObjectException(f"{name} table not found") from error
        raise
    return True


def _statistics_query(request: TableStatsRequest | PartitionsStatsRequest) -> StatisticsQuery:
    return StatisticsQuery(
        requested_table(request), request.colNames or (), request.engine or DEFAULT_ENGINE, version(request)
    )


@handlers.read("get_table_column_statistics")
def get_table_column_statistics(call: Call, arguments: methods.get_table_column_statistics_args) -> ColumnStatistics:
    name = positional(arguments)
    _required(arguments.col_name, "Column")
    with specified_table(name):
        found = call.stores.reads.statistics.get_table_column_statistics(
            StatisticsQuery(name, [arguments.col_name], DEFAULT_ENGINE)
        )
    if not found.statsObj:
        raise NoSuchObjectException(
            f"Statistics for dbName={name.database}, tblName={name.table}, columnName={arguments.col_name} do not exist"
        )
    return found


@handlers.read("get_partition_column_statistics")
def get_partition_column_statistics(
    call: Call, arguments: methods.get_partition_column_statistics_args
) -> ColumnStatistics:
    name = positional(arguments)
    _required(arguments.part_name, "Partition")
    _required(arguments.col_name, "Column")
    with specified_table(name):
        found = call.stores.reads.statistics.get_partition_column_statistics(
            StatisticsQuery(name, [arguments.col_name], DEFAULT_ENGINE), [arguments.part_name]
        )
    if not found or not found[0].statsObj:
        raise NoSuchObjectException(
            f"Statistics for dbName={name.database}, tblName={name.table}, partName={arguments.part_name}, "
            f"columnName={arguments.col_name} do not exist"
        )
    return found[0]


@handlers.read("get_table_statistics_req")
def get_table_statistics_req(call: Call, arguments: methods.get_table_statistics_req_args) -> TableStatsResult:
    """Statistics that the reader may not use are left out; Hive's handler says nothing else about them."""
    request = arguments.request
    query = _statistics_query(request)
    with specified_table(query.table):
        found = call.stores.reads.statistics.get_table_column_statistics(query)
    return TableStatsResult(tableStats=_for_reader(_usable(found), request.engine))


@handlers.read("get_partitions_statistics_req")
def get_partitions_statistics_req(
    call: Call, arguments: methods.get_partitions_statistics_req_args
) -> PartitionsStatsResult:
    """Partitions whose statistics the reader may not use are left out, as in `get_table_statistics_req`.

    A request without partition names says nothing about the table, not even whether it exists.
    """
    request = arguments.request
    if not request.partNames:
        return PartitionsStatsResult(partStats={})
    query = _statistics_query(request)
    with specified_table(query.table):
        found = call.stores.reads.statistics.get_partition_column_statistics(query, request.partNames)
    return PartitionsStatsResult(
        partStats={
            statistics.statsDesc.partName: _for_reader(usable, request.engine)
            for statistics in found
            if (usable := _usable(statistics))
        }
    )


@handlers.read("get_aggr_stats_for")
def get_aggr_stats_for(call: Call, arguments: methods.get_aggr_stats_for_args) -> AggrStats:
    request = arguments.request
    query = _statistics_query(request)
    with specified_table(query.table):
        found = call.stores.reads.statistics.get_aggregate_statistics(query, request.partNames or ())
    if request.engine is not None:
        return found
    return AggrStats(_for_reader(found.colStats, None), found.partsFound, found.isStatsCompliant)


@handlers.write("update_table_column_statistics")
def update_table_column_statistics(call: Call, arguments: methods.update_table_column_statistics_args) -> bool:
    with specified_table(_described(arguments.stats_obj), keeps_blanks=True):
        call.stores.writes.statistics.update_table_column_statistics(arguments.stats_obj)
    return True


@handlers.write("update_partition_column_statistics")
def update_partition_column_statistics(call: Call, arguments: methods.update_partition_column_statistics_args) -> bool:
    return _update_partition(call, arguments.stats_obj, ANY_WRITER)


def _update_partition(call: Call, statistics: ColumnStatistics, of: Writer) -> bool:
    name = _described(statistics)
    if not parse_partition_name(_required(statistics.statsDesc.partName, "Partition")):
        raise MetaException(f"Partition name is invalid. {statistics.statsDesc.partName}")
    work = call.stores.writes.statistics.update_partition_column_statistics
    return _existing(lambda: work([statistics], writer=of), str(name.as_sent).lower())


@handlers.write("set_aggr_stats_for", audit=lambda a: "set_aggr_stats_for")
def set_aggr_stats_for(call: Call, arguments: methods.set_aggr_stats_for_args) -> bool:
    """The statistics of one table, or of partitions of one table; merged into the stored ones if requested.

    They are stored for the engine that they name themselves, whatever the field of the request says
    (`ObjectStore.updateTableColumnStatistics`).
    """
    request = arguments.request
    statistics = list(request.colStats or ())
    if not statistics:
        return True
    name, *others = (_described(element) for element in statistics)
    if any(other != name for other in others):
        raise InvalidObjectException("The statistics of one request must be of one table")
    if request.needMerge:
        with specified_table(name):
            call.stores.writes.statistics.merge_column_statistics(statistics, writer=writer(request))
    elif statistics[0].statsDesc.isTblLevel:
        if len(statistics) != 1:
            raise InvalidObjectException(
                f"Expecting only 1 ColumnStatistics for table's column stats, got {len(statistics)}"
            )
        with specified_table(name, keeps_blanks=True):
            call.stores.writes.statistics.update_table_column_statistics(statistics[0], writer=writer(request))
    else:
        work = call.stores.writes.statistics.update_partition_column_statistics
        _existing(lambda: work(statistics, writer=writer(request)), str(name.as_sent))
    return True


def _only(request: SetPartitionsStatsRequest) -> ColumnStatistics:
    """The single element, which replaces what is stored; only `set_aggr_stats_for` merges (`HMSHandler`, Hive 4.0)."""
    if len(request.colStats or ()) != 1:
        raise InvalidInputException("Only one stats object expected")
    if request.needMerge:
        raise InvalidInputException("Merge is not supported for non-aggregate stats")
    only: ColumnStatistics = request.colStats[0]
    return only


@handlers.write("update_table_column_statistics_req")
def update_table_column_statistics_req(
    call: Call, arguments: methods.update_table_column_statistics_req_args
) -> SetPartitionsStatsResponse:
    statistics = _only(arguments.req)
    with specified_table(_described(statistics), keeps_blanks=True):
        call.stores.writes.statistics.update_table_column_statistics(statistics, writer=writer(arguments.req))
    return SetPartitionsStatsResponse(result=True)


@handlers.write("update_partition_column_statistics_req")
def update_partition_column_statistics_req(
    call: Call, arguments: methods.update_partition_column_statistics_req_args
) -> SetPartitionsStatsResponse:
    statistics = _only(arguments.req)
    return SetPartitionsStatsResponse(result=_update_partition(call, statistics, writer(arguments.req)))


@handlers.write("delete_table_column_statistics")
def delete_table_column_statistics(call: Call, arguments: methods.delete_table_column_statistics_args) -> bool:
    columns = [arguments.col_name] if arguments.col_name else []
    name, engine = positional(arguments), arguments.engine
    try:
        call.stores.writes.statistics.delete_table_column_statistics(name, columns, engine=engine)
    except NoSuchObjectException as error:
        if not is_of_table(error):
            raise
        # With two blanks, and in lower case.
        text = f"Table {str(name.as_sent).lower()}  for which stats deletion is requested doesn't exist"
        raise NoSuchObjectException(text) from error
    return True


@handlers.write("delete_partition_column_statistics")
def delete_partition_column_statistics(call: Call, arguments: methods.delete_partition_column_statistics_args) -> bool:
    columns = [arguments.col_name] if arguments.col_name else []
    name, engine = positional(arguments), arguments.engine
    part = _required(arguments.part_name, "Partition")
    return _existing(
        lambda: call.stores.writes.statistics.delete_partition_column_statistics(name, [part], columns, engine=engine),
        f"{name.as_sent.database}.{name.as_sent.table}".lower(),
    )


@handlers.write("delete_column_statistics_req")
def delete_column_statistics_req(call: Call, arguments: methods.delete_column_statistics_req_args) -> bool:
    """The existing ones: a request without partition names means all (`DeleteColumnStatisticsHandler`, Hive 4.2)."""
    request = arguments.req
    name = requested_table(request)
    work = partial(
        call.stores.writes.statistics.delete_column_statistics,
        name,
        request.part_names or (),
        request.col_names or (),
        of_table=bool(request.tableLevel),
        engine=request.engine,
    )
    if request.tableLevel:
        work()
        return True
    return _existing(work, str(name))
