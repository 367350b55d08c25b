"""Hive's own files of statements print the same through our server as through Hive 4.0.1's own metastore."""

from __future__ import annotations

import difflib
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clients.hive import engine, query_files
from tests.clients.hive.test_hive_engine import comparable, java_metastore, our_settings
from tests.conftest import ServerLookup, ServerStarter
from tests.differential.metastores import own_database

_STATEMENT_LIMIT_S = 300
"""For a statement in which Hive's console waits for more."""

_IN_ANY_ORDER = re.compile(r"(select|from|with|dfs|show functions)\b", re.IGNORECASE)

_CHANGING = (
    (re.compile(r"\broot_\d+_[0-9a-f-]{36}:\d+"), "QUERY"),
    (re.compile(r"\b(results-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"hive(-staging_hive)?_\d{4}-\d\d-\d\d_[\d_-]+"), "STAGING"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?"), "DATE"),
    (re.compile(r"lastUpdateTime:\d+"), "lastUpdateTime"),
    (re.compile(r"\b(task|attempt)_\d+"), r"\1_TIME"),
    # Each side has a directory of its own, and names of different length in its statements.
    (re.compile(r"\b([Ll]ine \d+):\d+"), r"\1:COLUMN"),
)
_PARAMETERS = re.compile(r"parameters:\{((?:[^{}]|\{[^{}]*\})*)\}")

KNOWN = {
    "annotate_stats_part": "`<>` selects the default partition where Hive's database compares its name",
    "create_or_replace_view": "Hive's metastore fails on partitions of a view",
    "load_fs": "that a new table has no rows is not believed of a place that the server may not list",
}
"""Files of which the metastores make something else, and why."""


class Side:
    """Hive's engine with one metastore; a new process if one has ended."""

    def __init__(self, uri: str, directory: Path) -> None:
        self._uri = uri
        self._directory = directory
        self._number = 0
        self._session: engine.Session | None = None
        directory.mkdir(parents=True, exist_ok=True)
        query_files.copy_data(directory)
        for statement in query_files.PREPARATION:
            self._execute(statement)

    def run(self, name: str) -> list[str]:
        """The output of a file's statements, each below its statement; nothing of it remains afterwards."""
        lines: list[str] = []
        for statement in query_files.statements(name):
            lines.append(f"> {statement}")
            try:
                found = [_steady(line) for line in self._execute(statement)]
            except RuntimeError:
                lines.append("The session ended.")
                break
            lines += sorted(found) if _IN_ANY_ORDER.match(statement) else found
        self._clean()
        return comparable(lines)

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _execute(self, statement: str) -> list[str]:
        if self._session is None:
            self._number += 1
            own = self._directory / f"session{self._number}"
            self._session = engine.Session(self._uri, own, self._directory, limit_s=10_000)
        watchdog = threading.Timer(_STATEMENT_LIMIT_S, self._session.close)
        watchdog.start()
        try:
            return self._session.execute(statement)
        except (RuntimeError, OSError, ValueError):
            self.close()
            raise RuntimeError("The session ended.") from None
        finally:
            watchdog.cancel()

    def _clean(self) -> None:
        for statement in ("reset", "use default"):
            self._execute(statement)
        for database in self._execute("show databases"):
            if database not in ("default", "OK"):
                self._execute(f"drop database if exists `{database}` cascade")
        for kind in ("materialized view", "view", "table"):
            for table in self._execute(f"show {kind}s"):
                if table not in (*query_files.KEPT, "OK"):
                    self._execute(f"drop {kind} if exists `{table}`")


def _steady(line: str) -> str:
    for pattern, word in _CHANGING:
        line = pattern.sub(word, line)
    # Java's maps have no order.
    return _PARAMETERS.sub(lambda found: f"parameters:{{{', '.join(sorted(found.group(1).split(', ')))}}}", line)


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("family", query_files.FAMILIES)
def test_every_file_prints_what_it_prints_through_hives_metastore(
    start_server: ServerStarter, database_servers: ServerLookup, tmp_path: Path, family: str
) -> None:
    server = start_server("mariadb", **our_settings(tmp_path / "ours"))
    printed: dict[str, dict[str, list[str]]] = {"ours": {}, "theirs": {}}
    with ExitStack() as stack:
        java = java_metastore(tmp_path / "theirs", own_database(database_servers("mariadb"), stack))
        stack.callback(java.stop)
        uris = {"ours": server.uri, "theirs": f"thrift://{java.start()}"}

        def run(side: str) -> None:
            one = Side(uris[side], tmp_path / side)
            try:
                for name in query_files.names(family):
                    printed[side][name] = one.run(name)
            finally:
                one.close()

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(run, uris))
    differences: dict[str, list[str]] = {}
    for name, expected in printed["theirs"].items():
        found = list(difflib.unified_diff(expected, printed["ours"][name], "Hive", "ours", n=2, lineterm=""))
        if found:
            differences[name] = found
    assert sum(map(len, printed["theirs"].values())) > 300, "Hive itself did not work"
    unexpected = {name: lines for name, lines in differences.items() if name not in KNOWN}
    assert not unexpected, "\n".join(line for name, lines in unexpected.items() for line in (name, *lines))
