"""No method retains long texts: each one that the protocol can carry is long once, and then searched in the process."""

from __future__ import annotations

import gc
import logging
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from thrift.Thrift import TException, TType

from hms_cache.wire import METHODS
from tests.server.conftest import Link, Serve, database, table
from tests.server.test_request_fields import in_place
from tests.wire.strategies import filled

TEXT_CHARACTERS = 100_000
FOUND_FROM_CHARACTERS = 10_000
"""What is cut to less is bounded by the lengths of rings and queues, which have tests of their own."""

FILLER = "long text "

LEFT_OUT = {"shutdown", "reinitialize"}

CACHE_BYTES = 1 << 20

AUDIT_BYTES = 1 << 20

KEPT_CHARACTERS = CACHE_BYTES + AUDIT_BYTES + (1 << 20)
"""Of all texts together: what the cache may hold of objects that were made, lines that wait, and 1 MiB for what is
remembered of texts that were read. Some 2 % of what is sent."""

Path = tuple[Any, ...]


def text_paths(struct_class: Any, deepest: int, before: tuple[Any, ...] = ()) -> Iterator[Path]:
    """Where a struct has texts and bytes: names of fields; 0, "key" and "value" for the contents of a list or a map."""
    for _, kind, name, detail, _ in filter(None, struct_class.thrift_spec):
        for path in _paths_of(kind, detail, deepest, (*before, struct_class)):
            if len(path) < deepest:
                yield (name, *path)


def _paths_of(kind: int, detail: Any, deepest: int, before: tuple[Any, ...]) -> Iterator[Path]:
    if kind == TType.STRING:
        yield ()
    elif kind == TType.STRUCT:
        if detail[0] not in before:
            yield from text_paths(detail[0], deepest, before)
    elif kind in (TType.LIST, TType.SET):
        yield from ((0, *path) for path in _paths_of(detail[0], detail[1], deepest, before))
    elif kind == TType.MAP:
        yield from (("key", *path) for path in _paths_of(detail[0], detail[1], deepest, before))
        yield from (("value", *path) for path in _paths_of(detail[2], detail[3], deepest, before))


def replaced(value: Any, path: Path, text: str) -> Any:
    """The value with this text at the path; structs and lists are changed in place."""
    if not path:
        return text.encode() if isinstance(value, bytes) else text
    if value is None:
        return None  # an optional struct that this request does not have
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        [(key, held)] = list(value.items())[:1] or [(None, None)]
        return {replaced(key, rest, text): held} if step == "key" else {key: replaced(held, rest, text)}
    if isinstance(value, list | tuple | set | frozenset):
        items = list(value)
        return type(value)([replaced(items[0], rest, text), *items[1:]])
    setattr(value, step, replaced(getattr(value, step), rest, text))
    return value


def kept_texts() -> Counter[str]:
    """Long texts of the test that are still in memory in this process: their beginning, and their number of
    characters."""
    gc.collect()
    kept: Counter[str] = Counter()
    seen: set[int] = set()
    waiting: list[Any] = gc.get_objects()
    while waiting:
        piece = waiting[-1000:]
        del waiting[-1000:]
        for one in gc.get_referents(*piece):
            if isinstance(one, str | bytes | bytearray):
                if len(one) < FOUND_FROM_CHARACTERS or id(one) in seen:
                    continue
                seen.add(id(one))
                text = one if isinstance(one, str) else bytes(one).decode("latin-1")
                if (at := text.find(FILLER * 9)) >= 0:
                    kept[f"{type(one).__name__} {text[max(0, at - 100) : at]}"] += len(one)
            elif not gc.is_tracked(one) and id(one) not in seen and type(one) in (tuple, dict):
                seen.add(id(one))
                waiting.append(one)
    return kept


def calls(deepest: int) -> Iterator[tuple[str, Path]]:
    """Each method with each path of its arguments."""
    for method in sorted(set(METHODS) - LEFT_OUT):
        yield from ((method, path) for path in text_paths(METHODS[method].args_class, deepest))


class InternalErrors(logging.Handler):
    """Methods that failed with an undeclared exception. Keeps no text of the test."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.of_methods: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message.startswith("internal error in "):
            self.of_methods.add(message[:100])


def send(link: Link, method: str, path: Path) -> None:
    arguments = in_place(filled(METHODS[method].args_class, random.Random(7)))
    text = f"{method}/{'/'.join(map(str, path))}: " + FILLER * (TEXT_CHARACTERS // len(FILLER))
    arguments = replaced(arguments, path, text)
    given = {entry[2]: getattr(arguments, entry[2]) for entry in filter(None, arguments.thrift_spec)}
    with suppress(TException):
        link.call(method, **given)


@pytest.mark.soak
@pytest.mark.parametrize("deepest", [4, pytest.param(13, marks=pytest.mark.long)])
@pytest.mark.timeout(1200)
def test_no_method_keeps_long_texts(serve: Serve, deepest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    log, internal = logging.getLogger("hms_cache"), InternalErrors()
    monkeypatch.setattr(log, "propagate", False)  # pytest keeps log records
    monkeypatch.setattr(log, "handlers", [*log.handlers, internal])
    server = serve(**{"cache.budget_bytes": CACHE_BYTES, "server.audit_queue_bytes": AUDIT_BYTES})
    link = server.link()
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=table("d", "t"))
    sent = 0
    for method, path in calls(deepest):
        try:
            send(link, method, path)
        except (OSError, EOFError):
            link = server.link()
        sent += TEXT_CHARACTERS
    assert not internal.of_methods
    kept = kept_texts()
    assert sent > 20 * KEPT_CHARACTERS
    assert kept.total() <= KEPT_CHARACTERS, kept.most_common(30)
