"""``hms-cache version``."""

from __future__ import annotations

import click

from hms_cache.program_version import program_version


@click.command()
def version() -> None:
    """Print the version."""
    click.echo(f"hms-cache {program_version()}")
