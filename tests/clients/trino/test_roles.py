"""Trino with ``hive.security=sql-standard``: roles, grants, owners, and what they permit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.clients.trino.coordinator import QueryFailed, Session
from tests.clients.trino.engines import MARKS, Engine

pytestmark = MARKS

_NUMBERS = itertools.count(1)
GRANTS = "SELECT grantee, grantee_type, privilege_type, is_grantable FROM secured.information_schema.table_privileges"


@pytest.fixture
def admin(trino: Session) -> Session:
    """A session with the role that may do everything."""
    trino.execute("SET ROLE admin IN secured")
    return trino


@pytest.fixture
def role(admin: Session) -> Iterator[str]:
    name = f"r{next(_NUMBERS)}"
    admin.execute(f"CREATE ROLE {name} IN secured")
    yield name
    admin.execute(f"DROP ROLE {name} IN secured")


def denied(session: Session, statement: str) -> bool:
    with pytest.raises(QueryFailed) as caught:
        session.execute(statement)
    return caught.value.name == "PERMISSION_DENIED"


def grants(session: Session, schema: str, but: str = "admin") -> list[list[object]]:
    """Grants on the schema's tables to others than one."""
    return session.rows(f"{GRANTS} WHERE table_schema = '{schema}' AND grantee <> '{but}' ORDER BY 1, 2, 3")


def test_roles_are_made_granted_and_dropped(engine: Engine, admin: Session, role: str) -> None:
    with pytest.raises(QueryFailed, match="already exists"):
        admin.execute(f"CREATE ROLE {role} IN secured")
    admin.execute(f"CREATE ROLE {role}_b IN secured")
    assert {"admin", "public", role, f"{role}_b"} <= set(admin.column("SHOW ROLES FROM secured"))
    admin.execute(f"GRANT {role} TO USER bob IN secured")
    admin.execute(f"GRANT {role}_b TO ROLE {role} IN secured")
    bob = engine.session("bob")
    assert sorted(bob.column("SHOW CURRENT ROLES FROM secured")) == ["public", role, f"{role}_b"]
    assert sorted(bob.column("SHOW ROLE GRANTS FROM secured")) == ["public", role]
    applicable = (
        "SELECT grantee, grantee_type, role_name, is_grantable FROM secured.information_schema.applicable_roles"
    )
    assert sorted(bob.rows(applicable)) == [
        ["bob", "USER", "public", "NO"],
        ["bob", "USER", role, "NO"],
        [role, "ROLE", f"{role}_b", "NO"],
    ]
    bob.execute(f"SET ROLE {role}_b IN secured")
    assert sorted(bob.column("SELECT role_name FROM secured.information_schema.enabled_roles")) == [
        "public",
        f"{role}_b",
    ]
    assert denied(bob, "SET ROLE admin IN secured")
    assert denied(bob, "CREATE ROLE another IN secured")
    admin.execute(f"REVOKE {role}_b FROM ROLE {role} IN secured")
    assert sorted(engine.session("bob").column("SHOW CURRENT ROLES FROM secured")) == ["public", role]
    admin.execute(f"REVOKE {role} FROM USER bob IN secured")
    assert engine.session("bob").column("SHOW CURRENT ROLES FROM secured") == ["public"]
    admin.execute(f"DROP ROLE {role}_b IN secured")
    with pytest.raises(QueryFailed, match="does not exist"):
        admin.execute(f"DROP ROLE {role}_b IN secured")


def test_roles_granted_with_the_option_can_be_granted_on(engine: Engine, admin: Session, role: str) -> None:
    admin.execute(f"GRANT {role} TO USER bob WITH ADMIN OPTION IN secured")
    engine.session("bob").execute(f"GRANT {role} TO USER carl IN secured")
    assert sorted(engine.session("carl").column("SHOW CURRENT ROLES FROM secured")) == ["public", role]
    admin.execute(f"REVOKE ADMIN OPTION FOR {role} FROM USER bob IN secured")
    assert denied(engine.session("bob"), f"GRANT {role} TO USER dora IN secured")
    assert sorted(engine.session("bob").column("SHOW CURRENT ROLES FROM secured")) == ["public", role]


