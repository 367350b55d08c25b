"""Databases without a version: empty ones, interrupted creations, and metastores that have lost the version's row."""

from __future__ import annotations

from sqlalchemy import Connection, inspect, literal, select, union_all

from hms_cache.errors import SchemaError
from hms_cache.store.engine.inspection import inspect_tables
from hms_cache.store.installation.required_parts import summary_of
from hms_cache.store.schema import METADATA, TBLS, VERSION


def require_room(connection: Connection) -> None:
    """Checks that a schema may be created in a database without a version. An interrupted creation may be completed.

    A metastore of unknown version is refused: missing parts of tables would be added, and its rows interpreted, by a
    guess.

    :raises SchemaError: tables of a metastore have rows, lack columns, or are spelled differently; or a view has the
      name of one.
    """
    shapes = inspect_tables(connection)
    spelled_otherwise = sorted(
        name for name in shapes if name not in METADATA.tables and name.upper() in METADATA.tables
    )
    # Some tables of Hive 3.1 on PostgreSQL exist beside the others.
    if spelled_otherwise and TBLS.name not in shapes:
        raise SchemaError(
            f"the database has tables of a metastore under other names: {summary_of(spelled_otherwise)}",
            remedy="Hive's names are in upper case, and this database tells them apart from those. Rename the tables,"
            " or give the database server the setting that they were made with (lower_case_table_names). For a new"
            " metastore, name an empty database.",
        )
    views = sorted(METADATA.tables.keys() & set(inspect(connection).get_view_names()))
    if views:
        raise SchemaError(
            f"the database has views in the place of tables of a metastore: {summary_of(views)}",
            remedy="Name the database that has the tables themselves.",
        )
    present = [table for name, table in METADATA.tables.items() if name in shapes]
    unlike = [
        table.name for table in present if not {one.name for one in table.columns} <= shapes[table.name].columns.keys()
    ]
    # By table, not by column: rows of tables of other versions count as well.
    probes = [select(literal(table.name).label("name")).select_from(table).limit(1).subquery() for table in present]
    filled = (
        connection.execute(union_all(*(select(probe.c.name) for probe in probes))).scalars().all() if probes else []
    )
    if not unlike and not filled:
        return
    found = (
        f"hold rows: {summary_of(sorted(filled))}"
        if filled
        else f"are of another version: {summary_of(sorted(unlike))}"
    )
    raise SchemaError(
        f"the database does not say which version its metastore schema has, but has tables of one that {found}",
        remedy=f"Put back the row that {VERSION.name} has lost: VER_ID 1, and as SCHEMA_VERSION the version of the Hive"
        " that made the tables. For a new metastore, name an empty database. Nothing was changed.",
    )
