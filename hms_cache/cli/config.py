"""``hms-cache config print`` and ``hms-cache config check``."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import click

from hms_cache.cli.options import configuration_options, load_configuration


@click.group()
def config() -> None:
    """Show or check the configuration."""


@config.command("print")
@configuration_options
@click.option("--changed", is_flag=True, help="Only settings that differ from their default.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def print_configuration(*, changed: bool, as_json: bool, **options: Any) -> None:
    """Show every setting with its value and the source of the value. Secrets are masked."""
    rows = [row for row in load_configuration(**options).rows() if not changed or row[2] != "default"]
    if as_json:
        click.echo(json.dumps({name: {"value": value, "origin": origin} for name, value, origin in rows}, indent=2))
        return
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    for name, value, origin in rows:
        click.echo(f"{name:<{widths[0]}}  {value:<{min(widths[1], 60)}}  {origin}")


@config.command("check")
@configuration_options
def check_configuration(**options: Any) -> None:
    """Read all sources and report every problem.

    Exit status 2 if there is one. In site files, every key of a metastore is checked: keys that are not honoured are
    listed with the reason.
    """
    from hms_cache.config.secrets import redacted

    configuration = load_configuration(**options)
    changed = sum(1 for _, _, origin in configuration.rows() if origin != "default")
    review = configuration.site_review
    verdict = "can be used" if review.ignored or configuration.accepted_insecure else "is valid"
    click.echo(f"the configuration {verdict}: {changed} settings differ from their default")
    for title, found in (
        ("insecure, but accepted by security.accept_insecure", configuration.accepted_insecure),
        ("not honoured", review.ignored),
    ):
        if found:
            click.echo(f"{title}, {len(found)}:")
            for one in found:
                click.echo(redacted(f"  {one}"))
    if review.harmless:
        click.echo(f"without a meaning here, or in effect anyway, {len(review.harmless)}:")
        click.echo(textwrap.fill(", ".join(review.harmless), 120, initial_indent="  ", subsequent_indent="  "))
