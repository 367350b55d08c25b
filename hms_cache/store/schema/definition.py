"""Building blocks of the table definitions: one METADATA, and constraints whose names differ by database.

Hive's MySQL and PostgreSQL scripts agree on tables and columns but not on the names of foreign keys, on a few unique
keys and on indexes. The functions here let one definition hold both. SQLite takes PostgreSQL's side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from sqlalchemy import (
    Column,
    Dialect,
    ForeignKeyConstraint,
    Index,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateColumn, SchemaItem
from sqlalchemy.sql.elements import TextClause
from sqlalchemy.types import TypeEngine

from hms_cache.store.schema.column_types import MYSQL_DIALECTS

METADATA = MetaData()

Side = Literal["mysql", "postgresql"]

_NULLABLE_ON_POSTGRESQL = "nullable_on_postgresql"
_SIDE = "side"


def table(name: str, *elements: SchemaItem, **options: Any) -> Table:
    """A table of the metastore schema, registered in :data:`METADATA`.

    On MySQL and MariaDB the character set is ``utf8mb4`` with its binary collation: Hive's scripts choose ``latin1``,
    which turns other text into question marks without an error, case-insensitive for half of the columns.
    """
    return Table(
        name,
        METADATA,
        *elements,
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
        **options,
    )


def column(
    name: str,
    column_type: TypeEngine[Any],
    *,
    nullable: bool = True,
    default: TextClause | None = None,
    autoincrement: bool = False,
    nullable_on_postgresql: bool | None = None,
) -> Column[Any]:
    """A column; ``default`` is the server's.

    :param nullable_on_postgresql: overrides ``nullable`` there, where Hive's scripts disagree.
    """
    info = _info(_NULLABLE_ON_POSTGRESQL, nullable_on_postgresql)
    return Column(name, column_type, nullable=nullable, server_default=default, autoincrement=autoincrement, info=info)


def primary_key(*columns: str, name: str | None = None) -> PrimaryKeyConstraint:
    """The primary key; ``name`` where PostgreSQL's is not ``<table>_pkey``."""
    return PrimaryKeyConstraint(*columns, name=name)


def unique(name: str, *columns: str, on: Side | None = None) -> UniqueConstraint:
    """A unique constraint, on one side only if ``on`` is given."""
    constraint = UniqueConstraint(*columns, name=name, info=_info(_SIDE, on))
    return constraint if on is None else constraint.ddl_if(callable_=_exists)


def index(
    name: str,
    *columns: str,
    on: Side | None = None,
    is_unique: bool = False,
    hashed: bool = False,
    mysql_prefix: Mapping[str, int] | None = None,
) -> Index:
    """An index.

    :param on: the side that has it; both if None.
    :param hashed: a hash index on PostgreSQL.
    :param mysql_prefix: characters per column that MySQL indexes, where the whole would pass InnoDB's 3072 bytes.
    """
    options: dict[str, Any] = {}
    if hashed:
        options["postgresql_using"] = "hash"
    if mysql_prefix:
        options["mysql_length"] = dict(mysql_prefix)
    result = Index(name, *columns, unique=is_unique, info=_info(_SIDE, on), **options)
    return result if on is None else result.ddl_if(callable_=_exists)


class SidedForeignKey(ForeignKeyConstraint):
    """A foreign key whose name and deferrability on PostgreSQL differ from MySQL's."""

    postgresql_name: str | None = None
    postgresql_deferrable: bool = False

    # Table.to_metadata copies constraints; a copy has to stay one of these.
    inherit_cache = True


def foreign_key(
    name: str | None,
    columns: str | tuple[str, ...],
    target: str | tuple[str, ...],
    *,
    postgresql_name: str | None = None,
    deferrable: bool = False,
    cascade: bool = False,
    use_alter: bool = False,
) -> SidedForeignKey:
    """A foreign key.

    :param name: its name on MySQL; None lets the database name it (on both sides).
    :param target: ``TABLE.COLUMN``.
    :param postgresql_name: its name on PostgreSQL, ``name`` if None.
    :param deferrable: DEFERRABLE on PostgreSQL (MySQL knows no such thing).
    :param cascade: ON DELETE CASCADE.
    :param use_alter: added after both tables exist, for the one cycle of the schema.
    """
    constraint = SidedForeignKey(
        [columns] if isinstance(columns, str) else list(columns),
        [target] if isinstance(target, str) else list(target),
        name=name,
        ondelete="CASCADE" if cascade else None,
        use_alter=use_alter,
    )
    constraint.postgresql_name = postgresql_name
    constraint.postgresql_deferrable = deferrable
    return constraint


def exists_on(element: UniqueConstraint | Index, dialect: Dialect) -> bool:
    """Whether the key or index belongs to this database's side."""
    side = element.info.get(_SIDE)
    return side is None or (side == "mysql") == (dialect.name in MYSQL_DIALECTS)


def _exists(
    ddl: Any, target: Any, bind: Any, tables: Any = None, state: Any = None, *, dialect: Dialect, **_: Any
) -> bool:
    return exists_on(target, dialect)


def _info(key: str, value: Any) -> dict[Any, Any]:
    return {} if value is None else {key: value}


@compiles(SidedForeignKey, "postgresql")
def _foreign_key_on_postgresql(constraint: SidedForeignKey, compiler: Any, **options: Any) -> str:
    text: str = compiler.visit_foreign_key_constraint(constraint, **options)
    if constraint.postgresql_name is not None:
        before = f"CONSTRAINT {compiler.preparer.format_constraint(constraint)} "
        after = f"CONSTRAINT {compiler.preparer.quote(constraint.postgresql_name)} "
        text = text.replace(before, after, 1)
    return f"{text} DEFERRABLE" if constraint.postgresql_deferrable else text


@compiles(SidedForeignKey)
def _foreign_key(constraint: SidedForeignKey, compiler: Any, **options: Any) -> str:
    text: str = compiler.visit_foreign_key_constraint(constraint, **options)
    return text


@compiles(CreateColumn, "postgresql")
def _column_on_postgresql(element: CreateColumn, compiler: Any, **options: Any) -> str | None:
    text: str | None = compiler.visit_create_column(element, **options)
    nullable = element.element.info.get(_NULLABLE_ON_POSTGRESQL)
    if text is None or nullable is None:
        return text
    text = text.removesuffix(" NOT NULL")
    return text if nullable else f"{text} NOT NULL"
