"""The parser of command lines refuses what the program refuses: otherwise, the tests of the documents could not
fail."""

from __future__ import annotations

import click
import pytest

from tests.documentation.command_lines import all_commands, parse


@pytest.mark.parametrize(
    "line",
    [
        "serv",
        "serve --prt 1",
        "serve --port x",
        "events seek",
        "schema drop",
        "events pause",
        "check surplus",
        "jobs none",
    ],
)
def test_what_the_program_refuses_is_refused(line: str) -> None:
    with pytest.raises(click.UsageError):
        parse(line.split())


def test_a_setting_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no such setting"):
        parse(["serve", "--set", "server.prt=1"])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("serve --config not-there.toml --set server.port=1", ("serve",)),
        ("schema init --site not-there.xml", ("schema", "init")),
        ("events seek 5 --token-file not-there", ("events", "seek")),
        ("serve --help", ("serve",)),
        ("demo", ("demo",)),
    ],
)
def test_what_the_program_takes_is_taken(line: str, words: tuple[str, ...]) -> None:
    assert parse(line.split()).words == words


def test_all_commands_are_found() -> None:
    found = {words for words, _ in all_commands()}
    assert {("serve",), ("schema", "init"), ("events", "skip"), ("demo",), ("demo", "ha"), ("jobs", "verify")} <= found
