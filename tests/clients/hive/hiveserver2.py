"""Hive 4.0.1's HiveServer2 with its JDBC driver, from Maven Central, in one process."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tests.clients.hive import engine
from tests.downloads import artifact

PROGRAM = Path(__file__).parent / "java" / "JdbcStatements.java"
LIMIT_S = 1500

DUMMY_TRANSACTIONS = {
    "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DummyTxnManager",
    "hive.support.concurrency": "false",
}

_CHANGING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\b1\d{9}(\d{3})?\b"), "TIME"),
    (re.compile(r"\b(pk|fk|uk|nn|dc|cc)_-?\d+_\d{13}_\d+\b"), r"\1_NAME"),
    (re.compile(r"\b(\w{3}) \w{3} \d\d [\d:]{8} \w+ \d{4}"), "DATE"),
    (re.compile(r"TApplicationException: .*-?128"), "TApplicationException: CUT"),  # after half a message
    (re.compile(r"queryId=\S+"), "QUERY"),
    (re.compile(r"\b(hive|root)_\d{14}_\S+"), "QUERY"),
    (re.compile(r"(application|vertex|dag|task)_\d{13}\S*"), "TASK"),
    (re.compile(r'(current-snapshot-timestamp-ms|timestamp-ms|"?total-files-size"?|totalSize)(\W+)\d+'), r"\1\2N"),
    (re.compile(r"(added-files-size|total-files-size|removed-files-size)(\W+)\d+"), r"\1\2N"),
)


def driver() -> Path:
    """Returns the JDBC driver's jar. Maven downloads it at the first use. Raises `FetchFailed`."""
    return artifact(f"org.apache.hive:hive-jdbc:{engine.VERSION}")


def run(lines: str, uri: str, directory: Path, properties: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """Returns what the program prints for the lines (`JdbcStatements`), without what differs each time. Raises
    RuntimeError if it does not reach the last one."""
    directory.mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    more = {
        "hive.server2.thrift.bind.host": "127.0.0.1",
        "hive.server2.thrift.port": port,
        "hive.server2.enable.doAs": "false",
        "hive.server2.webui.port": "0",
        "hive.server2.tez.initialize.default.sessions": "false",
        "hive.server2.logging.operation.log.location": str(directory / "operations"),
        "hive.scheduled.queries.executor.enabled": "false",
        **properties,
    }
    # The command line of the engine creates its settings files.
    engine.command_line(uri, directory / "server", directory, more=more)
    (directory / "lines.txt").write_text(lines.replace("{directory}", str(directory)))
    command = engine.java(directory / "server" / "conf", str(PROGRAM))
    place = command.index("-cp") + 1
    command[place] = f"{command[place]}:{driver()}"
    output = directory / "output.txt"
    with (directory / "program.log").open("w") as log:
        subprocess.run(
            [*command, port, str(directory / "lines.txt"), str(output)],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            timeout=LIMIT_S,
            check=False,
        )
    printed = output.read_text().splitlines() if output.exists() else []
    if not printed or printed[-1] != "> end":
        log_text = (directory / "program.log").read_text(errors="replace")
        raise RuntimeError("HiveServer2 did not get to the end:\n" + "\n".join([*printed[-5:], log_text[-4000:]]))
    return [_steady(line.replace(str(directory), "DIRECTORY")) for line in printed]


def _steady(line: str) -> str:
    for pattern, word in _CHANGING:
        line = pattern.sub(word, line)
    return line.rstrip()
