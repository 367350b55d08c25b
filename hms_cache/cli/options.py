"""Options that several commands share, and the configuration they make."""

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
    """A number within bounds, and a finite one: click takes NaN for within any."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Fails with a sentence."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


_EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def configuration_options(command: Command) -> Command:
    """The options that name sources of configuration, and those for the two settings everybody needs."""
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
                help="hive-site.xml or metastore-site.xml; may be given several times, later ones win.",
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
    """The configuration that these options and the other sources make.

    ``settings`` are further options, named ``section__key``. An option of its own wins over ``--set``.
    Raises ``ConfigurationError``.
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
        hide_secret_arguments()  # again, now that every secret is known by value
