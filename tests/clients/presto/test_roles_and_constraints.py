"""Presto with ``hive.security=sql-standard``: roles, grants and what they permit; and constraints of tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.clients.trino.coordinator import QueryFailed, Session
from tests.clients.trino.engines import MARKS, Engine

pytestmark = MARKS

_NUMBERS = itertools.count(1)


def session_of(engine: Engine, user: str, *roles: str) -> Session:
    """A session in the secured catalog with a role."""
    session = engine.session(user)
    session.catalog = "secured"
    for role in roles:
        session.roles["secured"] = f"ROLE{{{role}}}"
    return session


@pytest.fixture
def admin(engine: Engine) -> Session:
    """A session with the role that may do everything."""
    return session_of(engine, "admin", "admin")


@pytest.fixture
def role(admin: Session) -> Iterator[str]:
    name = f"r{next(_NUMBERS)}"
    admin.execute(f"CREATE ROLE {name}")
    yield name
    admin.execute(f"DROP ROLE {name}")


def denied(session: Session, statement: str) -> bool:
    with pytest.raises(QueryFailed) as caught:
        session.execute(statement)
    return caught.value.name == "PERMISSION_DENIED"


def test_roles(engine: Engine, admin: Session, role: str) -> None:
    with pytest.raises(QueryFailed, match="already exists"):
        admin.execute(f"CREATE ROLE {role}")
    admin.execute(f"CREATE ROLE {role}_b")
    assert {"admin", "public", role, f"{role}_b"} <= set(admin.column("SHOW ROLES"))
    admin.execute(f"GRANT {role} TO USER bob")
    admin.execute(f"GRANT {role}_b TO ROLE {role}")
    bob = session_of(engine, "bob")
    assert sorted(bob.column("SHOW CURRENT ROLES")) == ["public", role, f"{role}_b"]
    assert sorted(bob.column("SHOW ROLE GRANTS")) == ["public", role]
    assert denied(bob, "CREATE ROLE another")
    assert denied(session_of(engine, "bob", "admin"), "SHOW ROLES")
    admin.execute(f"REVOKE {role} FROM USER bob")
    assert session_of(engine, "bob").column("SHOW CURRENT ROLES") == ["public"]
    admin.execute(f"DROP ROLE {role}_b")
    with pytest.raises(QueryFailed, match="does not exist"):
        admin.execute(f"DROP ROLE {role}_b")


def test_grants_permit_statements(engine: Engine, admin: Session, schema: str, role: str) -> None:
    table = f"secured.{schema}.t"
    admin.execute(f"CREATE TABLE {table} (a bigint)")
    bob = session_of(engine, "bob")
    assert denied(bob, f"SELECT * FROM {table}")
    admin.execute(f"GRANT SELECT ON {table} TO USER bob")
    assert bob.rows(f"SELECT * FROM {table}") == []
    assert denied(bob, f"INSERT INTO {table} VALUES 1")
    admin.execute(f"GRANT SELECT, INSERT ON {table} TO ROLE {role} WITH GRANT OPTION")
    grants = admin.rows(
        "SELECT grantee, grantee_type, privilege_type, is_grantable FROM secured.information_schema.table_privileges"
        f" WHERE table_schema = '{schema}' AND grantee <> 'admin' ORDER BY 1, 2, 3"
    )
    assert grants == [
        ["bob", "USER", "SELECT", "NO"],
        [role, "ROLE", "INSERT", "YES"],
        [role, "ROLE", "SELECT", "YES"],
    ]
    assert len(admin.rows(f"SHOW GRANTS ON TABLE {table}")) == 7
    admin.execute(f"GRANT {role} TO USER carl")
    carl = session_of(engine, "carl", role)
    assert carl.changed(f"INSERT INTO {table} VALUES 1, 2") == 2
    carl.execute(f"GRANT INSERT ON {table} TO USER bob")
    assert bob.changed(f"INSERT INTO {table} VALUES 3") == 1
    assert denied(bob, f"DROP TABLE {table}")
    admin.execute(f"REVOKE SELECT, INSERT ON {table} FROM USER bob")
    assert denied(bob, f"SELECT * FROM {table}")
    admin.execute(f"DROP TABLE {table}")


def test_constraints(admin: Session, schema: str) -> None:
    table = f"secured.{schema}.c"
    key = "PRIMARY KEY (a) DISABLED NOT RELY NOT ENFORCED"
    admin.execute(f"CREATE TABLE {table} (a integer, b varchar, c bigint, {key})")
    admin.execute(f"ALTER TABLE {table} ADD CONSTRAINT both_of_them UNIQUE (b, c) DISABLED NOT RELY NOT ENFORCED")
    shown = admin.value(f"SHOW CREATE TABLE {table}")
    assert key in shown
    assert "CONSTRAINT both_of_them UNIQUE (b, c)" in shown
    with pytest.raises(QueryFailed):
        admin.execute(f"ALTER TABLE {table} ADD CONSTRAINT another PRIMARY KEY (b) DISABLED NOT RELY NOT ENFORCED")
    admin.execute(f"ALTER TABLE {table} DROP CONSTRAINT both_of_them")
    assert "UNIQUE" not in admin.value(f"SHOW CREATE TABLE {table}")
    admin.execute(f"ALTER TABLE IF EXISTS {table}_none DROP CONSTRAINT both_of_them")
    admin.execute(f"DROP TABLE {table}")
