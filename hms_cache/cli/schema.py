"""``hms-cache schema init`` and ``hms-cache schema check``."""

from __future__ import annotations

from typing import Any

import click

from hms_cache.cli.options import configuration_options, load_configuration


@click.group()
def schema() -> None:
    """Create or check the database schema, which is Hive's own."""


@schema.command("init")
@configuration_options
def init(**options: Any) -> None:
    """Create the schema in an empty database. One that is there already is left as it is."""
    from hms_cache.app.database_schema import create_schema

    click.echo(create_schema(load_configuration(**options).settings))


@schema.command("check")
@configuration_options
def check(**options: Any) -> None:
    """Tell the schema's version and what differs from what this program needs. Exit status 1 when it cannot be used."""
    from hms_cache.app.database_schema import schema_differences
    from hms_cache.errors import SchemaError

    settings = load_configuration(**options).settings
    version, differences = schema_differences(settings)
    if differences:
        raise SchemaError("\n".join(differences))
    click.echo(f"the schema is sound: version {version}")
