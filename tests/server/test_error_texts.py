"""Errors name what was wrong without repeating all of it: each text of each method is long once."""

from __future__ import annotations

import random
from typing import Any

import pytest
from thrift.Thrift import TException

from hms_cache.server.faults import MAX_MESSAGE_CHARACTERS, shortened
from hms_cache.wire import METHODS
from tests.server.conftest import Link, Serve, database, table
from tests.server.test_long_texts import calls, replaced
from tests.server.test_request_fields import in_place
from tests.wire.strategies import filled

DEPTH = 3
"""The texts of arguments and of requests, and those in their lists."""

LONG = "long text " * (4 * MAX_MESSAGE_CHARACTERS // 10)

MARK_CHARACTERS = 100
"""For what is said of what was left out."""


def refusal(link: Link, method: str, path: tuple[Any, ...]) -> str:
    """The text of the error that the call was answered with, empty for none."""
    arguments = replaced(in_place(filled(METHODS[method].args_class, random.Random(7))), path, LONG)
    given = {entry[2]: getattr(arguments, entry[2]) for entry in filter(None, arguments.thrift_spec)}
    try:
        link.call(method, **given)
    except TException as error:
        return str(getattr(error, "message", None) or "")
    return ""


@pytest.mark.soak
def test_no_error_repeats_a_long_text(serve: Serve) -> None:
    server = serve()
    link = server.link()
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=table("d", "t"))
    shortened = 0
    for method, path in calls(DEPTH):
        try:
            text = refusal(link, method, path)
        except (OSError, EOFError):  # the conversation ended: set_ugi and setMetaConf above the session limit
            link = server.link()
            continue
        assert len(text) <= MAX_MESSAGE_CHARACTERS + MARK_CHARACTERS, f"{method} {path}: {len(text)} {text[:200]}"
        shortened += "characters left out" in text
    assert shortened > 20


@pytest.mark.parametrize("more", [-1, 0, 1, 1_000_000])
def test_both_ends_are_told(more: int) -> None:
    text = "beginning " + "x" * (MAX_MESSAGE_CHARACTERS + more - 14) + " end"
    shown = shortened(text)
    assert shown.startswith("beginning ") and shown.endswith(" end")
    assert (shown == text) == (more <= 0)
    assert more <= 0 or f" ({more} characters left out) " in shown
