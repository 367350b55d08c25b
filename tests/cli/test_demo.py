"""``hms-cache demo``: the README's first command, as a person runs it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hms_cache.cli.demo.realm import TOOLS, tool


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_secure_demo_allows_and_denies(tmp_path: Path) -> None:
    pytest.importorskip("gssapi")
    if any(tool(one) is None for one in TOOLS):
        pytest.skip("needs krb5-kdc and krb5-admin-server")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java here: Spark cannot run")
    (tmp_path / "tmp").mkdir()
    shown = subprocess.run(
        [sys.executable, "-c", "from hms_cache.cli.main import main; main()", "demo", "secure"],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp"), "COLUMNS": "200", "TERM": "dumb"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr
    for line in (
        "hive.metastore.sasl.enabled",  # the error for a client without a ticket
        "1 | Ada",
        "Permission denied: user ann may not create database hive.payroll",
        "Permission denied: user ann may not create table hive.default.mine",
        "6 steps allowed, 2 denied",
    ):
        assert line in shown.stdout, shown.stdout
    assert [path.name for path in (tmp_path / "tmp").iterdir() if path.name.startswith("hms-cache-demo")] == []


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.short
@pytest.mark.timeout(600)
def test_the_demo_works_through_the_metastore_and_leaves_nothing_behind(tmp_path: Path) -> None:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java here: Spark cannot run")
    (tmp_path / "tmp").mkdir()
    shown = subprocess.run(
        [sys.executable, "-c", "from hms_cache.cli.main import main; main()", "demo"],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp"), "COLUMNS": "200", "TERM": "dumb"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr
    for line in (
        "day=2026-01-01/country=tr",  # from an insert into several partitions
        "4 | Dee | 3.20",  # the only row that passes the filter
        "nl | 3 | 22.70",
        "shop | sales | False",  # after the rename
    ):
        assert line in shown.stdout
    assert re.search(r"show databases\s+SHOW DATABASES\s+default\s", shown.stdout.replace("list", "show")), (
        "all dropped"
    )
    calls = dict(re.findall(r"([a-z_]+) +│ +(\d+)", shown.stdout))
    assert int(calls["get_table"]) > 20
    assert calls["drop_database"] == "1"
    assert int(calls["hit"]) > 0
    assert [path.name for path in (tmp_path / "tmp").iterdir() if path.name.startswith("hms-cache-demo")] == []
