"""A job under spark-submit, with the package from its wheel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ServerStarter

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(1_200)]

ROOT = Path(__file__).parents[2]


def test_a_job_from_the_wheel(start_server: ServerStarter, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "hms_cache", tree / "hms_cache", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(tree)]
    subprocess.run(build, check=True, timeout=600)
    (wheel,) = tmp_path.glob("*.whl")
    script = tmp_path / "submitted.py"
    script.write_text(
        "import hms_cache\nprint(hms_cache.__file__)\n" + (ROOT / "hms_cache/cli/__main__.py").read_text()
    )
    server = start_server("sqlite")
    job = ["jobs", "verify", "--server", server.uri, "--database", server.database_url, "--json"]
    submit = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]", "--driver-memory", "1g"]
    submit += ["--conf", "spark.driver.bindAddress=127.0.0.1", "--conf", "spark.driver.host=127.0.0.1"]
    submit += ["--py-files", str(wheel), str(script), *job]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    answer = subprocess.run(submit, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900)
    assert answer.returncode == 0, answer.stderr[-3000:]
    where, _, report = answer.stdout.partition("\n")
    assert ".whl" in where
    assert json.loads(report[report.index("{") :])["summary"] == {
        "objects compared": 2,
        "different": 0,
        "undecided": 0,
    }
