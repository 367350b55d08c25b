"""Parameters with a special meaning: basic statistics, their accuracy, DDL time, environment contexts.

Facts: `StatsSetupConst`, `MetaStoreServerUtils.updateTableStatsSlow`, `populateQuickStats`, `requireCalStats` (4.0).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Iterable, Mapping, MutableMapping

from hms_cache.store.contract.environment import EnvironmentOptions
from hms_cache.store.warehouse import DirectoryStatistics
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatistics, Table
from hms_cache.values import frozen

DDL_TIME = "transient_lastDdlTime"
COLUMN_STATS_ACCURATE = "COLUMN_STATS_ACCURATE"
DO_NOT_UPDATE_STATS = "DO_NOT_UPDATE_STATS"
NUM_FILES = "numFiles"
TOTAL_SIZE = "totalSize"
NUM_ERASURE_CODED_FILES = "numFilesErasureCoded"
FAST_STATISTICS = (NUM_FILES, TOTAL_SIZE, NUM_ERASURE_CODED_FILES)
SUPPORTED_STATISTICS = (NUM_FILES, "numRows", TOTAL_SIZE, "rawDataSize", NUM_ERASURE_CODED_FILES)

_BASIC, _COLUMNS = "BASIC_STATS", "COLUMN_STATS"


_NEW_TABLE = "setStatsStateForCreateTable"
"""Key in `Table.dictionary` under which a Hive 4 client asks for the statistics of a new table, as JSON."""


@frozen
class NewTableStatistics:
    """A client's request to mark the statistics of these columns (empty: all) of a new table as exact.

    `is_iceberg`: existing files are not part of the table.
    """

    columns: tuple[str, ...]
    is_iceberg: bool


def pop_request_for_new_table(table: Table) -> NewTableStatistics | None:
    """Removes the request from the table's dictionary; None if there is none, or if it is negative or invalid."""
    values = table.dictionary.values if table.dictionary is not None else None
    found = (values or {}).pop(_NEW_TABLE, None)
    if not found:
        return None
    try:
        request = json.loads(bytes(found[0]))
    except (ValueError, RecursionError):
        return None
    if not isinstance(request, dict) or request.get("enabled") is not True:
        return None
    columns = request.get("columnNames")
    names = tuple(map(str, columns)) if isinstance(columns, list) else ()
    return NewTableStatistics(names, request.get("isIcebergTable") is True)


def claim_nothing_there(parameters: MutableMapping[str, str], columns: Iterable[str]) -> None:
    """Sets the statistics of a table without rows: all zero and exact, including those of the columns."""
    parameters.update(dict.fromkeys(SUPPORTED_STATISTICS, "0"))
    set_basic_statistics_accurate(parameters, True)
    add_columns_to_accuracy(parameters, columns)


def set_ddl_time(parameters: MutableMapping[str, str], now_s: int) -> None:
    """Sets the DDL time unless it is set."""
    if not parameters.get(DDL_TIME):
        parameters[DDL_TIME] = str(now_s)


def has_fast_statistics(parameters: Mapping[str, str]) -> bool:
    """Whether all statistics that are read from the directory are set."""
    return all(key in parameters for key in FAST_STATISTICS)


def put_directory_statistics(parameters: MutableMapping[str, str], found: DirectoryStatistics) -> None:
    """Sets the statistics that were read from the directory."""
    parameters[NUM_FILES] = str(found.file_count)
    parameters[TOTAL_SIZE] = str(found.total_size_bytes)
    parameters[NUM_ERASURE_CODED_FILES] = "0"


def forget_directory_statistics(parameters: MutableMapping[str, str]) -> None:
    """Removes the statistics that were read from another directory."""
    for key in FAST_STATISTICS:
        parameters.pop(key, None)


def pop_do_not_update(parameters: MutableMapping[str, str]) -> bool:
    """Removes the transient parameter DO_NOT_UPDATE_STATS; returns whether it was true."""
    return parameters.pop(DO_NOT_UPDATE_STATS, "").lower() == "true"


def accuracy(parameters: Mapping[str, str]) -> dict[str, object]:
    """Parses COLUMN_STATS_ACCURATE. Anything but a JSON object means that nothing is accurate, except `TRUE` (of old
    clients), which means that the basic statistics are."""
    text = parameters.get(COLUMN_STATS_ACCURATE)
    if not text:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found
    return {_BASIC: "true"} if text.upper() == "TRUE" else {}


def are_basic_statistics_accurate(parameters: Mapping[str, str]) -> bool:
    """Whether the parameters claim that the basic statistics are up to date."""
    return str(accuracy(parameters).get(_BASIC, "")).lower() == "true"


def set_basic_statistics_accurate(parameters: MutableMapping[str, str], accurate: bool) -> None:
    """Claims that the basic statistics are accurate, or removes all claims of accuracy."""
    if not accurate:
        parameters.pop(COLUMN_STATS_ACCURATE, None)
        return
    _write(parameters, {**accuracy(parameters), _BASIC: "true"})


