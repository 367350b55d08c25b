"""The embedded database of a server that was stopped."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hmsclient.genthrift.hive_metastore.ttypes import Database

from tests.cli.test_serve import PATIENCE_S, client, serving


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.soak)])
def test_it_is_one_whole_file_once_the_server_is_stopped(tmp_path: Path, workers: str) -> None:
    """Who copies the file of a server that is stopped has all that was committed."""
    with serving("--port", "0", "--workers", workers, "--set", "admin.port=0", cwd=tmp_path) as (process, port):
        for number in range(12):
            with client(port) as one:
                one.create_database(Database(name=f"d{number}", description="", parameters={}))
                for _ in range(4):
                    one.get_database(f"d{number}")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    assert [path.name for path in tmp_path.glob("hms-cache.db*")] == ["hms-cache.db"]
