"""Keys, indexes and foreign keys of the tables, whose names differ between databases.

Hive's MySQL and PostgreSQL scripts agree on tables and columns, but not on the names of foreign keys, on a few unique
keys, and on indexes. With the functions here, one definition contains both. SQLite uses PostgreSQL's definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from sqlalchemy import Dialect, ForeignKeyConstraint, Index, PrimaryKeyConstraint, UniqueConstraint
from sqlalchemy.ext.compiler import compiles

from hms_cache.store.schema.column_types import MYSQL_DIALECTS

Side = Literal["mysql", "postgresql"]

OwnerKeys = Callable[[str, str, str], tuple[Index, ForeignKeyConstraint]]
"""Arguments: a table's name, its column and its target (``TABLE.COLUMN``); result as `owner`."""

_SIDE = "side"


def primary_key(*columns: str, name: str | None = None) -> PrimaryKeyConstraint:
    """The primary key; ``name`` if PostgreSQL's is not ``<table>_pkey``."""
    return PrimaryKeyConstraint(*columns, name=name)


def unique(name: str, *columns: str, on: Side | None = None) -> UniqueConstraint:
    """A unique constraint. ``on``: only on that side."""
    constraint = UniqueConstraint(*columns, name=name, info=_on(on))
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
    result = Index(name, *columns, unique=is_unique, info=_on(on), **options)
    return result if on is None else result.ddl_if(callable_=_exists)


class SidedForeignKey(ForeignKeyConstraint):
    """A foreign key whose name and deferrability on PostgreSQL differ from MySQL's."""

    postgresql_name: str | None = None
    postgresql_deferrable: bool = True

    # Table.to_metadata copies constraints; the copy must have this class.
    inherit_cache = True


def foreign_key(
    name: str | None,
    columns: str | tuple[str, ...],
    target: str | tuple[str, ...],
    *,
    postgresql_name: str | None = None,
    deferrable: bool = True,
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


def auto_named_key(name: str, column: str, target: str) -> SidedForeignKey:
    """A foreign key that PostgreSQL calls ``TABLE_COLUMN_fkey``, the name it would give by itself.

    :param name: its name on MySQL.
    :param target: ``TABLE.COLUMN``.
    """
    return foreign_key(name, column, target, postgresql_name=f"{name.rpartition('_')[0]}_{column}_fkey")


def auto_named_keys(table: str, *targets: str) -> tuple[SidedForeignKey, ...]:
    """Foreign keys as `auto_named_key`, numbered on MySQL, whose columns have the names of their targets.

    :param targets: each a ``TABLE.COLUMN``.
    """
    return tuple(
        auto_named_key(f"{table}_FK{number}", target.partition(".")[2], target)
        for number, target in enumerate(targets, 1)
    )


def unnamed_key(column: str, target: str) -> SidedForeignKey:
    """A foreign key with a name chosen by the database, not deferrable.

    :param target: ``TABLE.COLUMN``.
    """
    return foreign_key(None, column, target, deferrable=False)


def owner(table: str, column: str, target: str) -> tuple[Index, SidedForeignKey]:
    """The index and the foreign key of a child table, with Hive's usual names.

    :param target: ``TABLE.COLUMN``.
    """
    return index(f"{table}_N49", column), auto_named_key(f"{table}_FK1", column, target)


def exists_on(element: UniqueConstraint | Index, dialect: Dialect) -> bool:
    """Whether the key or index belongs to this database's side."""
    side = element.info.get(_SIDE)
    return side is None or (side == "mysql") == (dialect.name in MYSQL_DIALECTS)


def _exists(
    ddl: Any, target: Any, bind: Any, tables: Any = None, state: Any = None, *, dialect: Dialect, **_: Any
) -> bool:
    return exists_on(target, dialect)


def _on(side: Side | None) -> dict[Any, Any]:
    return {} if side is None else {_SIDE: side}


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
