"""What Hive 4.0.1's engine sent, sent again: with the cache every call answers as without it."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from hms_cache.app.service import Service
from hms_cache.config import load
from hms_cache.wire import METHODS
from tests.recordings.record_hive import directory_of_fixed_length
from tests.recordings.recording import RecordedCall, read_recording
from tests.recordings.replay import Replay

RECORDING = Path(__file__).with_name("hive-4.0.1.jsonl.gz")


@pytest.fixture(scope="module")
def calls() -> list[RecordedCall]:
    return read_recording(RECORDING)


@pytest.fixture
def directories() -> Iterator[tuple[Path, Path]]:
    made = directory_of_fixed_length(), directory_of_fixed_length()
    yield made
    for directory in made:
        shutil.rmtree(directory)


def test_the_recording_has_what_engines_do(calls: list[RecordedCall]) -> None:
    methods = Counter(call.method for call in calls)
    assert {
        "alter_table_req",
        "alter_partitions_req",
        "set_aggr_stats_for",
        "get_table_req",
        "get_table_statistics_req",
        "get_aggr_stats_for",
        "get_valid_write_ids",
        "allocate_table_write_ids",
        "open_txns",
        "lock",
        "commit_txn",
        "truncate_table_req",
        "rename_partition_req",
        "update_transaction_statistics",
        "get_latest_txnid_in_conflict",
        "add_dynamic_partitions",
        "get_materialization_invalidation_info",
    } <= set(methods), sorted(methods)
    assert len({call.connection for call in calls}) >= 2


def altered(call: RecordedCall, directory: str) -> tuple[str, int] | None:
    """The table and write id of a call that alters one with a writer's list; None for other calls."""
    if call.method != "alter_table_req":
        return None
    protocol = TBinaryProtocol(TMemoryBuffer(call.at(directory)))
    protocol.readMessageBegin()
    arguments = METHODS[call.method].args_class()
    arguments.read(protocol)
    request = arguments.req
    assert request.writeId in (None, -1), "Hive 4.0.1 leaves it unset"
    if not request.validWriteIdList or (request.table.writeId or -1) < 1:
        return None
    return request.table.tableName, request.table.writeId


def test_answers_are_those_of_a_server_without_a_cache(
    calls: list[RecordedCall], directories: tuple[Path, Path], tmp_path: Path
) -> None:
    with ExitStack() as stack:
        replays = []
        for number, (directory, is_cached) in enumerate(zip(directories, (True, False), strict=True)):
            given = {
                "server.port": 0,
                "admin.port": 0,
                "cache.enabled": is_cached,
                "database.url": f"sqlite:///{tmp_path / f'{number}.db'}",
                "warehouse.directory": f"file:{directory}/wh",
                "warehouse.external_directory": f"file:{directory}/ext",
            }
            service = Service(load(command_line=given, environment={}))
            uri = service.start()
            stack.callback(service.stop)
            replays.append(stack.enter_context(Replay(uri, str(directory))))
        cached, plain = replays
        database = stack.enter_context(closing(sqlite3.connect(tmp_path / "0.db")))
        wrong, altered_tables = [], 0
        for number, call in enumerate(calls):
            expected, found = plain.send(call), cached.send(call)
            if found != expected:
                wrong.append(f"call {number}, {call.method}:\n  without: {expected[:1500]}\n  with:    {found[:1500]}")
            elif "Internal error" in found:
                wrong.append(f"call {number}, {call.method}: {found[:1500]}")
            change = altered(call, str(directories[0]))
            if change is not None:
                stored = database.execute("SELECT MAX(WRITE_ID) FROM TBLS WHERE TBL_NAME = ?", change[:1]).fetchone()[0]
                altered_tables += 1
                if stored != change[1]:
                    wrong.append(f"call {number}: {change[0]} has the write id {stored}, not {change[1]}")
    assert altered_tables > 20
    assert not wrong, f"{len(wrong)} of {len(calls)} differ\n" + "\n".join(wrong[:5])
