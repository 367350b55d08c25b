"""What Python offers for threads of the operating system and cannot make safe."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "hms_cache"

#: They are given `threading.Thread.ident`, which glibc takes for the address of the thread's memory: of a thread that
#: has ended, that is a segmentation fault. What the kernel knows threads by is `native_id`.
BY_ADDRESS = {"pthread_getcpuclockid", "pthread_kill"}


def test_no_thread_is_asked_for_by_an_address_that_may_be_gone() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {node.attr}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if any(name in (text := path.read_text(encoding="utf-8")) for name in BY_ADDRESS)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in BY_ADDRESS
    ]
    assert found == []
