"""Finds statements in modules, without visiting each expression."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yields all statements in a module or function, including nested ones. Most nodes of a tree are expressions."""
    todo: list[ast.AST] = [tree]
    while todo:
        for child in ast.iter_child_nodes(todo.pop()):
            if isinstance(child, ast.stmt):
                yield child
            if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
                todo.append(child)


@cache
def imports_of(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Returns the import statements of a module, including those inside functions; cached."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tuple(one for one in statements(tree) if isinstance(one, ast.Import | ast.ImportFrom))


def is_of_the_module(statement: ast.stmt) -> bool:
    """Whether a statement is at the module's top level, and so is executed when the module is imported."""
    return statement.col_offset == 0
