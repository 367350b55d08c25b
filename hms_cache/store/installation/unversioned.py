"""Databases without a version: empty ones, creations that were cut short, and metastores that have lost the row."""

from __future__ import annotations

from sqlalchemy import Connection, inspect, literal, select, union_all

from hms_cache.errors import SchemaError
from hms_cache.store.engine.inspection import inspect_tables
from hms_cache.store.installation.required_parts import some_of
from hms_cache.store.schema import METADATA, TBLS, VERSION


def require_room(connection: Connection) -> None:
    """See that a schema can be made in a database that has no version. What an earlier creation has left is completed.

    A metastore whose version is not known is no such place: what its tables lack would be added, and what their rows
    mean decided, by a guess.

    :raises SchemaError: there are tables of a metastore that hold rows, lack columns, or are spelled otherwise; or a
        view stands in the place of one.
    """
    shapes = inspect_tables(connection)
    spelled_otherwise = sorted(
        name for name in shapes if name not in METADATA.tables and name.upper() in METADATA.tables
    )
    # Some of those of Hive 3.1 on PostgreSQL are beside the others.
    if spelled_otherwise and TBLS.name not in shapes:
        raise SchemaError(
            f"the database has tables of a metastore under other names: {some_of(spelled_otherwise)}",
            remedy="Hive's names are in upper case, and this database tells them apart from those. Rename the tables,"
            " or give the database server the setting that they were made with (lower_case_table_names). For a new"
            " metastore, name an empty database.",
        )
    views = sorted(METADATA.tables.keys() & set(inspect(connection).get_view_names()))
    if views:
        raise SchemaError(
            f"the database has views in the place of tables of a metastore: {some_of(views)}",
            remedy="Name the database that has the tables themselves.",
        )
    present = [table for name, table in METADATA.tables.items() if name in shapes]
    unlike = [
        table.name for table in present if not {one.name for one in table.columns} <= shapes[table.name].columns.keys()
    ]
    # Rows are asked for by table, not by column: what tables of other versions hold counts as well.
    probes = [select(literal(table.name).label("name")).select_from(table).limit(1).subquery() for table in present]
    filled = (
        connection.execute(union_all(*(select(probe.c.name) for probe in probes))).scalars().all() if probes else []
    )
    if not unlike and not filled:
        return
    found = f"hold rows: {some_of(sorted(filled))}" if filled else f"are of another version: {some_of(sorted(unlike))}"
    raise SchemaError(
        f"the database does not say which version its metastore schema has, but has tables of one that {found}",
        remedy=f"Put back the row that {VERSION.name} has lost: VER_ID 1, and as SCHEMA_VERSION the version of the Hive"
        " that made the tables. For a new metastore, name an empty database. Nothing was changed.",
    )
