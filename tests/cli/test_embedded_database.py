"""The embedded database of a server that was stopped."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hmsclient.genthrift.hive_metastore.ttypes import Database
from thrift.Thrift import TApplicationException

from tests.cli.test_serve import MAX_WAIT_S, client, serving


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.soak)])
def test_it_is_one_whole_file_once_the_server_is_stopped(tmp_path: Path, workers: str) -> None:
    """A copy of the file of a stopped server contains everything that was committed."""
    with serving("--port", "0", "--workers", workers, "--set", "admin.port=0", cwd=tmp_path) as (process, port):
        for number in range(12):
            with client(port) as one:
                one.create_database(Database(name=f"d{number}", description="", parameters={}))
                for _ in range(4):
                    one.get_database(f"d{number}")
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_S) == 0
    assert [path.name for path in tmp_path.glob("hms-cache.db*")] == ["hms-cache.db"]


def test_a_file_that_is_gone_for_a_while_is_an_outage(tmp_path: Path) -> None:
    """As with its file system. It is not replaced by an empty database, whose opening would delete the journal beside
    it."""
    file, elsewhere = tmp_path / "hms-cache.db", tmp_path / "elsewhere.db"

    def made(name: str) -> Database:
        return Database(name=name, description="", parameters={})

    with serving("--port", "0", "--set", "admin.port=0", cwd=tmp_path) as (_, port), client(port) as one:
        one.create_database(made("before"))
        file.rename(elsewhere)
        for _ in range(2):
            with pytest.raises(TApplicationException, match="unable to open database file"):
                one.get_database("before")
            with pytest.raises(TApplicationException) as refused:
                one.create_database(made("meanwhile"))
            assert "Internal error" not in str(refused.value)
        assert not file.exists()
        elsewhere.rename(file)
        one.create_database(made("after"))
        assert set(one.get_all_databases()) == {"default", "before", "after"}
