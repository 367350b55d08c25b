"""HiveServer2 4.0.1 and its JDBC driver answer the same on two servers of ours as on Hive 4.0.1's metastore."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clients.hive import hiveserver2
from tests.clients.hive.test_hive_engine import java_metastore, our_settings
from tests.conftest import ServerLookup, ServerStarter
from tests.differential.metastores import own_database

CALLS = Path(__file__).with_name("jdbc_calls.txt").read_text()


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "properties",
    [pytest.param({}, id="transactions"), pytest.param(hiveserver2.DUMMY_TRANSACTIONS, id="no transactions")],
)
def test_jdbc_answers_as_through_hives_metastore(
    properties: Mapping[str, str], start_server: ServerStarter, database_servers: ServerLookup, tmp_path: Path
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    server = start_server("mariadb", "first", **our_settings(ours))
    other = start_server(server.database_url, "second", **our_settings(ours))
    # Its sessions choose one of them at random.
    printed = hiveserver2.run(CALLS, f"{server.uri},{other.uri}", ours, properties)
    (tmp_path / "ours.txt").write_text("\n".join(printed))
    assert "ERROR" not in server.log + other.log
    with ExitStack() as stack:
        metastore = java_metastore(theirs, own_database(database_servers("mariadb"), stack))
        address = metastore.start()
        stack.callback(metastore.stop)
        expected = hiveserver2.run(CALLS, f"thrift://{address}", theirs, properties)
    (tmp_path / "theirs.txt").write_text("\n".join(expected))
    assert len(expected) > 400, "HiveServer2 did not work"
    differences = list(difflib.unified_diff(expected, printed, "Hive", "ours", n=3, lineterm=""))
    assert not differences, "\n".join(differences)
