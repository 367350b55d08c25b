"""Column types of the metastore schema, each under one name for all databases.

Hive's scripts for MySQL and PostgreSQL use different types for the same columns (an epoch second is ``int`` on one and
``bigint`` on the other). Each constant here has both types, and a suitable one for SQLite.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Dialect,
    Double,
    Integer,
    LargeBinary,
    SmallInteger,
    Text,
    TypeDecorator,
)
from sqlalchemy.dialects import mysql, sqlite
from sqlalchemy.types import TypeEngine

MYSQL_DIALECTS = ("mysql", "mariadb")

#: 64 bits. ``INTEGER`` on SQLite, which makes a single-column primary key the row id itself.
BIGINT = BigInteger().with_variant(sqlite.INTEGER(), "sqlite")

#: 32 bits everywhere.
INTEGER = Integer()

#: 32 bits on MySQL, 64 bits on PostgreSQL: epoch seconds, positions and counts of the older tables.
WIDE_INTEGER = Integer().with_variant(BigInteger(), "postgresql")

SMALLINT = SmallInteger()

#: ``tinyint(1)`` on MySQL.
BOOLEAN = Boolean(create_constraint=False)

TEXT = Text()
MEDIUM_TEXT = Text().with_variant(mysql.MEDIUMTEXT(), *MYSQL_DIALECTS)
LONG_TEXT = Text().with_variant(mysql.LONGTEXT(), *MYSQL_DIALECTS)

BLOB = LargeBinary()
SHORT_BLOB = LargeBinary().with_variant(mysql.VARBINARY(2048), *MYSQL_DIALECTS)

DOUBLE: TypeEngine[float] = Double()

#: Hive's MySQL script stores only four decimals of statistics; PostgreSQL and SQLite store the whole value.
STATISTIC_DOUBLE: TypeEngine[float] = Double().with_variant(mysql.DOUBLE(53, 4, asdecimal=False), *MYSQL_DIALECTS)


class Flag(TypeDecorator[bool]):
    """A Python ``bool`` in a ``bit(1)`` on MySQL, and in a ``boolean`` elsewhere.

    :param postgresql_smallint: True for the one column that is a ``smallint`` in Hive's PostgreSQL script.
    """

    impl = Boolean
    cache_ok = True

    def __init__(self, postgresql_smallint: bool = False) -> None:
        super().__init__(create_constraint=False)
        self.postgresql_smallint = postgresql_smallint

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name in MYSQL_DIALECTS:
            return dialect.type_descriptor(mysql.BIT(1))
        if dialect.name == "postgresql" and self.postgresql_smallint:
            return dialect.type_descriptor(SmallInteger())
        return dialect.type_descriptor(Boolean(create_constraint=False))

    def process_bind_param(self, value: bool | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if dialect.name == "postgresql" and not self.postgresql_smallint:
            return bool(value)
        return int(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> bool | None:
        return None if value is None else bool(value)
