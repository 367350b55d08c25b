"""The tests that run on MariaDB and PostgreSQL, on newer releases of both, and on MySQL.

Debian's stable release has older ones, and no MySQL. Found so far: MySQL's own error for texts outside a column's
character set, which was an internal error; and MariaDB's refusal to combine a CAST with latin1 columns in a UNION,
which was taken for "no such row".
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.databases import ServerMissing
from tests.newer_databases import NEWER

ROOT = Path(__file__).resolve().parents[2]

MARKS = {
    "mysql": "mariadb and not soak",
    "mariadb": "mariadb and not soak",
    "postgresql": "postgresql and not long and not java and not spark",
}
"""Tests by what they are marked with: those of PostgreSQL are soaks."""

FOLDERS = {
    "statements": ("tests/store", "tests/txn", "tests/notifications"),
    "servers": ("tests/cache", "tests/consistency", "tests/lease", "tests/server", "tests/every_write", "tests/app"),
}

pytestmark = [pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("of", FOLDERS)
@pytest.mark.parametrize("kind", NEWER)
def test_the_tests_pass_there(kind: str, of: str) -> None:
    try:
        server = NEWER[kind]()
    except ServerMissing as missing:
        pytest.skip(str(missing))
    variable = f"HMS_CACHE_TEST_{'POSTGRESQL' if kind == 'postgresql' else 'MARIADB'}_URL"
    # One process: some tests make the server read-only for a time, and all use this one.
    options = ["-p", "no:cacheprovider", "--tb=short", "-n", "1", "--dist", "loadfile", "--no-loadscope-reorder"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, "-m", MARKS[kind], *FOLDERS[of]],
            cwd=ROOT,
            env={**os.environ, variable: server.admin_url.render_as_string(False), "HMS_CACHE_FIXED_EXAMPLES": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    finally:
        server.stop()
    print(done.stdout[-400:])
    assert done.returncode == 0, done.stdout[-20_000:]
