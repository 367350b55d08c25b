"""Records what Hive 4.0.1's engine sends for the statements of two sessions.

python -m tests.recordings.record_hive tests/recordings/hive-4.0.1.jsonl.gz
"""

from __future__ import annotations

import shutil
import socket
import sys
import tempfile
from pathlib import Path

from tests.clients.hive import engine
from tests.clients.hive.two_sessions import statements
from tests.databases import SqliteFiles
from tests.recordings.recording import PLACE, write_recording
from tests.recordings.tap import Tap
from tests.servers import server_process


def directory_of_fixed_length() -> Path:
    """A new directory whose name is as long as `PLACE`."""
    base = tempfile.mkdtemp(prefix="h")
    path = Path(base.ljust(len(PLACE), "x"))
    assert len(str(path)) == len(PLACE), f"{base} is too long"
    Path(base).rename(path)
    return path


def main(target: Path) -> None:
    root = directory_of_fixed_length()
    with tempfile.TemporaryDirectory() as other:
        url = SqliteFiles(Path(other)).initialized_database()
        settings = {"warehouse.directory": f"file:{root}/wh", "warehouse.external_directory": f"file:{root}/ext"}
        with server_process(Path(other) / "server", url, settings) as server:
            host, _, port = server.uri.removeprefix("thrift://").rpartition(":")
            with Tap(host, int(port)) as tap:
                sessions = [engine.Session(tap.uri, Path(other) / f"session{each}", root) for each in (1, 2)]
                try:
                    for session, statement in statements():
                        for line in [statement, *sessions[session].execute(statement)]:
                            print(line[:200], flush=True)
                finally:
                    for each in sessions:
                        each.close()
                names = {socket.gethostname(), socket.getfqdn(), socket.gethostbyname(socket.gethostname())}
                write_recording(target, tap.calls, str(root), sorted(names - {"localhost"}, key=len, reverse=True))
    shutil.rmtree(root)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
