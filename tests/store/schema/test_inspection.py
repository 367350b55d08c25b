"""Reading an embedded database's tables, whatever program created them."""

from __future__ import annotations

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.inspection import (
    ColumnShape,
    ForeignKeyShape,
    IndexShape,
    TableShape,
    inspect_tables,
)

MADE = (
    "CREATE TABLE \"a b\" (x INT, y TEXT NOT NULL DEFAULT 'q', z, PRIMARY KEY (y, x), CONSTRAINT uz UNIQUE (z, x))",
    'CREATE TABLE "quo""te" ("c""d" INTEGER PRIMARY KEY, p, q, r,'
    ' FOREIGN KEY (q) REFERENCES "a b" (z) ON DELETE CASCADE,'
    ' CONSTRAINT two FOREIGN KEY (p, r) REFERENCES "a b" (y, x))',
    'CREATE INDEX "by p" ON "quo""te" (p, q DESC)',
    'CREATE UNIQUE INDEX some ON "quo""te" (r) WHERE r > 1',
    'CREATE INDEX computed ON "quo""te" (p, lower(q))',
    "CREATE TABLE without (k TEXT PRIMARY KEY) WITHOUT ROWID",
    'CREATE VIEW seen AS SELECT * FROM "a b"',
)


def test_tables_of_an_embedded_database(sqlite_database: Database) -> None:
    """A quote in a table's name was a defect: no server started. Indexes of expressions do not belong to columns."""
    with sqlite_database.writing() as connection:
        before = inspect_tables(connection)
        for statement in MADE:
            connection.exec_driver_sql(statement)
        found = inspect_tables(connection)
    assert {name: shape for name, shape in found.items() if name in before} == before
    own = [name for name in found if name not in before]
    assert [found[name] for name in own] == [
        TableShape(
            "a b",
            {
                "x": ColumnShape("x", "INT", True, None),
                "y": ColumnShape("y", "TEXT", False, "'q'"),
                "z": ColumnShape("z", "", True, None),
            },
            ("y", "x"),
            indexes={"uz": IndexShape("uz", ("z", "x"), True)},
        ),
        TableShape(
            'quo"te',
            {
                'c"d': ColumnShape('c"d', "INTEGER", True, None),
                **{name: ColumnShape(name, "", True, None) for name in ("p", "q", "r")},
            },
            ('c"d',),
            indexes={
                "by p": IndexShape("by p", ("p", "q"), False),
                "some": IndexShape("some", ("r",), True),
            },
            foreign_keys={
                "two": ForeignKeyShape("two", ("p", "r"), "a b", ("y", "x"), False),
                'quo"te#0': ForeignKeyShape('quo"te#0', ("q",), "a b", ("z",), True),
            },
        ),
        TableShape("without", {"k": ColumnShape("k", "TEXT", False, None)}, ("k",)),
    ]
