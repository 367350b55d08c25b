"""Which of the database's refusals to compare mean that no row has a text, and which that a statement is wrong.

The second kind must not be taken for an empty answer: the rows exist.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DataError, DBAPIError

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.dialects import is_uncomparable
from tests.conftest import ServerLookup
from tests.databases import DatabaseServer, closing

OTHER = "'\N{CYRILLIC SMALL LETTER ZHE}'"


@pytest.fixture(scope="module", params=["en_US", "de_DE", "ja_JP"])
def connection(request: pytest.FixtureRequest, database_servers: ServerLookup) -> Iterator[Connection]:
    """To a table whose columns have the character sets of Hive's schema, and one of a third. The server's messages are
    in the given language."""
    server = database_servers("mariadb")
    assert isinstance(server, DatabaseServer)
    with server.admin() as admin:
        before = admin.execute(text("SELECT @@GLOBAL.lc_messages")).scalar_one()
        admin.execute(text("SET GLOBAL lc_messages = :name"), {"name": request.param})
        admin.execute(text("CREATE DATABASE uncomparable"))
        try:
            url = server.admin_url.set(database="uncomparable").render_as_string(False)
            with closing(Database(url)) as database, database.checking() as connection:
                connection.execute(
                    text(
                        "CREATE TABLE t (a VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_bin,"
                        " b VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_swedish_ci,"
                        " c VARCHAR(9) CHARACTER SET cp1251)"
                    )
                )
                connection.execute(text("INSERT INTO t VALUES ('x', 'x', 'x')"))
                yield connection
        finally:
            admin.execute(text("DROP DATABASE uncomparable"))
            admin.execute(text("SET GLOBAL lc_messages = :name"), {"name": before})


@pytest.mark.parametrize(
    "condition",
    [
        f"a = {OTHER}",
        f"a <> {OTHER}",
        f"a < {OTHER}",
        f"a LIKE {OTHER}",
        f"a BETWEEN 'x' AND {OTHER}",
        f"a IN ({OTHER}, 'x')",
        f"a IN ('x', 'y', {OTHER}, 'z')",
        f"a = CONCAT({OTHER}, 'x')",
        f"LOWER(a) = LOWER({OTHER})",
    ],
)
def test_a_text_of_the_statement_is_in_no_row(connection: Connection, condition: str) -> None:
    with pytest.raises(DataError) as raised:
        connection.execute(text(f"SELECT 1 FROM t WHERE {condition}"))
    assert is_uncomparable(raised.value)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1 FROM t WHERE a = c",
        "SELECT 1 FROM t WHERE a BETWEEN b AND c",
        "SELECT 1 FROM t WHERE CONCAT(a, b, c, a) = 'x'",
        "SELECT 1 FROM t WHERE COALESCE(a, b, c, a) = 'x'",
        "SELECT 1 FROM t WHERE CASE WHEN a = 'x' THEN a WHEN a = 'y' THEN b WHEN a = 'z' THEN c ELSE a END = 'x'",
        "SELECT a FROM t UNION SELECT c FROM t",
        "SELECT a FROM t UNION SELECT b FROM t UNION SELECT c FROM t UNION SELECT a FROM t",
    ],
)
def test_columns_that_cannot_be_compared_are_an_error(connection: Connection, statement: str) -> None:
    with pytest.raises(DBAPIError, match="Illegal mix of collations") as raised:
        connection.execute(text(statement))
    assert not isinstance(raised.value, DataError)
