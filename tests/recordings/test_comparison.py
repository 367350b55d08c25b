"""The comparison of recordings detects what it is for: other answers, other rows, confused ids."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text

from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import METHODS
from tests.databases import SqliteFiles
from tests.recordings import rows
from tests.recordings.compare import with_recorded_answers
from tests.recordings.ids import Ids
from tests.recordings.metastores import our_metastore
from tests.recordings.recording import DIRECTORY, RecordedCall, read_recording
from tests.recordings.replay import Replay, read_arguments
from tests.recordings.spellings import encoded


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> tuple[Engine, str]:
    """The result of a recording's beginning, in which a table is created and altered; the root of its files."""
    engine = create_engine(SqliteFiles(tmp_path_factory.mktemp("rows")).initialized_database())
    with our_metastore(str(engine.url)) as metastore, Replay(metastore) as replay:
        for call in read_recording(DIRECTORY / "pyiceberg.xz")[:60]:
            replay.exchange(call)
    return engine, str(metastore.root)


@pytest.mark.parametrize(
    ("table", "statement"),
    [
        ("TABLE_PARAMS", "UPDATE TABLE_PARAMS SET PARAM_VALUE = 'x' WHERE PARAM_KEY = 'metadata_location'"),
        ("TBLS", "UPDATE TBLS SET OWNER = 'x'"),
        ("SDS", "UPDATE SDS SET LOCATION = 'x'"),
        ("COLUMNS_V2", "DELETE FROM COLUMNS_V2 WHERE INTEGER_IDX = 1"),
        ("DATABASE_PARAMS", "INSERT INTO DATABASE_PARAMS SELECT DB_ID, 'k', 'v' FROM DBS WHERE NAME = 'shop'"),
        ("SERDES", "UPDATE SERDES SET SLIB = 'x'"),
    ],
)
def test_one_other_row_is_found(database: tuple[Engine, str], table: str, statement: str) -> None:
    engine, root = database
    before = rows.rows(engine, root)
    assert before["TBLS"] and "nobody" not in repr(before["SDS"])
    with engine.begin() as connection:
        assert connection.execute(text(statement)).rowcount > 0
    after = rows.rows(engine, root)
    assert [line.partition(":")[0] for line in rows.differences(before, after)] == [table]


def test_one_other_answer_is_found(tmp_path: Path) -> None:
    calls = read_recording(DIRECTORY / "pyiceberg.xz")
    place = next(number for number, call in enumerate(calls) if call.method == "get_table" and b"shop" in call.reply)
    tampered = list(calls)
    tampered[place] = replace(calls[place], reply=calls[place].reply.replace(b"shop", b"ship", 1))
    with our_metastore(SqliteFiles(tmp_path).initialized_database()) as metastore:
        report = with_recorded_answers(tampered[: place + 1], metastore)
    assert len(report.differences) == 1 and "ship" in report.differences[0]


def answered(lock: int) -> ttypes.LockResponse:
    return ttypes.LockResponse(lockid=lock, state=ttypes.LockState.ACQUIRED)


def test_ids_stand_for_one_another() -> None:
    ids = Ids()
    assert ids.learn(answered(1), answered(7)) == []
    assert ids.learn(answered(2), answered(1)) == []
    assert ids.learn(answered(1), answered(7)) == []
    assert ids.differing == {"lock": {1: 7, 2: 1}}
    request, is_changed = ids.translated(ttypes.UnlockRequest(lockid=2))
    assert (request.lockid, is_changed) == (1, True)
    request, is_changed = ids.translated(ttypes.UnlockRequest(lockid=9))
    assert (request.lockid, is_changed) == (9, False)


@pytest.mark.parametrize(("recorded", "found"), [(1, 8), (2, 7)], ids=["two for one", "one for two"])
def test_mixed_up_ids_are_faults(recorded: int, found: int) -> None:
    ids = Ids()
    assert ids.learn(answered(1), answered(7)) == []
    assert ids.learn(answered(recorded), answered(found)) != []


def test_requests_with_the_same_ids_are_sent_byte_for_byte() -> None:
    arguments = METHODS["unlock"].args_class(rqst=ttypes.UnlockRequest(lockid=3))
    call = RecordedCall(1, encoded("unlock", 1, 5, arguments), b"")
    assert read_arguments(call) == arguments
    assert Ids().translated(read_arguments(call))[1] is False
