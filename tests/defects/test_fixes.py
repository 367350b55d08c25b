"""Each fix of a known defect is removed from a copy of the program once: the tests that guard it detect this."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.defects.fixes import FIXES, Fix

ROOT = Path(__file__).parents[2]
COPIED = ("hms_cache", "tests", "benchmarks", "tools", "docs", "conf", "pyproject.toml")
LIMIT_S = 600


@pytest.mark.parametrize("fix", FIXES, ids=[fix.name for fix in FIXES])
def test_it_is_where_the_list_says(fix: Fix) -> None:
    assert (ROOT / fix.file).read_text(encoding="utf-8").count(fix.fixed) == 1
    assert all((ROOT / test.partition("::")[0]).exists() for test in fix.noticed_by)


def test_the_page_has_a_row_for_each() -> None:
    page = (ROOT / "docs/evidence/defects.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    listed = {tuple(row) for row in rows}
    expected = {
        (str(fix.number), fix.defect, f"`{fix.file}`", ", ".join(f"`{test}`" for test in fix.noticed_by))
        for fix in FIXES
    }
    assert expected <= listed, expected - listed
    assert len({fix.name for fix in FIXES}) == len(FIXES)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout as hard links: a file that is to differ is written again."""
    root = tmp_path_factory.mktemp("copy")
    for name in COPIED:
        subprocess.run(["cp", "-al", str(ROOT / name), str(root / name)], check=True)
    return root


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.parametrize("fix", FIXES, ids=[fix.name for fix in FIXES])
def test_its_absence_is_noticed(fix: Fix, copy: Path) -> None:
    path = copy / fix.file
    text = path.read_text(encoding="utf-8")
    path.unlink()
    path.write_text(text.replace(fix.fixed, fix.broken), encoding="utf-8")
    try:
        arguments = ["-x", "--tb=line", "-p", "no:randomly", "-m", "not soak or not long", *fix.noticed_by]
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    finally:
        path.unlink()
        path.write_text(text, encoding="utf-8")
    failed = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    print(f"{fix.name}: {' '.join(failed)}")
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED, ended.stdout[-3000:]
