"""The wheel and the sdist are complete, and work outside of the repository."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from hms_cache.client import MetastoreClient
from tests.servers import MAX_WAIT_S

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
#: A build needs these, and what the project declares; they are put into an environment of their own.
BUILD_TOOLS = ("build", *PROJECT["build-system"]["requires"])


def data_files() -> list[str]:
    """Files in the package other than Python, by path within it; as listed by git if there is one."""
    package = ROOT / "hms_cache"
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z", "hms_cache"], cwd=ROOT, capture_output=True, check=True)
        paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    else:
        paths = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return sorted(str(path.relative_to(package)) for path in paths if path.suffix != ".py")


def test_each_data_file_is_declared() -> None:
    """Without its line in pyproject.toml, a file is present in the checkout and missing in the wheel."""
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["hms_cache"]
    assert [name for name in data_files() if not any(fnmatch(name, pattern) for pattern in patterns)] == []
    assert [pattern for pattern in patterns if not any(fnmatch(name, pattern) for name in data_files())] == []


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sdist of this tree, built in a copy, and the wheel that was made from the sdist."""
    scratch = tmp_path_factory.mktemp("distributions")
    tree = scratch / "tree"
    shutil.copytree(ROOT / "hms_cache", tree / "hms_cache", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]):
        shutil.copy(ROOT / name, tree)
    python = environment(scratch / "builder")
    run(python, "-m", "pip", "install", "--quiet", *BUILD_TOOLS)
    run(python, "-m", "build", "--no-isolation", "--outdir", str(scratch / "made"), str(tree))
    return scratch / "made"


def environment(directory: Path) -> str:
    """A new virtual environment's Python."""
    run(sys.executable, "-m", "venv", str(directory))
    return str(directory / "bin" / "python")


def run(*command: str, cwd: Path | None = None) -> str:
    shown = subprocess.run(command, cwd=cwd, env=clean_environment(), capture_output=True, text=True, timeout=300)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    return shown.stdout


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("HMS_CACHE", "PYTHON"))}


@pytest.fixture(scope="module")
def program(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`hms-cache` of an environment with the wheel. Dependencies are those of this one, without the checkout."""
    directory = tmp_path_factory.mktemp("installed")
    python = environment(directory / "environment")
    (wheel,) = distributions.glob("*.whl")
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", str(wheel))
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    # A line of a .pth file adds the directory alone: what links to the checkout in there is not followed.
    (Path(site) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = run(python, "-c", "import hms_cache; print(hms_cache.__path__[0])", cwd=directory).strip()
    assert where.startswith(site), f"the checkout is still seen: {where}"
    return Path(python).with_name("hms-cache")


@pytest.mark.soak
def test_the_wheel_holds_each_data_file_and_nothing_else_of_the_tree(distributions: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"hms_cache/{name}" for name in data_files()} <= set(names)
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"hms_cache"}
    assert any(name.endswith("/licenses/LICENSE") for name in names)


@pytest.mark.soak
def test_the_program_runs_elsewhere(program: Path, tmp_path: Path) -> None:
    assert run(str(program), "version", cwd=tmp_path).strip() == f"hms-cache {PROJECT['project']['version']}"
    settings = json.loads(run(str(program), "config", "print", "--json", cwd=tmp_path))
    assert settings["server.port"] == {"value": "9083", "origin": "default"}


@pytest.fixture
def served(program: Path, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The URI of the installed server, and its log."""
    log = tmp_path / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [str(program), "serve", "--port", "0", "--set", "admin.port=0"],
            cwd=tmp_path,
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    yield process.stdout.readline().removeprefix("ready ").strip(), log
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=MAX_WAIT_S)
    assert process.returncode == 0, log.read_text()


@pytest.mark.soak
def test_the_server_serves_elsewhere(served: tuple[str, Path]) -> None:
    """Names with a filter, which needs the grammar; defaults of Hive, which are a table; the pages, which are files."""
    uri, log = served
    with MetastoreClient(uri) as client:
        assert client.call("get_all_databases") == ["default"]
        assert client.call("get_table_names_by_filter", "default", 'hive_filter_field_owner__ = "me"', -1) == []
        assert client.call("get_config_value", "hive.metastore.warehouse.dir", "") != ""
    port = log.read_text().split("management port on ")[1].split()[0].rpartition(":")[2]
    for path in ("/", "/events", "/cache", "/operations", "/config"):
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Accept": "text/html"})
        with urllib.request.urlopen(request, timeout=MAX_WAIT_S) as answer:
            assert answer.status == 200 and b"<html" in answer.read().lower()
