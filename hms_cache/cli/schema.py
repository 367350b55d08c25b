"""``hms-cache schema init``, ``index`` and ``check``."""

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
    """Create the schema. An existing one is not changed."""
    from hms_cache.app.database import create_schema

    click.echo(create_schema(load_configuration(**options).settings))


@schema.command("index")
@click.option(
    "--transactions", is_flag=True, help="Also create indexes on locks and on changed rows, which Hive does not have."
)
@configuration_options
def index(transactions: bool, **options: Any) -> None:
    """Create missing indexes of foreign keys.

    Hive's script for PostgreSQL omits some. Servers can continue to write meanwhile.
    """
    from hms_cache.app.database import index_schema

    made = index_schema(load_configuration(**options).settings, of_transactions=transactions)
    for one in made:
        click.echo(f"created an index on {one}")
    if not made:
        click.echo("each foreign key has an index")


@schema.command("check")
@configuration_options
def check(**options: Any) -> None:
    """Show the schema's version, and how it differs from Hive 4.0's.

    Exit status 0: the schema is that of Hive 4.0, or of another version with the differences of that version. Status 1:
    there is no schema, it cannot be served, or its version is 4.0 but it differs from Hive 4.0's.
    """
    from hms_cache.app.database import report_schema
    from hms_cache.errors import SchemaError

    version, differences = report_schema(load_configuration(**options).settings)
    for difference in differences:
        click.echo(difference)
    if differences and version.startswith("4.0."):
        raise SchemaError(f"the schema has version {version}, but {len(differences)} differences from it")
    click.echo(f"the schema can be served: version {version}, {len(differences)} differences from 4.0")
