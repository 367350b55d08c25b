"""Expressions that differ between databases: the clock, counters, the lock of all transactions."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Connection, select, text

from hms_cache.store.engine.dialects import SqlFunction, allocate_from_counter
from hms_cache.store.schema import TXN_LOCK_TBL
from hms_cache.store.schema.column_types import MYSQL_DIALECTS


class now_ms(SqlFunction[int]):
    """The database's clock, in milliseconds since 1970 UTC. All times in the transaction tables are of this clock."""

    type = BigInteger()
    inherit_cache = True
    sql = "CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)"
    # UTC: in the session's time zone, one hour a year is ambiguous for UNIX_TIMESTAMP(NOW()).
    sql_on_mysql = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6)) DIV 1000)"
    sql_on_postgresql = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"


class time_after_waiting_ms(SqlFunction[int]):
    """On MySQL: as `now_ms`, but the time of evaluation, which is after the row locks that the statement waits for."""

    type = BigInteger()
    inherit_cache = True
    # In the session's time zone, which is UTC on all connections of this program.
    sql = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', SYSDATE(6)) DIV 1000)"


def is_mysql(connection: Connection) -> bool:
    """Whether the database is MySQL or MariaDB."""
    return connection.dialect.name in MYSQL_DIALECTS


def is_postgresql(connection: Connection) -> bool:
    """Whether the database is PostgreSQL."""
    return connection.dialect.name == "postgresql"


def read_now_ms(connection: Connection) -> int:
    """The database's clock."""
    return int(connection.execute(select(now_ms())).scalar_one())


def allocate_id(connection: Connection, counter: Column[int], count: int = 1) -> int:
    """The first of `count` ids of a one-row counter table, whose row stays locked until the transaction ends.

    Raises RuntimeError if the table is empty: the schema's script inserts the row.
    """
    first = allocate_from_counter(connection, counter, count)
    if first is None:
        raise RuntimeError(f"counter table {counter.table.name} has no row")
    return first


def lock_all_txns_shared(connection: Connection) -> None:
    """Blocks `lock_all_txns_exclusive` until the transaction ends.

    SQLite needs no statement: its write transactions run one after another.
    """
    if is_postgresql(connection):
        # A table lock, as in Hive: a row lock would write to the row.
        connection.execute(text('LOCK TABLE "TXN_LOCK_TBL" IN SHARE MODE'))
    elif is_mysql(connection):
        connection.execute(select(TXN_LOCK_TBL.c.TXN_LOCK).with_for_update(read=True))


def lock_all_txns_exclusive(connection: Connection) -> None:
    """Blocks the opening of transactions until this one ends, so that the highest transaction id does not change."""
    if is_postgresql(connection):
        connection.execute(text('LOCK TABLE "TXN_LOCK_TBL" IN EXCLUSIVE MODE'))
    elif is_mysql(connection):
        connection.execute(select(TXN_LOCK_TBL.c.TXN_LOCK).with_for_update())
