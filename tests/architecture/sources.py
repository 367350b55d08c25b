"""What tests look for in the text of modules, without going through each of their expressions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """All that stand in a module or a function, also those inside others. Most of a tree are expressions."""
    todo: list[ast.AST] = [tree]
    while todo:
        for child in ast.iter_child_nodes(todo.pop()):
            if isinstance(child, ast.stmt):
                yield child
            if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
                todo.append(child)


@cache
def imports_of(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """The statements of a module that import, also those inside functions; read once."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tuple(one for one in statements(tree) if isinstance(one, ast.Import | ast.ImportFrom))


def is_of_the_module(statement: ast.stmt) -> bool:
    """Whether it stands outside of everything else, and is carried out when the module is imported."""
    return statement.col_offset == 0
