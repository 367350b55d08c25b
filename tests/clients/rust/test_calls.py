"""The `hive_metastore` crate, the client of iceberg-rust: its calls and answers, over both of its transports."""

from __future__ import annotations

import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

from tests.clients.conftest import ServerStarter
from tests.clients.trino.conftest import Engine
from tests.downloads import FetchFailed, kept, run

SOURCE = Path(__file__).parent
FILES = ("Cargo.toml", "src/main.rs")
LIMIT_S = 1200


def _build(home: Path) -> None:
    work = home.parent / "work"
    for name in FILES:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SOURCE / name, work / name)
    run(["cargo", "install", "-q", "--debug", "--path", str(work), "--root", str(home)], work, LIMIT_S)


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(2400)
def test_calls_of_rust_are_answered(start_server: ServerStarter, tmp_path: Path) -> None:
    version = zlib.crc32(b"".join((SOURCE / name).read_bytes() for name in FILES))
    try:
        program = kept(f"rust-calls-{version:08x}", _build) / "bin" / "calls"
    except FetchFailed as error:
        pytest.skip(str(error))
    server = start_server("sqlite")
    for transport in ("buffered", "framed"):
        done = subprocess.run(
            [program, f"127.0.0.1:{server.port}", transport],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "every answer is the one expected\n"), done.stderr[-5000:]
    assert Engine.refused_calls(server) == []
    assert " ERROR " not in server.log
