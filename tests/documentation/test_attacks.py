"""Each attack of the threat model has a test, and each test that the table names exists."""

from __future__ import annotations

import ast
import re

from tests.documentation.pages import ROOT

_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
EVIDENCE = (ROOT / "docs/evidence/hostile.md").read_text()
SECURITY = (ROOT / "docs/security.md").read_text()


def rows_of(text: str, heading: str) -> dict[str, str]:
    """First cell → the others, of the table below a heading."""
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ", 1) for line in section.splitlines() if line.startswith("| ")]
    return {first.strip(): rest for first, rest in rows if first.strip() != "attack"}


def test_every_named_test_exists() -> None:
    named = set(_TEST.findall(EVIDENCE))
    assert len(named) > 40
    missing = []
    for file, name in sorted(named):
        path = ROOT / file
        tree = ast.parse(path.read_text()) if path.exists() else ast.Module([], [])
        if not any(isinstance(node, ast.FunctionDef) and node.name == name for node in ast.walk(tree)):
            missing.append(f"{file}::{name}")
    assert not missing


def test_every_attack_has_a_test() -> None:
    model, tried = rows_of(SECURITY, "Defended"), rows_of(EVIDENCE, "The threat model")
    assert list(tried) == list(model)
    every = {**tried, **rows_of(EVIDENCE, "What was done to a server without credentials")}
    assert len(every) > len(tried) + 15
    assert not [attack for attack, tests in every.items() if not _TEST.search(tests)]
