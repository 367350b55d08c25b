"""The stored texts of clients are bounded in bytes, whatever the clients send."""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import pkgutil
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

import hms_cache

TEXT_BYTES = 300_000
TEXTS = 60
KEPT_BYTES = 4 << 20
"""Of all texts of one function together, at most."""

BEHIND_A_LIMIT = {
    "hms_cache.metadata.names._kept_pattern": "hms_cache.metadata.names.name_pattern",
    "hms_cache.txn.valid_write_ids._ids_named": "hms_cache.txn.valid_write_ids.parsed_write_ids",
    "hms_cache.txn.valid_write_ids._short_list": "hms_cache.txn.valid_write_ids.parsed_write_ids",
    "hms_cache.txn.valid_write_ids._long_list": "hms_cache.txn.valid_write_ids.parsed_write_ids",
    "hms_cache.store.properties.selection._parsed_and_kept": "hms_cache.store.properties.selection.parse_expression",
}
"""Functions that remember whatever they get, and the one that gives them short texts only."""

NOT_OF_CLIENTS = {
    "hms_cache.patterns.java_regex._category": "a name of Unicode, within an expression of 1,000 characters",
    "hms_cache.patterns.java_regex._of": "as its caller",
    "hms_cache.patterns.java_regex.java_regex": "refuses texts of more than 1,000 characters",
}

SHAPES: tuple[Callable[[str], str], ...] = (
    lambda filler: f"d.t:9:1:{filler}",
    lambda filler: f"d.t:999999999:1:{','.join(map(str, range(1, TEXT_BYTES // 8)))}:{len(filler)}",
    lambda filler: f"p = '{filler}'",
    lambda filler: f"{filler}*",
)


class Text(str):
    """A text that shows when it has been freed."""

    __slots__ = ("__weakref__",)


def modules() -> Iterator[Any]:
    for found in pkgutil.walk_packages(hms_cache.__path__, "hms_cache."):
        if not found.name.startswith(("hms_cache.jobs", "hms_cache.cli", "hms_cache.config", "hms_cache.thrift_gen")):
            with suppress(ImportError):
                yield importlib.import_module(found.name)


def readers() -> dict[str, Callable[[str], Any]]:
    """Functions that cache their results, and public ones that use them, of one text."""
    found = {}
    for module in modules():
        remembers = any(isinstance(value, functools._lru_cache_wrapper) for value in vars(module).values())
        for name, value in vars(module).items():
            if not remembers or getattr(value, "__module__", None) != module.__name__ or inspect.isclass(value):
                continue
            with suppress(TypeError, ValueError):
                [parameter] = inspect.signature(value).parameters.values()
                if parameter.annotation in (str, "str"):
                    found[f"{module.__name__}.{name}"] = value
    return found


READERS = readers()


def test_the_functions_are_found() -> None:
    assert set(BEHIND_A_LIMIT.values()) <= set(READERS)
    assert {"hms_cache.txn.valid_write_ids.parsed_write_ids", "hms_cache.metadata.names.name_pattern"} <= set(READERS)


@pytest.mark.parametrize("name", sorted(set(READERS) - set(NOT_OF_CLIENTS) - set(BEHIND_A_LIMIT)))
def test_long_texts_are_not_kept(name: str) -> None:
    function = READERS[name]
    alive: list[weakref.ref[Text]] = []
    for shape in SHAPES:
        for number in range(TEXTS // len(SHAPES)):
            text = Text(shape(f"{number}{'x' * TEXT_BYTES}"))
            alive.append(weakref.ref(text))
            with suppress(Exception):
                function(text)
            del text
    gc.collect()
    kept = sum(len(text) for text in (each() for each in alive) if text is not None)
    assert kept <= KEPT_BYTES


IDS = 150_000
LISTS = 5
LONG = [pytest.mark.soak, pytest.mark.long]
KEPT_OF_LISTS_BYTES = 8 << 20


@pytest.mark.parametrize(
    "shape",
    [
        lambda number: f"d.t:999999999:1:1-{IDS + number}",
        pytest.param(lambda number: f"d.t:999999999:1::{number + 1}-{IDS + number}", marks=LONG),
        pytest.param(lambda number: f"d.t:999999999:1:1-{IDS},{IDS + number}-1,{2 * IDS}-1", marks=LONG),
        pytest.param(lambda number: f"d.t:999999999:1:{'0' * 900}1-{'0' * 900}{IDS + number}", marks=LONG),
        pytest.param(
            lambda number: f"d.t:999999999:1:{','.join(f'{n}-{n + 999}' for n in range(number + 1, IDS, 1_000))}",
            marks=LONG,
        ),
    ],
)
@pytest.mark.parametrize("name", sorted(set(READERS) - set(NOT_OF_CLIENTS) - set(BEHIND_A_LIMIT)))
def test_what_is_made_of_a_short_text_is_not_kept_if_it_is_long(name: str, shape: Callable[[int], str]) -> None:
    """A range of a few characters stands for a million ids: a thousand such texts took all memory."""
    function = READERS[name]
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(LISTS):
            with suppress(Exception):
                function(shape(number))
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept <= KEPT_OF_LISTS_BYTES, f"{kept >> 20} MB of {LISTS} texts"
