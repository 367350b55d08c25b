"""iceberg-go's own tests of its Hive catalog pass with our server, and commits of several of its writers are all kept.

Its client, generated from Hive's IDL by Thrift for Go, has no null: it sends empty strings, lists and maps instead,
also in its requests for locks, and reads null as empty.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zlib
from functools import partial
from pathlib import Path

import pytest

from tests.clients.trino.engines import Engine
from tests.conftest import ServerLookup
from tests.downloads import FetchFailed, kept, run
from tests.servers import server_process

VERSION = "0.7.0"
OURS = Path(__file__).parent / "go" / "commits_test.go"
TESTS = {"TestHiveCatalogConformance": 19, "TestHiveIntegration.*": 14, "TestCommitsOfSeveralWriters": 1}
"""How many tests of each name pass, with their parts."""

LIMIT_S = 1200
"""For the compiler: it builds the libraries of three clouds' stores."""


def _go() -> str | None:
    return shutil.which("go", path=f"{os.environ.get('PATH', os.defpath)}:/usr/local/go/bin")


def _build(go: str, program: Path) -> None:
    """The tests of the package, with ours among them, as a program."""
    work = program.parent / "work"
    work.mkdir()
    (work / "go.mod").write_text("module work\n")
    told = work / "told.json"
    fetch = 'exec "$1" mod download -json "github.com/apache/iceberg-go@v$2" > "$3"'
    run(["sh", "-c", fetch, "sh", go, VERSION, str(told)], work)
    source = work / "source"
    shutil.copytree(json.loads(told.read_text())["Dir"], source, copy_function=shutil.copyfile)
    for folder in [source, *(path for path in source.rglob("*") if path.is_dir())]:
        folder.chmod(0o755)
    shutil.copyfile(OURS, source / "catalog" / "hive" / OURS.name)
    run([go, "test", "-c", "-tags", "integration", "-o", str(program), "./catalog/hive"], source, LIMIT_S)


def _fetch(go: str) -> Path:
    try:
        return kept(f"iceberg-go-{VERSION}/hive-{zlib.crc32(OURS.read_bytes()):08x}.test", partial(_build, go))
    except FetchFailed as error:
        pytest.skip(str(error))


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def test_iceberg_gos_catalog_tests_pass(database_servers: ServerLookup, tmp_path: Path, kind: str) -> None:
    go = _go()
    if go is None:
        pytest.skip("needs Go")
    program = _fetch(go)
    databases = database_servers(kind)
    url = databases.initialized_database()
    # It creates its own directories; one of its tests gives a database a location of its own.
    settings: dict[str, object] = {"warehouse.directory": f"file:{tmp_path}/warehouse", "warehouse.files": "leave"}
    with server_process(tmp_path / "server", url, settings) as server:
        done = subprocess.run(
            [program, "-test.v", f"-test.run=^({'|'.join(TESTS)})$"],
            cwd=tmp_path,
            env=os.environ | {"TEST_HIVE_URI": server.uri, "TEST_TABLE_LOCATION": f"file:{tmp_path}/warehouse"},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert Engine.refused_calls(server) == []
    databases.give_back(url)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-5000:]
    passed = re.findall(r"^ *--- PASS: (\S+) ", done.stdout, re.MULTILINE)
    assert {name: sum(bool(re.match(f"{name}(/|$)", one)) for one in passed) for name in TESTS} == TESTS
    assert " ERROR " not in server.log
