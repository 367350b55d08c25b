"""A test waits for a process with a limit: one that is stopped, or whose child holds its output, never ends.

pytest-timeout ends a test's wait once. What is waited for after that, as a fixture cleans up, has only its own limit.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
WAITS = re.compile(r"\.\s*(communicate|wait)\s*\(\s*\)")
"""Without one of these a module need not be parsed, which takes seconds for all."""


def waits_without_limit(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
            of = ast.unparse(node.func.value)
            if node.func.attr == "communicate" or (node.func.attr == "wait" and of.endswith("process")):
                yield node


def test_waits_for_processes_have_limits() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{call.lineno}: {ast.unparse(call)}"
        for path in sorted(TESTS.rglob("*.py"))
        if WAITS.search(text := path.read_text(encoding="utf-8"))
        for call in waits_without_limit(ast.parse(text))
    ]
    assert found == []
