"""The program as its users run it: a process, its output, its exit status."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.prepared.commands import run_command


def hms_cache(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HMS_CACHE")}
    return run_command(arguments, cwd, kept | environment)


def test_version_and_help_need_no_heavy_module(tmp_path: Path) -> None:
    assert hms_cache("version", cwd=tmp_path).stdout.startswith("hms-cache ")
    helped = hms_cache("--help", cwd=tmp_path)
    assert helped.returncode == 0
    for command in ("serve", "schema", "config", "demo", "version"):
        assert command in helped.stdout
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, hms_cache.cli.main; print({m.split('.')[0] for m in sys.modules})",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    for heavy in ("sqlalchemy", "pydantic", "numpy", "thrift", "pyspark", "rich", "starlette"):
        assert f"'{heavy}'" not in loaded


def test_config_print_shows_each_value_with_its_origin(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[cache]\npeers = 'hive4'\n")
    site = tmp_path / "hive-site.xml"
    site.write_text(
        "<configuration><property><name>javax.jdo.option.ConnectionPassword</name><value>hush</value></property>"
        "</configuration>"
    )
    printed = hms_cache(
        *("config", "print", "--json", "--config", "c.toml", "--site", "hive-site.xml"),
        *("--set", "events.poll_interval_s=250ms", "--database", "mysql://u@db/hive"),
        cwd=tmp_path,
        HMS_CACHE__SERVER__PORT="0",
    )
    assert printed.returncode == 0, printed.stderr
    shown = json.loads(printed.stdout)
    assert shown["cache.peers"] == {"value": "hive4", "origin": "c.toml"}
    assert shown["events.poll_interval_s"] == {"value": "0.25", "origin": "command line"}
    assert shown["server.port"] == {"value": "0", "origin": "HMS_CACHE__SERVER__PORT"}
    assert shown["database.url"] == {"value": "mysql+pymysql://u@db/hive", "origin": "command line"}
    assert shown["database.password"]["value"] == "***"
    assert shown["server.host"] == {"value": "127.0.0.1", "origin": "default"}
    assert "hush" not in printed.stdout + printed.stderr


def test_config_print_changed_leaves_defaults_out(tmp_path: Path) -> None:
    printed = hms_cache("config", "print", "--changed", "--set", "log.level=debug", cwd=tmp_path)
    assert printed.stdout.split() == ["log.level", "debug", "command", "line"]


def test_config_check_tells_all_problems_and_exits_2(tmp_path: Path) -> None:
    checked = hms_cache("config", "check", "--set", "server.prot=1", "--set", "cache.peers=hive2", cwd=tmp_path)
    assert checked.returncode == 2
    assert "did you mean server.port?" in checked.stderr
    assert "cache.peers (command line)" in checked.stderr
    assert "Traceback" not in checked.stderr


def test_a_sound_configuration_exits_0(tmp_path: Path) -> None:
    checked = hms_cache("config", "check", "--set", "log.level=debug", cwd=tmp_path)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "1 settings differ" in checked.stdout


@pytest.mark.parametrize("arguments", [("--set", "nonsense"), ("--config", "absent.toml"), ("--no-such-option",)])
def test_a_bad_command_line_exits_2(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert hms_cache("config", "check", *arguments, cwd=tmp_path).returncode == 2


def test_an_embedded_schema_is_made_once_and_found_sound(tmp_path: Path) -> None:
    missing = hms_cache("schema", "check", cwd=tmp_path)
    assert missing.returncode == 1
    assert "hms-cache schema init --database" in missing.stderr
    assert list(tmp_path.iterdir()) == []
    assert "created the schema: version 4.0.0" in hms_cache("schema", "init", cwd=tmp_path).stdout
    assert "already" in hms_cache("schema", "init", cwd=tmp_path).stdout
    sound = hms_cache("schema", "check", cwd=tmp_path)
    assert (sound.returncode, sound.stdout) == (0, "the schema can be served: version 4.0.0, 0 differences from 4.0\n")


@pytest.mark.soak
def test_missing_indexes_are_named_and_made(tmp_path: Path) -> None:
    hms_cache("schema", "init", cwd=tmp_path)
    with closing(sqlite3.connect(tmp_path / "hms-cache.db")) as connection:
        connection.execute("DROP INDEX IDX_SKEWED_VALUES_STRING_LIST_ID_EID")
    told = hms_cache("check", cwd=tmp_path).stdout
    assert "1 foreign keys have no index, the first: SKEWED_VALUES (STRING_LIST_ID_EID)" in told
    assert "hms-cache schema index" in told
    made = hms_cache("schema", "index", cwd=tmp_path)
    assert (made.returncode, made.stdout) == (0, "created an index on SKEWED_VALUES (STRING_LIST_ID_EID)\n")
    assert hms_cache("schema", "index", cwd=tmp_path).stdout == "each foreign key has an index\n"


def test_a_database_that_does_not_answer_is_told_without_a_trace(tmp_path: Path) -> None:
    requested = hms_cache("schema", "check", "--database", "mysql://u:hush@127.0.0.1:1/hive", cwd=tmp_path)
    assert requested.returncode == 1
    assert requested.stderr.startswith("hms-cache: ")
    assert "Traceback" not in requested.stderr
    assert "hush" not in requested.stderr


def test_check_exits_1_while_something_is_wrong(tmp_path: Path) -> None:
    wrong = hms_cache("check", cwd=tmp_path)
    assert wrong.returncode == 1
    assert "error    the database has no metastore schema: there is no file hms-cache.db\n" in wrong.stdout
    assert "         Create it: hms-cache schema init " in wrong.stdout
    assert list(tmp_path.iterdir()) == []
    hms_cache("schema", "init", cwd=tmp_path)
    sound = hms_cache("check", cwd=tmp_path)
    assert (sound.returncode, sound.stderr) == (0, "")
    assert sound.stdout.count("ok       ") == 12
