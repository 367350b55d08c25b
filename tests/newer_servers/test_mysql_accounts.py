"""Accounts of MySQL 8 and later, whose passwords are checked otherwise than MariaDB's (`caching_sha2_password`)."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import DatabaseUnavailable
from tests.databases import DatabaseServer, ServerMissing, closing
from tests.newer_databases import start_mysql

pytestmark = [pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(1200)]

PASSWORD = "a secret of this test"


@pytest.fixture(scope="module")
def mysql() -> Iterator[DatabaseServer]:
    try:
        server = start_mysql()
    except ServerMissing as missing:
        pytest.skip(str(missing))
    with server.admin() as connection:
        connection.execute(text(f"CREATE USER hive@'%' IDENTIFIED BY '{PASSWORD}'"))
    yield server
    server.stop()


@pytest.fixture
def server(mysql: DatabaseServer) -> DatabaseServer:
    """Without what it remembers of passwords that it has checked."""
    with mysql.admin() as connection:
        connection.execute(text("FLUSH PRIVILEGES"))
    return mysql


def account(server: DatabaseServer, mode: str, password: str) -> str:
    url = server.admin_url.set(username="hive", password=password).update_query_dict({"ssl_mode": mode})
    with closing(Database(url.render_as_string(False))) as database, database.checking() as connection:
        return str(connection.execute(text("SELECT CURRENT_USER()")).scalar_one())


@pytest.mark.parametrize("mode", ["DISABLED", "PREFERRED", "REQUIRED"])
def test_the_password_is_checked(server: DatabaseServer, mode: str) -> None:
    with pytest.raises(OperationalError, match="Access denied"):
        account(server, mode, "another")
    assert account(server, mode, PASSWORD) == "hive@%"
    assert account(server, mode, PASSWORD) == "hive@%"


def test_a_password_that_cannot_be_encrypted_is_not_sent(
    server: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without TLS it needs the package cryptography, which is an extra; with TLS it does not."""
    monkeypatch.setattr(pymysql._auth, "_have_cryptography", False)
    with pytest.raises(DatabaseUnavailable, match=r"hms-cache\[tls\]"):
        account(server, "DISABLED", PASSWORD)
    assert account(server, "PREFERRED", PASSWORD) == "hive@%"