def clear_column_statistics_accurate(parameters: MutableMapping[str, str]) -> None:
    """Removes the claims about columns."""
    if COLUMN_STATS_ACCURATE in parameters:
        state = accuracy(parameters)
        state.pop(_COLUMNS, None)
        _write(parameters, state)


def add_columns_to_accuracy(parameters: MutableMapping[str, str], columns: Iterable[str]) -> None:
    """Adds the claim that the statistics of these columns are accurate."""
    state = accuracy(parameters)
    claims = state.get(_COLUMNS)
    known = dict(claims) if isinstance(claims, dict) else {}
    state[_COLUMNS] = {**dict.fromkeys(columns, "true"), **known}
    _write(parameters, state)


def accurate_columns(parameters: Mapping[str, str]) -> frozenset[str]:
    """The columns whose statistics are claimed to be accurate."""
    claims = accuracy(parameters).get(_COLUMNS)
    return frozenset(claims) if isinstance(claims, dict) else frozenset()


def with_accurate_columns(
    statistics: ColumnStatistics | None, parameters: Mapping[str, str] | None
) -> ColumnStatistics | None:
    """The statistics of those columns that the parameters claim to be accurate; None if there are none.

    A client that reads statistics together with a table or partition gets no outdated ones
    (`HMSHandler.getTableInternal` and `get_partitions_by_names`, Hive 4.0.1: `StatsSetupConst.getColumnsHavingStats`).
    The given struct is not changed.
    """
    if statistics is None or not parameters:
        return None
    claimed = accurate_columns(parameters)
    kept = [one for one in statistics.statsObj or () if one.colName in claimed]
    if not kept:
        return None
    answer = copy.copy(statistics)
    answer.statsObj = kept
    return answer


def remove_columns_from_accuracy(parameters: MutableMapping[str, str] | None, columns: Iterable[str]) -> None:
    """Removes the claims about these columns."""
    if parameters is None or COLUMN_STATS_ACCURATE not in parameters:
        return
    state = accuracy(parameters)
    claims = state.get(_COLUMNS)
    if isinstance(claims, dict):
        for column in columns:
            claims.pop(column, None)
        if not claims:
            state.pop(_COLUMNS)
    _write(parameters, state)


def without_claims_about_columns(parameters: dict[str, str], columns: Collection[str] = ()) -> dict[str, str]:
    """The parameters without claims about these columns (in lower case), or about any if none is named.

    To be used whenever statistics are deleted: a claim without statistics says that there are no rows, and a merge
    would then store its part as the whole. Returns the same object if there is no such claim.
    """
    withdrawn = [name for name in accurate_columns(parameters) if not columns or name.lower() in columns]
    if not withdrawn:
        return parameters
    after = dict(parameters)
    remove_columns_from_accuracy(after, withdrawn)
    return after


def _write(parameters: MutableMapping[str, str], state: Mapping[str, object]) -> None:
    # Jackson writes keys in alphabetical order, without blanks, and characters unescaped; an empty object is written as
    # well.
    parameters[COLUMN_STATS_ACCURATE] = json.dumps(state, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


COUNTED_FILES = "hms_cache.statistics.files"
"""The parameter in which this project's statistics job records the files whose rows it has counted, and their number
(`jobs.statistics.data_files.Mark`)."""


def withdraw_double_counted(
    before: Mapping[str, str], after: MutableMapping[str, str], *, are_files_listed: bool
) -> None:
    """Removes the claim of accuracy if an engine has added to the statistics job's number of rows, but the job may have
    counted the engine's files already because it ran between the engine's writing of files and its update.

    `are_files_listed`: the figures of the files come from a listing made after that, and were not added to earlier
    figures. If they are equal to those that the job recorded, the job had counted the files, otherwise not. An INSERT
    of Hive lists them (`BasicStatsTask`, 4.0.1); one of Trino into a table adds, and keeps the claim that it finds
    (`ThriftHiveMetastore.updateTableStatistics`, 476). The job's record is removed, so that it counts again.
    """
    noted = after.get(COUNTED_FILES)
    if noted is None or noted != before.get(COUNTED_FILES):
        return
    files, size, _, _, rows, *_ = (*noted.split(":"), *("",) * 5)
    are_added = before.get("numRows") == rows != after.get("numRows")
    if are_added and (not are_files_listed or (after.get(NUM_FILES), after.get(TOTAL_SIZE)) == (files, size)):
        del after[COUNTED_FILES]
        set_basic_statistics_accurate(after, False)


def update_directory_statistics(
    parameters: MutableMapping[str, str], directory_statistics: DirectoryStatistics | None, context: EnvironmentOptions
) -> None:
    """Sets the statistics of an existing directory (None: not read) and whether they are accurate."""
    if directory_statistics is not None:
        put_directory_statistics(parameters, directory_statistics)
    is_task = context.statistics_from == "TASK"
    set_basic_statistics_accurate(parameters, is_task)
