"""Ours answers what real clients sent as Hive 4.0.1 did, except for the differences in `tests.recordings.answers`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import create_engine, func, select

from hms_cache.store.schema import TBLS
from tests.databases import SqliteFiles
from tests.recordings.compare import Report, with_recorded_answers
from tests.recordings.metastores import our_metastore
from tests.recordings.recording import DIRECTORY, RecordedCall, read_recording
from tests.recordings.replay import Replay, read_arguments

CLIENTS = sorted(path.stem for path in DIRECTORY.glob("*.xz"))
QUICK = ("hive-compaction", "iceberg", "pyiceberg")
#: The required contents of each recording: a new one that lacks them must not be accepted.
METHODS_NEEDED: dict[str, set[str]] = {
    "hive": {
        *("alter_table_req", "alter_partitions_req", "set_aggr_stats_for", "get_table_req", "get_table_statistics_req"),
        *("get_aggr_stats_for", "get_partitions_statistics_req", "get_valid_write_ids", "allocate_table_write_ids"),
        *("open_txns", "lock", "commit_txn", "truncate_table_req", "rename_partition_req"),
        *("update_transaction_statistics", "get_latest_txnid_in_conflict", "add_dynamic_partitions"),
        *("get_materialization_invalidation_info", "exchange_partitions", "drop_constraint", "get_check_constraints"),
    },
    "hive-compaction": {
        *("compact2", "find_next_compact2", "update_compactor_state", "set_hadoop_jobid", "mark_compacted"),
        "show_compact",
    },
    "hive-replication": {"repl_tbl_writeid_state", "get_current_notificationEventId", "get_next_notification"},
    "iceberg": {"lock", "unlock", "alter_table_with_environment_context", "drop_table_with_environment_context"},
    "pyiceberg": {"lock", "unlock", "get_table", "get_table_objects_by_name"},
    "spark": {"add_partitions_req", "get_partitions_by_filter", "rename_partition", "create_function", "shutdown"},
    "spark-4.0.1": {"get_table_req", "add_partitions_req", "get_partitions_by_filter_req", "rename_partition_req"},
    "trino": {
        *("allocate_table_write_ids", "commit_txn", "update_partition_column_statistics", "lock", "list_privileges"),
        *("update_table_column_statistics", "get_partitions_by_names", "create_function", "grant_revoke_privileges"),
    },
}


def test_each_recording_has_what_its_client_does() -> None:
    assert sorted(METHODS_NEEDED) == CLIENTS
    for client, needed in METHODS_NEEDED.items():
        methods = {call.method for call in read_recording(DIRECTORY / f"{client}.xz")}
        assert needed <= methods, f"{client} lacks {needed - methods}"


def replayed(client: str, directory: Path, *, is_cached: bool) -> Report:
    url = SqliteFiles(directory).initialized_database()
    with our_metastore(url, is_cached=is_cached) as metastore:
        return with_recorded_answers(read_recording(DIRECTORY / f"{client}.xz"), metastore)


@pytest.mark.parametrize(
    ("client", "is_cached"),
    [
        pytest.param(
            client,
            is_cached,
            id=f"{client}, {'cache' if is_cached else 'no cache'}",
            marks=[]
            if is_cached and client in QUICK
            else [pytest.mark.soak, *([] if is_cached else [pytest.mark.long])],
        )
        for client in CLIENTS
        for is_cached in (True, False)
    ],
)
def test_answers_are_those_of_hive(client: str, is_cached: bool, tmp_path: Path) -> None:
    report = replayed(client, tmp_path, is_cached=is_cached)
    assert not report.differences, str(report)


def altered(call: RecordedCall) -> tuple[str, int] | None:
    """The table and write id of a call that alters one with a writer's list; None for other calls."""
    if call.method != "alter_table_req":
        return None
    request = read_arguments(call).req
    assert request.writeId in (None, -1), "Hive 4.0.1 leaves it unset"
    if not request.validWriteIdList or (request.table.writeId or -1) < 1:
        return None
    return request.table.tableName, request.table.writeId


def _until_altered(calls: Sequence[RecordedCall], wanted: int) -> Sequence[RecordedCall]:
    """The calls until this many tables were altered by writers: the rest is for the soaks."""
    places = [number for number, call in enumerate(calls) if altered(call) is not None]
    return calls[: places[wanted - 1] + 1]


def test_a_writers_alter_moves_the_tables_write_id(tmp_path: Path) -> None:
    url = SqliteFiles(tmp_path).initialized_database()
    engine = create_engine(url)
    wrong, seen = [], 0
    with our_metastore(url) as metastore, Replay(metastore) as replay:
        for call in _until_altered(read_recording(DIRECTORY / "hive.xz"), 12):
            replay.exchange(call)
            change = altered(call) if call.request else None
            if change is not None:
                seen += 1
                with engine.connect() as connection:
                    stored = connection.execute(
                        select(func.max(TBLS.c.WRITE_ID)).where(TBLS.c.TBL_NAME == change[0])
                    ).scalar_one()
                if stored != change[1]:
                    wrong.append(f"{change[0]} has the write id {stored}, not {change[1]}")
    engine.dispose()
    assert seen == 12
    assert not wrong, "\n".join(wrong)