def test_grants_on_tables_permit_statements(engine: Engine, admin: Session, schema: str, role: str) -> None:
    table = f"secured.{schema}.t"
    bob = engine.session("bob")
    admin.execute(f"ALTER SCHEMA secured.{schema} SET AUTHORIZATION ROLE admin")
    admin.execute(f"CREATE TABLE {table} (a bigint)")
    owner = [["admin", "USER", privilege, "YES"] for privilege in ("DELETE", "INSERT", "SELECT", "UPDATE")]
    assert grants(admin, schema, but="") == owner
    assert denied(bob, f"SELECT * FROM {table}")
    admin.execute(f"GRANT SELECT ON {table} TO USER bob")
    assert bob.rows(f"SELECT * FROM {table}") == []
    assert denied(bob, f"INSERT INTO {table} VALUES 1")
    admin.execute(f"GRANT SELECT, INSERT ON {table} TO ROLE {role} WITH GRANT OPTION")
    assert grants(admin, schema) == [
        ["bob", "USER", "SELECT", "NO"],
        [role, "ROLE", "INSERT", "YES"],
        [role, "ROLE", "SELECT", "YES"],
    ]
    assert len(admin.rows(f"SHOW GRANTS ON {table}")) == 7
    admin.execute(f"GRANT {role} TO USER carl IN secured")
    carl = engine.session("carl")
    carl.execute(f"SET ROLE {role} IN secured")
    assert carl.changed(f"INSERT INTO {table} VALUES 1, 2") == 2
    carl.execute(f"GRANT INSERT ON {table} TO USER bob")
    assert bob.changed(f"INSERT INTO {table} VALUES 3") == 1
    assert denied(bob, f"DELETE FROM {table}")
    assert denied(bob, f"DROP TABLE {table}")
    admin.execute(f"REVOKE SELECT, INSERT ON {table} FROM USER bob")
    admin.execute(f"REVOKE GRANT OPTION FOR SELECT ON {table} FROM ROLE {role}")
    assert [[role, "ROLE", "INSERT", "YES"], [role, "ROLE", "SELECT", "NO"]] == [
        grant for grant in grants(admin, schema) if grant[0] == role
    ]
    assert denied(bob, f"SELECT * FROM {table}")
    admin.execute(f"GRANT ALL PRIVILEGES ON {table} TO ROLE PUBLIC")
    assert bob.value(f"SELECT sum(a) FROM {table}") == 6
    admin.execute(f"DROP TABLE {table}")
    assert grants(admin, schema, but="") == []


def test_owners_of_schemas_and_tables_change(engine: Engine, admin: Session, schema: str, role: str) -> None:
    bob = engine.session("bob")
    assert denied(bob, f"CREATE TABLE secured.{schema}.t (a bigint)")
    admin.execute(f"ALTER SCHEMA secured.{schema} SET AUTHORIZATION USER bob")
    bob.execute(f"CREATE TABLE secured.{schema}.t (a bigint)")
    bob.execute(f"ALTER TABLE secured.{schema}.t ADD COLUMN b varchar")
    bob.execute(f"COMMENT ON TABLE secured.{schema}.t IS 'of bob'")
    admin.execute(f"GRANT {role} TO USER carl IN secured")
    admin.execute(f"ALTER SCHEMA secured.{schema} SET AUTHORIZATION ROLE {role}")
    assert denied(bob, f"CREATE TABLE secured.{schema}.t2 (a bigint)")
    carl = engine.session("carl")
    carl.execute(f"CREATE TABLE secured.{schema}.t2 (a bigint)")
    assert denied(carl, f"DROP TABLE secured.{schema}.t")
    admin.execute(f"ALTER TABLE secured.{schema}.t SET AUTHORIZATION USER carl")
    carl.execute(f"ALTER TABLE secured.{schema}.t RENAME TO secured.{schema}.of_carl")
    carl.execute(f"DROP TABLE secured.{schema}.of_carl")
    carl.execute(f"DROP TABLE secured.{schema}.t2")
    carl.execute(f"DROP SCHEMA secured.{schema}")
