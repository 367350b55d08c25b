"""Two sessions of Hive 4.0.1 print the same through our server as through Hive 4.0.1's own metastore."""

from __future__ import annotations

import difflib
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.java_metastore import JavaMetastore
from tests.clients.hive import engine, two_sessions, two_sessions_of_types
from tests.clients.hive.test_client_tests import with_password
from tests.clients.hive.test_hive_engine import comparable, java_metastore, our_settings
from tests.clients.hive.two_sessions import FIRST
from tests.conftest import ServerLookup, ServerStarter
from tests.differential.metastores import own_database

JAVA_IS_WRONG = {
    "select min(k), max(k), min(n), max(n) from d3.acid2": ["5\t6\t50\t60"],
    "select count(*), count(n) from d3.acid2": ["2\t2"],
}
"""Hive's metastore holds statistics of before a truncation valid under the table's new name; what is right instead."""


ABORTED = "\tABORTED\tTIME\t"
"""In a row of SHOW TRANSACTIONS: those that wrote nothing are shown until housekeeping comes by, here as there."""


def without_wrong_answers(lines: list[str]) -> list[str]:
    """Without the output of those statements, and what is shown only temporarily."""
    kept, is_kept = [], True
    for line in lines:
        if line.startswith(("first: ", "second: ")):
            is_kept = line.partition(": ")[2] not in JAVA_IS_WRONG
        if is_kept and ABORTED not in line:
            kept.append(line)
    return kept


def printed(uri: str, database_url: str | None, directory: Path, statements: list[tuple[int, str]]) -> list[str]:
    """The output of the sessions, each statement preceded by its session."""
    sessions: list[engine.Session] = []
    lines: list[str] = []
    try:
        sessions += [engine.Session(uri, directory / f"session{number}", directory, database_url) for number in (1, 2)]
        for session, statement in statements:
            lines.append(f"{'first' if session == FIRST else 'second'}: {statement}")
            lines += sessions[session].execute(statement)
    finally:
        for session_process in sessions:
            session_process.close()
    return lines


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    ("statements", "with_database"),
    [
        # Without the metastore's database, in which Hive 4.0.1 requests compactions: it refuses them itself.
        pytest.param(two_sessions.statements(), False, id="changes"),
        pytest.param(two_sessions_of_types.statements(), True, id="types"),
    ],
)
def test_two_sessions_print_what_they_print_through_hives_metastore(
    start_server: ServerStarter,
    database_servers: ServerLookup,
    tmp_path: Path,
    statements: list[tuple[int, str]],
    with_database: bool,
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    server = start_server("mariadb", **our_settings(ours))
    of_ours = with_password(server.database_url) if with_database else None
    found = printed(server.uri, of_ours, ours, statements)
    (tmp_path / "ours.txt").write_text("\n".join(found))
    assert "ERROR" not in server.log
    with ExitStack() as stack:
        database_url = own_database(database_servers("mariadb"), stack)
        metastore: JavaMetastore = java_metastore(theirs, database_url)
        address = metastore.start()
        stack.callback(metastore.stop)
        expected = printed(f"thrift://{address}", database_url if with_database else None, theirs, statements)
    (tmp_path / "theirs.txt").write_text("\n".join(expected))
    assert not [line for line in expected if "TezTask" in line], "no statement with a task ran"
    assert sum("FAILED" in line for line in expected) < 20, "Hive itself did not work"
    sent = {statement for _, statement in statements}
    for statement, answer in JAVA_IS_WRONG.items() if sent.issuperset(JAVA_IS_WRONG) else ():
        place = next(number for number, line in enumerate(found) if line.endswith(f": {statement}"))
        assert found[place + 1 : place + 1 + len(answer)] == answer
    pair = [without_wrong_answers(comparable(lines)) for lines in (expected, found)]
    differences = list(difflib.unified_diff(*pair, "Hive", "ours", n=6, lineterm=""))  # type: ignore[call-arg]
    assert not differences, "\n".join(differences)
