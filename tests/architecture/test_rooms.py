"""Folders inside a package import each other one way, and no folder grows so large that it hides its structure."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.architecture.sources import imports_of, is_of_the_module

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "hms_cache"
GENERATED = "thrift_gen"

#: A reader takes in a folder of this size at a glance.
MAX_MODULES = 25

#: Packages whose folders are layers. A module directly in the package stands for itself.
LAYERED = ("store", "cache")


def imports(path: Path) -> Iterator[str]:
    """Modules and packages of ours that the module imports, as dotted names."""
    for node in imports_of(path):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("hms_cache"):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if exists(inner) else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("hms_cache"))


def exists(dotted: str) -> bool:
    path = ROOT / Path(*dotted.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def room(dotted: str) -> str:
    """``store.tables`` for what is in that folder, ``store.object_store`` for a module that is in none."""
    return ".".join(dotted.split(".")[1:3])


def rooms_of(package: str, directory: Path = PACKAGE) -> dict[str, set[str]]:
    """For each room of a package the rooms that it imports."""
    graph: defaultdict[str, set[str]] = defaultdict(set)
    for path in sorted((directory / package).rglob("*.py")):
        own = room(".".join(path.relative_to(directory.parent).with_suffix("").parts))
        if own.endswith("__init__"):
            continue
        graph[own].update(
            other
            for other in map(room, imports(path))
            if other != own and other.startswith(f"{package}.") and not other.endswith("__init__")
        )
    return graph


@pytest.mark.parametrize("package", LAYERED)
def test_rooms_import_one_way(package: str) -> None:
    try:
        tuple(TopologicalSorter(rooms_of(package)).static_order())
    except CycleError as error:
        pytest.fail(f"rooms import each other: {' <- '.join(error.args[1])}")


def test_modules_do_not_import_each_other() -> None:
    graph: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if GENERATED in path.parts or path.name == "__init__.py":
            continue
        own = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        graph[own] = {other for other in at_import(path) if other != own}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"modules import each other: {' <- '.join(error.args[1])}")


def at_import(path: Path) -> Iterator[str]:
    """What is imported while the module itself is: not inside functions, not for type checking only."""
    for node in filter(is_of_the_module, imports_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("hms_cache"):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if exists(inner) else node.module


@pytest.mark.parametrize(
    "folder",
    sorted({path.parent for path in PACKAGE.rglob("*.py") if GENERATED not in path.parts}),
    ids=lambda folder: folder.relative_to(ROOT).as_posix(),
)
def test_folders_stay_small(folder: Path) -> None:
    modules = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
    assert len(modules) <= MAX_MODULES, f"{len(modules)} modules; which of them belong together?"


def test_a_circle_of_rooms_would_be_found(tmp_path: Path) -> None:
    for name, other in (("rows", "tables"), ("tables", "rows")):
        (tmp_path / "hms_cache" / "store" / name).mkdir(parents=True)
        text = f"from hms_cache.store.{other} import something\n"
        (tmp_path / "hms_cache" / "store" / name / "module.py").write_text(text)
    with pytest.raises(CycleError):
        tuple(TopologicalSorter(rooms_of("store", tmp_path / "hms_cache")).static_order())
