"""Each handler declares the type of its request, so mypy checks each field that it reads."""

from __future__ import annotations

import inspect
from collections import defaultdict
from typing import Any

from hms_cache.server.handlers import transactions
from hms_cache.server.handlers.table import all_handlers
from hms_cache.wire import METHODS

FORWARDED = transactions.__name__
"""Its tables name method, argument and store method; such a handler reads no field but the argument."""


def test_every_handler_declares_the_arguments_of_its_methods() -> None:
    methods: dict[Any, set[str]] = defaultdict(set)
    for name, handler in all_handlers().items():
        methods[inspect.unwrap(handler.function)].add(name)
    wrong = []
    for function, names in methods.items():
        _, arguments = inspect.signature(function).parameters.values()
        declared = {part.strip().rpartition(".")[2] for part in arguments.annotation.split("|")}
        expected = {METHODS[name].args_class.__name__ for name in names}
        if declared == {"Any"} and function.__module__ == FORWARDED and "<locals>" in function.__qualname__:
            continue
        if declared != expected:
            wrong.append(f"{function.__module__}.{function.__qualname__}: {declared}, not {expected}")
    assert not wrong, "\n".join(wrong)


def test_what_is_forwarded_is_there() -> None:
    for method, argument in (transactions.READS | transactions.WRITES).items():
        assert argument in METHODS[method].args_class.__slots__, method
