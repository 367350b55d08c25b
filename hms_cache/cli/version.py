"""``hms-cache version``."""

from __future__ import annotations

from importlib import metadata

import click


def program_version() -> str:
    """The installed version."""
    return metadata.version("hms-cache")


@click.command()
def version() -> None:
    """Print the version."""
    click.echo(f"hms-cache {program_version()}")
