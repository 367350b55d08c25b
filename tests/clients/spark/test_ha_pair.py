"""PySpark with the addresses of both servers of a pair continues to work while either is killed and restarted."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hms_cache.cli.demo.ha import ROUNDS_SEEN
from hms_cache.cli.demo.pair import kill_each_in_turn, running_pair
from hms_cache.cli.demo.pair_script import TABLE
from tests.clients.spark.session import SparkProcess, remote
from tests.conftest import ServerLookup
from tests.servers import MAX_WAIT_S, metastore_client

pytestmark = [pytest.mark.spark, pytest.mark.mariadb, pytest.mark.timeout(900)]

#: Works until it is stopped, and reports each round.
_WORK = """
from pathlib import Path
from hms_cache.cli.demo.pair_script import begin, work

def rounds_until(stop, progress):
    number = 0
    while not Path(stop).exists():
        work(spark, number)
        number += 1
        with open(progress, "a") as told:
            told.write("x")
    return number

begin(spark)
"""


class Progress:
    """How many rounds Spark has done."""

    def __init__(self, path: Path, spark: SparkProcess) -> None:
        self.path = path
        self.path.touch()
        self._spark = spark
        self._pause = threading.Event()

    def wait_for_more(self) -> None:
        """Waits until some more are done, of which two began after now."""
        wanted = self.path.stat().st_size + ROUNDS_SEEN
        for _ in range(int(MAX_WAIT_S / 0.02)):
            if self.path.stat().st_size >= wanted:
                return
            assert self._spark.is_busy, "Spark gave up"
            self._pause.wait(0.02)
        raise AssertionError("Spark does not get on")


@pytest.mark.soak
@pytest.mark.short
def test_spark_goes_on_while_either_server_is_killed(
    spark: SparkProcess, database_servers: ServerLookup, tmp_path: Path
) -> None:
    databases = database_servers("mariadb")
    url = databases.initialized_database()
    with running_pair(tmp_path, url, tmp_path / "warehouse") as pair:
        spark.session(remote(tmp_path, *(server.uri for server in pair)))
        spark.python(_WORK)
        stop, progress = tmp_path / "stop", Progress(tmp_path / "progress", spark)
        spark.tell(do="python", source=f"result = rounds_until({str(stop)!r}, {str(progress.path)!r})")
        try:
            kill_each_in_turn(pair, progress.wait_for_more)
            kill_each_in_turn(pair, progress.wait_for_more)
        finally:
            stop.touch()
            rounds = spark.answer()
        assert spark.sql(f"SELECT count(*), count(DISTINCT number) FROM {TABLE}") == [[str(rounds)] * 2]
        database, table = TABLE.split(".")
        for server in pair:
            with metastore_client(server.port) as client:
                assert len(client.get_partition_names(database, table, -1)) == rounds
    databases.give_back(url)


@pytest.mark.soak
def test_the_demo_of_a_pair(tmp_path: Path, database_servers: ServerLookup) -> None:
    databases = database_servers("mariadb")
    url = databases.initialized_database()
    shown = subprocess.run(
        [sys.executable, "-c", "from hms_cache.cli.main import main; main()", "demo", "--database", url, "ha"],
        cwd=tmp_path,
        env=os.environ | {"TERM": "dumb"},
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr
    for line in ("server one killed", "server one is back", "server other killed", "server other is back", "done: "):
        assert line in shown.stdout
    databases.give_back(url)
