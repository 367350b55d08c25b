"""Rows read from the buffer equal the driver's own, whatever their sizes and types, wherever packet boundaries are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any

import pymysql
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hms_cache.store.engine.drivers.mysql_driver import MySqlConnection
from hms_cache.store.engine.drivers.mysql_rows import BUFFER_BYTES
from tests.conftest import ServerLookup
from tests.databases import DatabaseServer

Connections = tuple[MySqlConnection, pymysql.Connection]


@pytest.fixture(scope="module")
def connections(database_servers: ServerLookup) -> Iterator[Connections]:
    """Ours and the driver's, to one server."""
    server = database_servers("mariadb")
    assert isinstance(server, DatabaseServer)
    url = server.admin_url
    where = {
        "host": url.host,
        "port": url.port,
        "user": url.username,
        "password": url.password or "",
        "database": "mysql",
    }
    with closing(pymysql.connect(**where)) as admin, admin.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.max_allowed_packet")
        [before] = cursor.fetchone()
        cursor.execute("SET GLOBAL max_allowed_packet = 64 * 1024 * 1024")
        try:
            with (
                closing(MySqlConnection(**where, charset="utf8mb4")) as ours,
                closing(pymysql.connect(**where, charset="utf8mb4")) as driver,
            ):
                yield ours, driver
        finally:  # connections of other tests start with the server's value
            cursor.execute("SET GLOBAL max_allowed_packet = %s", (before,))


def _rows(connection: Any, statement: str, values: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return cursor.description, cursor.rowcount, cursor.fetchall()


def _assert_equal(connections: Connections, statement: str, values: tuple[Any, ...] = ()) -> None:
    ours, driver = connections
    expected = _rows(driver, statement, values)
    for _ in range(2):  # the second time, the description of the columns is known
        assert _rows(ours, statement, values) == expected
    assert ours.open and _rows(ours, "SELECT 1")[2] == ((1,),)


@pytest.mark.parametrize(
    "size", [0, 1, 249, 250, 251, 252, 255, 256, 65_535, 65_536, BUFFER_BYTES - 5, BUFFER_BYTES, 3 * BUFFER_BYTES]
)
def test_values_of_every_width_of_length(connections: Connections, size: int) -> None:
    _assert_equal(connections, f"SELECT REPEAT('x', {size}), NULL, {size}, REPEAT('é', {size}) FROM seq_1_to_9")


def test_a_row_of_several_packets(connections: Connections) -> None:
    _assert_equal(connections, "SELECT REPEAT('x', 16 * 1024 * 1024 + 7), 5 FROM seq_1_to_2")


def test_types(connections: Connections) -> None:
    columns = (
        "1, -1, CAST(18446744073709551615 AS UNSIGNED), 1.5, 1e300, CAST(2.50 AS DECIMAL(9, 2)),"
        " NULL, '', x'00ff', b'101', TRUE,"
        " CAST('2024-02-29' AS DATE), CAST('2024-02-29 01:02:03.000004' AS DATETIME(6)), CAST('-10:00:01' AS TIME),"
        " CAST('é𝄞' AS CHAR), CAST('é' AS BINARY), JSON_OBJECT('k', 'é'), 'ÿ' COLLATE utf8mb4_bin, REPEAT(x'ff', 300)"
    )
    _assert_equal(connections, f"SELECT {columns}")
    _assert_equal(connections, f"SELECT {columns} FROM seq_1_to_2000")


@pytest.mark.parametrize("rows", [0, 1, 255, 256, 257, 70_000])
def test_sequence_numbers_start_anew(connections: Connections, rows: int) -> None:
    _assert_equal(connections, f"SELECT seq, CONCAT('part=', seq), NULL FROM seq_0_to_70000 WHERE seq < {rows}")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.none() | st.integers(0, 400) | st.integers(60_000, 70_000), min_size=1, max_size=40))
def test_packets_anywhere_in_the_buffer(connections: Connections, sizes: list[int | None]) -> None:
    rows = " UNION ALL ".join(["SELECT REPEAT('a', %s) AS t, %s AS n"] * len(sizes))
    _assert_equal(connections, rows, tuple(value for size in sizes for value in (size, size)))


def test_an_error_after_rows_is_the_driver_s_and_the_connection_goes_on(connections: Connections) -> None:
    ours, _ = connections
    statement = "SELECT seq, IF(seq = 50000, (SELECT 1 UNION SELECT 2), 0) FROM seq_1_to_60000"
    with pytest.raises(pymysql.err.OperationalError, match="more than 1 row"):
        _rows(ours, statement)
    assert _rows(ours, "SELECT 1")[2] == ((1,),)


def test_the_same_statement_with_other_columns_is_described_anew(connections: Connections) -> None:
    ours, _ = connections
    with ours.cursor() as cursor:
        found = []
        cursor.execute("CREATE DATABASE described_anew")
        cursor.execute("USE described_anew")
        try:
            for column in ("INT", "VARCHAR(10)", "DECIMAL(4, 1)"):
                cursor.execute(f"CREATE OR REPLACE TABLE one (value {column})")
                cursor.execute("INSERT INTO one VALUES (7)")
                cursor.execute("SELECT value FROM one")
                found.append(cursor.fetchall())
        finally:
            cursor.execute("DROP DATABASE described_anew")
            cursor.execute("USE mysql")
    assert found == [((7,),), (("7",),), ((Decimal("7.0"),),)]
