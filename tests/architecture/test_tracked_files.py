"""The repository speaks of itself alone: no machine's paths, no registry's host, nothing unfinished, no broken link."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Hosts that packages come from are the business of whoever installs. Written so that this file does not match itself.
REGISTRIES = re.compile(
    "|".join(("pypi" + r"\.org", "pythonhosted" + r"\.org", "repo1?" + r"\.maven", "deb" + r"\.debian"))
)
MACHINE_PATHS = re.compile(
    "|".join(("/wo" + "rk/", "/ro" + "ot/", "/ho" + r"me/(?!<)[a-z]+/", "/t" + "mp/[a-z]+/[a-z]"))
)
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")


def tracked_texts() -> dict[str, str]:
    """Every tracked text file by its path; binary ones (test samples) are left out."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    texts = {}
    for name in listed.split("\0"):
        path = ROOT / name
        if not name or not path.is_file():
            continue
        try:
            texts[name] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return texts


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: nothing is tracked")
    return tracked_texts()


@pytest.mark.parametrize("pattern", [REGISTRIES, MACHINE_PATHS], ids=["registries", "machine paths"])
def test_no_tracked_file_names(texts: dict[str, str], pattern: re.Pattern[str]) -> None:
    found = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in texts.items()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]
    assert not found, "\n".join(found)


def test_nothing_is_marked_unfinished(texts: dict[str, str]) -> None:
    found = [
        name
        for name, text in texts.items()
        if name.startswith("hms_cache/") and "thrift_gen" not in name and UNFINISHED.search(text)
    ]
    assert not found


def test_links_between_documents_lead_somewhere(texts: dict[str, str]) -> None:
    found = []
    for name, text in texts.items():
        if name.endswith(".md"):
            for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
                if not ((ROOT / name).parent / target).exists():
                    found.append(f"{name}: {target}")
    assert not found, "\n".join(found)
