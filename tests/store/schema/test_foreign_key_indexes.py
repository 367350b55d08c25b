"""SQLite looks for the rows that refer to each row that is deleted: each foreign key has an index there."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from hms_cache.store.engine.database import Database
from hms_cache.store.installation.init import init_schema


def unindexed(connection: Connection) -> list[str]:
    """Foreign keys whose columns no index begins with."""
    found = []
    inspected = inspect(connection)
    for table in inspected.get_table_names():
        indexed = [inspected.get_pk_constraint(table)["constrained_columns"]]
        indexed += [one["column_names"] for one in inspected.get_indexes(table)]
        indexed += [one["column_names"] for one in inspected.get_unique_constraints(table)]
        for key in inspected.get_foreign_keys(table):
            columns = key["constrained_columns"]
            if not any(set(one[: len(columns)]) == set(columns) for one in indexed):
                found.append(f"{table}.{columns}")
    return found


def test_each_foreign_key_has_an_index(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'hms.db'}")
    init_schema(database)
    with database.writing() as connection:
        assert unindexed(connection) == []
        for name in ("IDX_SKEWED_VALUES_STRING_LIST_ID_EID", "IDX_SKEWED_COL_VALUE_LOC_MAP_STRING_LIST_ID_KID"):
            connection.execute(text(f'DROP INDEX "{name}"'))
        assert len(unindexed(connection)) == 2
        connection.commit()
    init_schema(database)  # as a server does at each start
    with database.writing() as connection:
        assert unindexed(connection) == []
    database.close()
