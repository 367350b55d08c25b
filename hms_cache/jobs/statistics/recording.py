"""Writes parameters of tables and partitions to the metastore, without overwriting concurrent changes.

A table is altered only if it is still the version read before: the request contains its time of alteration, and a
server of this project, or Hive 4, refuses it otherwise (`expected_parameter_key`). The protocol has no such condition
for partitions: a change between reading and writing them, some milliseconds, is overwritten, as by Hive's ANALYZE.
Files are checked once more afterwards (`writing`). See docs/decisions/0011-statistics-by-files.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from hms_cache.client import MetastoreClient, OutcomeUnknownError
from hms_cache.jobs.sources.metastore_reader import CAPABILITIES, in_catalog
from hms_cache.jobs.statistics.data_files import RECORDED, Figures, Mark
from hms_cache.jobs.statistics.parameters import basic_statistics, not_answerable
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.metadata.partition_names import make_partition_name
from hms_cache.store.rows.parameters import (
    accurate_columns,
    remove_columns_from_accuracy,
    set_basic_statistics_accurate,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlterPartitionsRequest,
    AlterTableRequest,
    ColumnStatisticsObj,
    EnvironmentContext,
    GetTableRequest,
    MetaException,
    NoSuchObjectException,
    Partition,
    Table,
)
from hms_cache.values import frozen

_ATTEMPTS = 3

_DDL_TIME = "transient_lastDdlTime"
_KEEP_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}
"""Keeps the server from counting files itself and from withdrawing claims in the parameters."""

CHANGED = "it was altered while its statistics were computed; the next run does it"
GONE = "it was dropped, or lies elsewhere now"

Failures = dict[str | None, str]
"""By partition, None for the table itself: why nothing was recorded."""


@frozen
class Unit:
    """A partition, or (with the name None) an unpartitioned table, whose column statistics are written."""

    name: str | None
    rows: int
    location: str | None
    """None: its current location."""

    figures: Figures
    columns: Sequence[ColumnStatisticsObj]
    sample: str | None = None
    """The value stored about the sample of the estimate (`data_files.SAMPLED`)."""

    reading: str = ""
    """`data_files.reading_of` its table."""


def counted(unit: Unit, parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters with the unit's row count and files."""
    return basic_statistics(dict(parameters), unit.rows, unit.figures, unit.columns, unit.sample, unit.reading)


def is_counted(unit: Unit, parameters: Mapping[str, str]) -> bool:
    """Whether the parameters contain them."""
    mark = Mark.read(parameters.get(RECORDED))
    is_marked = mark is not None and (mark.figures, mark.rows) == (unit.figures, unit.rows)
    return is_marked and is_planned_by(unit, parameters)


