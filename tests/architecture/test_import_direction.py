"""Imports go one way: a package knows only those to its right in docs/architecture.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import imports_of

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "hms_cache"

#: From the outside to the inside. Names of one rank do not know each other, but for those in NEIGHBOURS.
RANKS: tuple[tuple[str, ...], ...] = (
    ("cli",),
    ("jobs",),
    ("app",),
    ("client",),
    ("server", "admin"),
    ("cache", "lease"),
    ("store",),
    ("notifications", "expressions", "txn"),
    ("metadata",),
    ("wire", "authentication", "authorization"),
    (
        "config",
        "metrics",
        "clock",
        "errors",
        "patterns",
        "input_limits",
        "key_stores",
        "batches",
        "computing",
        "event_loops",
        "program_version",
        "system_user",
        "values",
        "limited_log",
        "call_context",
        "socket_deadlines",
    ),
)
#: The innermost ones are small and build on each other.
NEIGHBOURS = frozenset(RANKS[-1])
RANK_OF = {name: rank for rank, names in enumerate(RANKS) for name in names}
#: Generated structs: every package may use them, and they use none.
GENERATED = "thrift_gen"


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if GENERATED not in path.parts)


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """(line, package of ours) for each import in the module, also those inside functions."""
    for node in imports_of(path):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif node.module:
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            names = [node.module]
            if node.module == "hms_cache":
                names = [f"hms_cache.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "hms_cache" and len(parts) > 1:
                yield node.lineno, parts[1]


def owner(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def violations(path: Path, own: str) -> list[str]:
    found = []
    for line, other in imported(path):
        if other in (own, GENERATED):
            continue
        allowed = RANK_OF[own] < RANK_OF[other] or {own, other} <= NEIGHBOURS
        if not allowed:
            found.append(f"{path.relative_to(ROOT)}:{line}: {own} imports {other}")
    return found


def test_every_package_has_its_rank() -> None:
    own = {owner(path) for path in modules()} - {"__init__"}
    assert own <= set(RANK_OF), "a package that the table does not place"


def test_imports_go_one_way() -> None:
    found = [line for path in modules() if owner(path) != "__init__" for line in violations(path, owner(path))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("own", "statement"),
    [
        ("store", "from hms_cache.cache import shared_cache"),
        ("txn", "import hms_cache.store.engine.database"),
        ("notifications", "from hms_cache import expressions"),
        ("config", "from hms_cache.wire import messages"),
    ],
)
def test_a_wrong_import_would_be_found(tmp_path: Path, own: str, statement: str) -> None:
    path = PACKAGE / own / "not_there.py"
    wrong = tmp_path / "wrong.py"
    wrong.write_text(f"def f() -> None:\n    {statement}\n")
    assert [other for _, other in imported(wrong) if RANK_OF[owner(path)] >= RANK_OF[other]]
