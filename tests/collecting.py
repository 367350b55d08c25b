"""Lets one of several processes that collect the same tests compile them, so that the others find them compiled.

On a fresh checkout, rewriting the assertions of all test files, and compiling their imports, takes longer than
everything else in the collection.
"""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def are_compiled(root: Path) -> bool:
    """Whether most of the test files below `root` are compiled by this Python and this pytest."""
    files = [path for path in root.rglob("test_*.py") if "." not in path.parent.name]
    tail = f"{sys.implementation.cache_tag}-pytest-{pytest.__version__}.pyc"
    made = sum((path.parent / "__pycache__" / f"{path.stem}.{tail}").exists() for path in files)
    return 2 * made >= len(files)


@contextmanager
def after_the_first(directory: Path) -> Iterator[None]:
    """Among the processes that share the directory, the first one finishes this block before others begin it. If it
    ends without having finished, another one becomes the first."""
    with (directory / "collected").open("a+") as told:
        fcntl.flock(told, fcntl.LOCK_EX)
        told.seek(0)
        is_first = not told.read()
        if not is_first:
            fcntl.flock(told, fcntl.LOCK_UN)
        yield
        if is_first:
            told.write("collected\n")


@contextmanager
def compiled_once(config: pytest.Config) -> Iterator[None]:
    """For the time in which tests are collected."""
    if not hasattr(config, "workerinput") or are_compiled(Path(__file__).parent):
        yield
        return
    with after_the_first(Path(config.option.basetemp).parent):  # each process has a directory in that of the run
        yield
