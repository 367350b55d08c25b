"""``hms-cache schema check``: the differences between a database and the schema of Hive 4.0."""

from __future__ import annotations

import re
from typing import Literal

from sqlalchemy import Column, Connection, Dialect, Index, Table, UniqueConstraint, func, select

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.features import features_of
from hms_cache.store.engine.inspection import TableShape, inspect_tables
from hms_cache.store.installation.init import SCHEMA_VERSION
from hms_cache.store.schema import METADATA, VERSION
from hms_cache.store.schema.keys import exists_on
from hms_cache.values import frozen

Kind = Literal["version", "table", "column", "type", "primary key", "unique key"]

#: Synonyms of types, per database. Display widths and character sets are removed before.
_SAME_TYPES = {
    "bool": "tinyint",
    "character varying": "varchar",
    "character": "char",
    "timestamp without time zone": "timestamp",
    "double precision": "double",
    "int": "integer",
    "float": "double",
}

#: Columns may be wider than here, or have the older of two types: neither causes errors.
_WIDER = {("integer", "bigint"), ("text", "mediumtext"), ("text", "longtext"), ("mediumtext", "longtext")}


@frozen
class Difference:
    """One difference; ``expected`` is Hive 4.0's, ``found`` the database's (None: missing)."""

    kind: Kind
    name: str
    """The table, or ``TABLE.COLUMN``."""

    expected: str | None
    found: str | None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: expected {self.expected or 'none'}, found {self.found or 'none'}"


def schema_version(database: Database) -> str | None:
    """``VERSION.SCHEMA_VERSION`` of the database; None without a metastore schema (or with an incomplete one).

    :raises DatabaseUnavailable: the database does not answer.
    """
    return database.read_features().version


def check_schema(database: Database) -> list[Difference]:
    """Missing tables and columns, other types, other primary and unique keys, another version; sorted, empty if none.

    Additional tables and columns are no difference. Not all differences matter: a database of Hive 3.1 or 4.1 works
    without changes, see `SchemaFeatures`.

    :raises DatabaseUnavailable: the database does not answer.
    """
    with database.loading() as connection:
        tables = inspect_tables(connection)
        features = features_of(connection, tables)
        found: list[Difference] = []
        if features.version != SCHEMA_VERSION:
            found.append(Difference("version", "VERSION", SCHEMA_VERSION, features.version))
        rows = connection.execute(select(func.count()).select_from(VERSION)).scalar_one() if "VERSION" in tables else 1
        if rows > 1:
            found.append(Difference("version", "VERSION", "one row, as Hive's own server does", f"{rows}"))
        for name, table in METADATA.tables.items():
            shape = tables.get(name)
            if shape is None:
                other = name.lower() if name in features.folded_tables else None
                found.append(Difference("table", name, name, other))
            else:
                found.extend(_differences(connection, table, shape))
    return sorted(found, key=lambda difference: (difference.kind != "version", difference.name, difference.kind))


def _differences(connection: Connection, table: Table, shape: TableShape) -> list[Difference]:
    found: list[Difference] = []
    for column in table.columns:
        name = f"{table.name}.{column.name}"
        expected = expected_type(column, connection.dialect)
        if column.name not in shape.columns:
            found.append(Difference("column", name, expected, None))
            continue
        actual = normal_type(shape.columns[column.name].type)
        if actual != expected and (expected, actual) not in _WIDER:
            found.append(Difference("type", name, expected, actual))
    primary_key = tuple(column.name for column in table.primary_key.columns)
    if primary_key != shape.primary_key:
        found.append(Difference("primary key", table.name, _listed(primary_key), _listed(shape.primary_key)))
    unique = {frozenset(index.columns) for index in shape.indexes.values() if index.unique}
    for columns in _unique_keys(table, connection.dialect):
        if frozenset(columns) not in unique and set(columns) <= shape.columns.keys():
            found.append(Difference("unique key", table.name, _listed(columns), None))
    return found


def _unique_keys(table: Table, dialect: Dialect) -> list[tuple[str, ...]]:
    """Column lists that are unique according to the definitions for this database."""
    elements: list[UniqueConstraint | Index] = [index for index in table.indexes if index.unique]
    elements += [constraint for constraint in table.constraints if isinstance(constraint, UniqueConstraint)]
    return [tuple(column.name for column in element.columns) for element in elements if exists_on(element, dialect)]


def expected_type(column: Column[object], dialect: Dialect) -> str:
    """The column's type as `METADATA` would create it, in the format of `normal_type`."""
    name = column.type.compile(dialect=dialect)
    if column.autoincrement is True and dialect.name == "postgresql":
        name = name.replace("SERIAL", "INT")
    return normal_type(name)


def normal_type(text: str) -> str:
    """A type in a normalized spelling: lower case, no display width, no character set, one word for synonyms."""
    text = re.sub(r" (character set|collate) \w+", "", text.lower())
    base, arguments = re.match(r"([a-z ]+)(\(.*\))?", text).groups()  # type: ignore[union-attr]
    base = _SAME_TYPES.get(base.strip(), base.strip())
    if base in ("bigint", "integer", "smallint", "tinyint"):
        arguments = None
    return f"{base}{(arguments or '').replace(' ', '')}"


def _listed(columns: tuple[str, ...]) -> str | None:
    return ", ".join(columns) or None
