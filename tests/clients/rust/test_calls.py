"""Rust: the `hive_metastore` crate over both of its transports, and the catalog of iceberg-rust, built on it."""

from __future__ import annotations

import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

from tests.clients.conftest import ServerStarter
from tests.clients.trino.engines import Engine
from tests.downloads import FetchFailed, kept, run

SOURCES = Path(__file__).parent
FILES = ("Cargo.toml", "src/main.rs")
LIMIT_S = 1800
"""For one build: that of iceberg-rust, of 370 crates, takes ten minutes on two cores."""


def _program(name: str) -> Path:
    source = SOURCES / name

    def build(home: Path) -> None:
        work = home.parent / "work"
        for file in FILES:
            (work / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / file, work / file)
        run(["cargo", "install", "-q", "--debug", "--path", str(work), "--root", str(home)], work, LIMIT_S)

    version = zlib.crc32(b"".join((source / file).read_bytes() for file in FILES))
    try:
        return kept(f"rust-{name}-{version:08x}", build) / "bin" / name
    except FetchFailed as error:
        pytest.skip(str(error))


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("name", ["calls", "catalog"])
def test_calls_of_rust_are_answered(start_server: ServerStarter, tmp_path: Path, name: str) -> None:
    program = _program(name)
    server = start_server("sqlite")
    for transport in ("buffered", "framed"):
        (tmp_path / transport).mkdir()
        done = subprocess.run(
            [program, f"127.0.0.1:{server.port}", transport, tmp_path / transport],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "every answer is the one expected\n"), done.stderr[-5000:]
    assert Engine.refused_calls(server) == []
    assert " ERROR " not in server.log
