"""Options of several commands, and the configuration made from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from hms_cache.config import Configuration

Command = TypeVar("Command", bound=Callable[..., Any])


class Number(click.FloatRange):
    """A finite number within bounds: click accepts NaN as being within any bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Converts the value. Fails with an explanation if it is not a finite number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


_EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def configuration_options(command: Command) -> Command:
    """Adds the options for sources of configuration, and those for the two most common settings."""
    for option in reversed(
        (
            click.option("--database", metavar="URL", help="Metastore database; SQLAlchemy or JDBC form."),
            click.option("--warehouse", metavar="DIR", help="Directory of managed tables: a path or a URI."),
            click.option("--config", "config_file", type=_EXISTING_FILE, help="TOML file with settings."),
            click.option(
                "--site",
                "site_files",
                type=_EXISTING_FILE,
                multiple=True,
                help="hive-site.xml or metastore-site.xml; may be given several times, later ones take precedence.",
            ),
            click.option(
                "--set",
                "assignments",
                metavar="SECTION.KEY=VALUE",
                multiple=True,
                help="Any setting; may be given several times.",
            ),
        )
    ):
        command = option(command)
    return command


def load_configuration(
    *,
    database: str | None = None,
    warehouse: str | None = None,
    config_file: Path | None = None,
    site_files: tuple[Path, ...] = (),
    assignments: tuple[str, ...] = (),
    **settings: Any,
) -> Configuration:
    """Loads the configuration from these options and the other sources. Raises ``ConfigurationError``.

    ``settings`` are further options, named ``section__key``. An option of its own overrides ``--set``.
    """
    from hms_cache.cli.arguments import hide_secret_arguments, shown_argument
    from hms_cache.config import load

    command_line: dict[str, Any] = {"database.url": database, "warehouse.directory": warehouse}
    command_line |= {name.replace("__", ".", 1): value for name, value in settings.items()}
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        if not separator or "." not in name:
            raise click.BadParameter(f"{shown_argument(assignment)!r} is not SECTION.KEY=VALUE", param_hint="--set")
        if command_line.get(name) is None:
            command_line[name] = value
    try:
        return load(command_line=command_line, config_file=config_file, site_files=site_files)
    finally:
        hide_secret_arguments()  # again, because now the values of all secrets are known