def planned_by(unit: Unit, parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters without claims of accuracy for columns that must not be used to answer queries."""
    changed = dict(parameters)
    remove_columns_from_accuracy(changed, not_answerable(unit.columns))
    return changed


def is_planned_by(unit: Unit, parameters: Mapping[str, str]) -> bool:
    """Whether there are no such claims."""
    return accurate_columns(parameters).isdisjoint(not_answerable(unit.columns))


def withdrawn(unit: Unit, parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters without the claims made for these files, and without their mark; unchanged if other claims were
    written since."""
    changed = dict(parameters)
    if not is_withdrawn(unit, parameters):
        del changed[RECORDED]
        set_basic_statistics_accurate(changed, False)
    return changed


def is_withdrawn(unit: Unit, parameters: Mapping[str, str]) -> bool:
    """Whether the mark of these files is absent."""
    mark = Mark.read(parameters.get(RECORDED))
    return mark is None or mark.figures != unit.figures


def disclaimed(columns: Collection[str], unit: Unit, parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters without the mark, so that the next run reads the unit, and without claims for these columns. If
    the mark was that of the unit's files and matches the number of rows, all claims are removed; counts by other
    writers are kept."""
    changed = dict(parameters)
    mark = Mark.read(changed.pop(RECORDED, None))
    if mark is not None and mark.figures == unit.figures and parameters.get("numRows") == str(mark.rows):
        set_basic_statistics_accurate(changed, False)
    remove_columns_from_accuracy(changed, columns)
    return changed


def is_disclaimed(columns: Collection[str], unit: Unit, parameters: Mapping[str, str]) -> bool:
    """Whether there is nothing to withdraw."""
    return disclaimed(columns, unit, parameters) == parameters


def record_partitions(
    client: MetastoreClient,
    read: Table,
    units: Sequence[Unit],
    write_id: int | None = None,
    valid_write_ids: str | None = None,
    change: Callable[[Unit, Mapping[str, str]], dict[str, str]] = counted,
    is_done: Callable[[Unit, Mapping[str, str]], bool] = is_counted,
) -> Failures:
    """Changes parameters of partitions of a table as it was `read`, in one call. Raises the errors of the metastore.

    :param write_id: of the writer of a transactional table, like `valid_write_ids`.
    :param is_done: whether parameters are already as `change` makes them, for an attempt with unknown outcome.
    """
    database, table = _database(read), read.tableName
    by_name = {unit.name: unit for unit in units}
    keys = [key.name for key in read.partitionKeys or ()]
    for attempt in range(1, _ATTEMPTS + 1):
        found = client.call("get_partitions_by_names", database, table, list(by_name))
        partitions: dict[str | None, Partition] = {make_partition_name(keys, one.values): one for one in found}
        failures: Failures = {}
        altered = []
        for name, unit in by_name.items():
            partition = partitions.get(name)
            if partition is None or partition.sd is None or unit.location not in (None, partition.sd.location or ""):
                failures[name] = GONE
            elif attempt == 1 or not is_done(unit, partition.parameters or {}):
                partition.parameters = change(unit, partition.parameters or {})
                altered.append(partition)
        try:
            if altered:
                context = EnvironmentContext(dict(_KEEP_STATISTICS))
                if write_id is None:
                    client.call("alter_partitions_with_environment_context", database, table, altered, context)
                else:
                    request = AlterPartitionsRequest(
                        *(read.catName, read.dbName, table, altered, context, write_id, valid_write_ids)
                    )
                    client.call("alter_partitions_req", request)
            return failures
        except OutcomeUnknownError:
            # The connection broke: the current parameters show which were written.
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError("not reached")


def record_table(
    client: MetastoreClient,
    read: Table,
    change: Callable[[Mapping[str, str]], dict[str, str]],
    is_done: Callable[[Mapping[str, str]], bool],
    write_id: int | None = None,
    valid_write_ids: str | None = None,
    *,
    is_any: bool = False,
) -> str | None:
    """Changes the parameters of a table that is still as it was `read`. Returns None, or the reason why it did not.
    Raises the errors of the metastore.

    :param is_done: whether parameters are already as `change` makes them, for an attempt with unknown outcome.
    :param write_id: of the writer of a transactional table, like `valid_write_ids`.
    :param is_any: whether the table may be another one with its name.
    """
    requested = GetTableRequest(
        dbName=read.dbName,
        tblName=read.tableName,
        capabilities=CAPABILITIES,
        catName=read.catName or DEFAULT_CATALOG,
    )
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            table: Table = client.call("get_table_req", requested).table
        except NoSuchObjectException:
            return GONE
        parameters = table.parameters or {}
        if attempt > 1 and is_done(parameters):
            return None
        if not is_any and _identity(table) != _identity(read):
            return CHANGED
        table.parameters = change(parameters)
        properties = dict(_KEEP_STATISTICS)
        if _DDL_TIME in parameters:
            properties |= {"expected_parameter_key": _DDL_TIME, "expected_parameter_value": parameters[_DDL_TIME]}
        try:
            context = EnvironmentContext(properties)
            if write_id is None:
                client.call("alter_table_with_environment_context", *(_database(read), table.tableName, table, context))
            else:
                table.writeId = write_id
                request = AlterTableRequest(
                    *(read.catName, read.dbName, table.tableName, table, context, write_id, valid_write_ids)
                )
                client.call("alter_table_req", request)
            return None
        except MetaException as error:
            if "has been modified" in (error.message or "") or "expected_parameter" in (error.message or ""):
                return CHANGED
            raise
        except OutcomeUnknownError:
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError("not reached")


def _database(table: Table) -> str:
    return in_catalog(table.catName or DEFAULT_CATALOG, table.dbName)


def _identity(table: Table) -> tuple[object, ...]:
    """The properties that must be unchanged for statistics to belong to this table: creation time, id, location and
    columns."""
    columns = [(column.name, column.type) for column in table.sd.cols or ()]
    return (table.createTime, table.id, table.sd.location, columns)
