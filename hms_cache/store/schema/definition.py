"""Building blocks of the table definitions: METADATA, columns, and tables of common shapes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, MetaData, PrimaryKeyConstraint, Table
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateColumn, SchemaItem
from sqlalchemy.sql.elements import TextClause
from sqlalchemy.types import TypeEngine

from hms_cache.store.schema.column_types import BIGINT, MEDIUM_TEXT, WIDE_INTEGER
from hms_cache.store.schema.keys import OwnerKeys, owner, primary_key
from hms_cache.store.schema.text_types import STRING_128, STRING_256, STRING_767

METADATA = MetaData()

_NULLABLE_ON_POSTGRESQL = "nullable_on_postgresql"


def table(name: str, *elements: SchemaItem, **options: Any) -> Table:
    """A table of the metastore schema, registered in :data:`METADATA`.

    On MySQL and MariaDB the character set is ``utf8mb4`` with its binary collation. Hive's scripts use ``latin1``,
    which silently replaces other characters by question marks, and a case-insensitive collation for half of the
    columns.
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
    default: TextClause | None = None,
    nullable_on_postgresql: bool | None = None,
) -> Column[Any]:
    """A nullable column; ``default`` is the server's.

    :param nullable_on_postgresql: False for a column that is NOT NULL only in Hive's PostgreSQL script.
    """
    info = _nullability(nullable_on_postgresql)
    return Column(name, column_type, server_default=default, autoincrement=False, info=info)


def required(
    name: str,
    column_type: TypeEngine[Any],
    *,
    default: TextClause | None = None,
    autoincrement: bool = False,
    nullable_on_postgresql: bool | None = None,
) -> Column[Any]:
    """A NOT NULL column; ``default`` is the server's.

    :param nullable_on_postgresql: True for a column that is NOT NULL only in Hive's MySQL script.
    """
    info = _nullability(nullable_on_postgresql)
    return Column(name, column_type, nullable=False, server_default=default, autoincrement=autoincrement, info=info)


def columns(column_type: TypeEngine[Any], *names: str) -> tuple[Column[Any], ...]:
    """Nullable columns of one type."""
    return tuple(column(name, column_type) for name in names)


def all_required(column_type: TypeEngine[Any], *names: str) -> tuple[Column[Any], ...]:
    """NOT NULL columns of one type."""
    return tuple(required(name, column_type) for name in names)


def recorded_table(prefix: str) -> tuple[Column[Any], ...]:
    """Columns with the names of a table, in a record about it."""
    return required(f"{prefix}_DATABASE", STRING_128), required(f"{prefix}_TABLE", STRING_256)


def recorded_object(prefix: str) -> tuple[Column[Any], ...]:
    """Columns with the names of a database, or of a table or partition in it, in a record about it."""
    return (
        required(f"{prefix}_DATABASE", STRING_128),
        column(f"{prefix}_TABLE", STRING_256),
        column(f"{prefix}_PARTITION", STRING_767),
    )


def identifier(name: str) -> tuple[Column[Any], PrimaryKeyConstraint]:
    """The column of a table's own ids, and its primary key."""
    return required(name, BIGINT), primary_key(name)


def number_table(name: str, column_name: str) -> Table:
    """A table with one row and one number, whose row lock serializes transactions."""
    return table(name, required(column_name, BIGINT))


def parameters_table(name: str, column_of_owner: str, *, of: str) -> Table:
    """The parameters of an entity, one row each.

    :param of: ``TABLE.COLUMN`` that ``column_of_owner`` refers to.
    """
    return table(
        name,
        required(column_of_owner, BIGINT),
        required("PARAM_KEY", STRING_256),
        column("PARAM_VALUE", MEDIUM_TEXT),
        primary_key(column_of_owner, "PARAM_KEY"),
        *owner(name, column_of_owner, of),
    )


def list_table(
    name: str,
    column_of_owner: str,
    *elements: Column[Any],
    of: str,
    position: TypeEngine[Any] = WIDE_INTEGER,
    keys: OwnerKeys = owner,
) -> Table:
    """The elements of a list of an entity, one row each, ordered by ``INTEGER_IDX``.

    :param of: ``TABLE.COLUMN`` that ``column_of_owner`` refers to.
    :param position: the type of ``INTEGER_IDX``.
    :param keys: creates the index and the foreign key that link a row to its owner.
    """
    return table(
        name,
        required(column_of_owner, BIGINT),
        *elements,
        required("INTEGER_IDX", position),
        primary_key(column_of_owner, "INTEGER_IDX"),
        *keys(name, column_of_owner, of),
    )


def fields_table(name: str, column_of_owner: str, comment: Column[Any], *, prefix: str, of: str) -> Table:
    """The fields of a structure, one row each, ordered by ``INTEGER_IDX``.

    :param comment: the column of their comments.
    :param prefix: of the columns of their names and types.
    :param of: ``TABLE.COLUMN`` that ``column_of_owner`` refers to.
    """
    return table(
        name,
        required(column_of_owner, BIGINT),
        comment,
        required(f"{prefix}_NAME", STRING_128),
        required(f"{prefix}_TYPE", STRING_767),
        required("INTEGER_IDX", WIDE_INTEGER),
        primary_key(column_of_owner, f"{prefix}_NAME"),
        *owner(name, column_of_owner, of),
    )


def _nullability(on_postgresql: bool | None) -> dict[Any, Any]:
    return {} if on_postgresql is None else {_NULLABLE_ON_POSTGRESQL: on_postgresql}


@compiles(CreateColumn, "postgresql")
def _column_on_postgresql(element: CreateColumn, compiler: Any, **options: Any) -> str | None:
    text: str | None = compiler.visit_create_column(element, **options)
    nullable = element.element.info.get(_NULLABLE_ON_POSTGRESQL)
    if text is None or nullable is None:
        return text
    text = text.removesuffix(" NOT NULL")
    return text if nullable else f"{text} NOT NULL"
