"""Parses command lines of ``hms-cache`` like the program itself, without running them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import click

from hms_cache.cli.main import commands
from hms_cache.config.settings import all_settings

SETTING_NAMES = frozenset(reference.name for reference in all_settings())


@dataclass(frozen=True)
class CommandLine:
    """The parts of a command line: the words of the command, and the settings in it."""

    words: tuple[str, ...]
    settings: dict[str, str] = field(default_factory=dict)


def parse(arguments: Sequence[str]) -> CommandLine:
    """Parses the arguments of ``hms-cache``. Raises `click.UsageError` like the program, and ValueError for a setting.
    Files named in it need not exist."""
    command: click.Command = commands
    rest = list(arguments)
    words: list[str] = []
    context: click.Context | None = None
    settings: dict[str, str] = {}
    while True:
        try:
            with _absent_files(command):
                context = command.make_context(words[-1] if words else "hms-cache", rest, parent=context)
        except click.exceptions.Exit:  # --help and --version
            return CommandLine(tuple(words))
        for assignment in context.params.get("assignments") or ():
            name, separator, value = assignment.partition("=")
            if not separator or name not in SETTING_NAMES:
                raise ValueError(f"--set {assignment}: no such setting")
            settings[name] = value
        if not isinstance(command, click.Group):
            return CommandLine(tuple(words), settings)
        remaining = [*context._protected_args, *context.args]
        if not remaining:
            return CommandLine(tuple(words), settings)
        name, found, rest = command.resolve_command(context, remaining)
        assert name is not None and found is not None
        words.append(name)
        command = found


@contextmanager
def _absent_files(command: click.Command) -> Iterator[None]:
    """Makes the command accept names of missing files."""
    checked = [parameter.type for parameter in command.params if isinstance(parameter.type, click.Path)]
    saved = [(kind, kind.exists, kind.readable, kind.writable) for kind in checked]
    for kind in checked:
        kind.exists = kind.readable = kind.writable = False
    try:
        yield
    finally:
        for kind, exists, readable, writable in saved:
            kind.exists, kind.readable, kind.writable = exists, readable, writable


def all_commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Returns all commands except groups, as words: ``("schema", "init")``."""
    yield from _below((), commands)


def _below(words: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield words, command
        return
    if command.invoke_without_command:
        yield words, command
    context = click.Context(command)
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        if child is not None and not child.hidden:
            yield from _below((*words, name), child)
