"""How a command line names databases and tables."""

from __future__ import annotations

import click
import pytest

from hms_cache.cli.commands import named


@pytest.mark.parametrize(
    ("text", "query"),
    [
        (None, {}),
        ("", {}),
        ("d", {"database": "d"}),
        ("d.t", {"database": "d", "table": "t"}),
        ("c.d.t", {"catalog": "c", "database": "d", "table": "t"}),
        ("d.`a.b`", {"database": "d", "table": "a.b"}),
        ("`c.c`.d.`a.b`", {"catalog": "c.c", "database": "d", "table": "a.b"}),
        ("`d`.`a``b.c`", {"database": "d", "table": "a`b.c"}),
        ("d.a b", {"database": "d", "table": "a b"}),
    ],
)
def test_names(text: str | None, query: dict[str, str]) -> None:
    assert named(text, None) == query
    assert named(text, "p=1") == {**query, "partition": "p=1"}


@pytest.mark.parametrize(
    "text", [".", "d.", ".t", "d..t", "a.b.c.d", "d.`", "d.``", "d.`a", "d.a`b`", "`a`b", "d.`a`.", "d.`a``", "`"]
)
def test_what_is_no_name_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"CATALOG\.DATABASE\.TABLE; quote a name that contains a dot"):
        named(text, None)
