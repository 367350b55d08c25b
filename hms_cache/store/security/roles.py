"""Roles of SQL-standard authorization, and their members. Facts: `HMSHandler`, `ObjectStore` (Hive 3.1, 4.0.1).

Every user has the role `public` without a grant; it cannot be created, granted, revoked or dropped. `admin` always
exists and cannot be dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, Select, and_, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.store.engine.context import PartOfStore
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.listing import limited, listed
from hms_cache.store.engine.text_conditions import same_text
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.rows.comparable_texts import comparable_rows
from hms_cache.store.schema import ROLE_MAP, ROLES
from hms_cache.store.security.grant_log import log_change
from hms_cache.store.security.privilege_levels import LEVELS
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
    Role,
    RolePrincipalGrant,
)

ADMIN = "admin"
PUBLIC = "public"

_MEMBERS = select(
    ROLES.c.ROLE_NAME,
    ROLE_MAP.c.PRINCIPAL_NAME,
    ROLE_MAP.c.PRINCIPAL_TYPE,
    ROLE_MAP.c.GRANT_OPTION,
    ROLE_MAP.c.ADD_TIME,
    ROLE_MAP.c.GRANTOR,
    ROLE_MAP.c.GRANTOR_TYPE,
).join(ROLES, ROLES.c.ROLE_ID == ROLE_MAP.c.ROLE_ID)


class Roles(PartOfStore):
    """Reads and writes of roles. Thread-safe; each method is one transaction."""

    def ensure_admins(self, users: Iterable[str]) -> None:
        """Grants the role `admin` to users who lack it, as Hive's server does when it starts
        (`HMSHandler.addAdminUsers`)."""
        for user in users:
            if ADMIN not in [role.roleName for role in self.list_roles(user, PrincipalType.USER)]:
                with suppress(InvalidObjectException):  # another server that is starting was faster
                    self.grant_role(ADMIN, user, PrincipalType.USER, ADMIN, PrincipalType.ROLE, grant_option=True)

    def create_role(self, name: str | None, owner: str | None) -> None:
        """Creates a role.

        :raises InvalidObjectException: it exists.
        :raises MetaException: it is `public`, or has no name.
        """
        if name is None:
            raise MetaException("Role name cannot be null.")
        if name == PUBLIC:
            raise MetaException("public role implicitly exists. It can't be created.")

        def create(transaction: WriteTransaction) -> None:
            # On MySQL it cannot exist beside a role whose name differs only in trailing blanks or case.
            for known in transaction.connection.execute(_role_like(name)):
                raise InvalidObjectException(f"Role {known.ROLE_NAME} already exists.")
            self._insert(transaction, name, owner)
            log_change(transaction, self._context)

        run_write(self._database, create, ids={"MRole": 1})

    def drop_role(self, name: str) -> None:
        """Drops a role with everything that was granted to it. It is no error if it does not exist.

        :raises MetaException: it is `admin` or `public`.
        """
        if name in (ADMIN, PUBLIC):
            raise MetaException("public,admin roles can't be dropped.")

        def drop(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            role_id = _role_id(connection, name, locks=True)
            if role_id is None:
                return
            log_change(transaction, self._context)
            connection.execute(delete(ROLE_MAP).where(ROLE_MAP.c.ROLE_ID == role_id))
            features = features_of(connection)
            for table in (ROLE_MAP, *(level.table for level in LEVELS)):
                if features.has(table):
                    is_role = same_text(table.c.PRINCIPAL_NAME, name) & (table.c.PRINCIPAL_TYPE == "ROLE")
                    connection.execute(delete(table).where(is_role))
            try:
                connection.execute(delete(ROLES).where(ROLES.c.ROLE_ID == role_id))
            except IntegrityError as error:
                raise RetryableConflict(f"role {name} was granted while it was dropped") from error

        run_write(self._database, drop)

    def get_role_names(self) -> list[str]:
        """All roles, ascending, except one stored without a name, which cannot be granted."""
        statement = limited(select(ROLES.c.ROLE_NAME).where(ROLES.c.ROLE_NAME.is_not(None)))
        names = run_read(self._database, lambda connection: connection.execute(statement).scalars().all())
        return sorted(listed(names, "roles"))

    def grant_role(
        self,
        name: str,
        principal: str,
        principal_type: int,
        grantor: str | None,
        grantor_type: int | None,
        *,
        grant_option: bool,
    ) -> None:
        """Grants the role to a principal.

        :raises NoSuchObjectException: no such role (granted or receiving).
        :raises InvalidObjectException: the principal has it already.
        :raises MetaException: it is `public`, or the roles would form a cycle.
        """
        if name == PUBLIC:
            raise MetaException("No user can be added to public. Since all users implicitly belong to public role.")
        kind = type_name(principal_type)

        def grant(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            log_change(transaction, self._context)
            # All grants of roles are serialized here: two concurrent ones could form a cycle.
            connection.execute(select(ROLES.c.ROLE_ID).where(ROLES.c.ROLE_NAME == ADMIN).with_for_update()).all()
            # Both roles are also locked against drops: a new role of the same name would otherwise be granted.
            role_id = _required_role_id(connection, name, locks=True)
            if kind == "ROLE" and _is_ancestor(connection, principal, name):
                raise MetaException(
                    f"Cannot grant role {principal} to {name} as {name} already belongs to the role {principal}."
                    " (no cycles allowed)"
                )
            if _grant_id(connection, role_id, principal, kind) is not None:
                raise InvalidObjectException(f"Principal {principal} already has the role {name}")
            if kind == "ROLE" and _role_id(connection, principal, locks=True) is None:
                raise NoSuchObjectException(f"Role {principal} does not exist")
            try:
                connection.execute(
                    insert(ROLE_MAP).values(
                        ROLE_GRANT_ID=transaction.id("MRoleMap"),
                        ADD_TIME=self._context.now_s(),
                        GRANT_OPTION=int(grant_option),
                        GRANTOR=grantor,
                        GRANTOR_TYPE=None if grantor_type is None else type_name(grantor_type),
                        PRINCIPAL_NAME=principal,
                        PRINCIPAL_TYPE=kind,
                        ROLE_ID=role_id,
                    )
                )
            except IntegrityError as error:
                # The unique key does not contain the principal's type, so a user and a role of one name share it.
                raise InvalidObjectException(f"Principal {principal} already has the role {name}") from error

        run_write(self._database, grant, ids={"MRoleMap": 1})

    def revoke_role(self, name: str, principal: str, principal_type: int, *, grant_option: bool = False) -> None:
        """Revokes the role, or with `grant_option` only the right to grant it.

        It is no error if the principal does not have the role, as in Hive.

        :raises NoSuchObjectException: no such role.
        :raises MetaException: it is `public`, or the principal does not have the grant option.
        """
        if name == PUBLIC:
            raise MetaException("public role can't be revoked.")
        kind = type_name(principal_type)

        def revoke(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            log_change(transaction, self._context)
            grant_id = _grant_id(connection, _required_role_id(connection, name), principal, kind)
            is_it = ROLE_MAP.c.ROLE_GRANT_ID == grant_id
            if not grant_option:
                if grant_id is not None:
                    connection.execute(delete(ROLE_MAP).where(is_it))
                return
            with_option = and_(is_it, ROLE_MAP.c.GRANT_OPTION == 1)
            if (
                grant_id is None
                or not connection.execute(update(ROLE_MAP).where(with_option).values(GRANT_OPTION=0)).rowcount
            ):
                raise MetaException(f"User {principal} does not have grant option with role {name}")

        run_write(self._database, revoke)

    def list_roles(self, principal: str, principal_type: int) -> list[Role]:
        """The roles granted to a principal, by name; a user's list ends with `public`."""
        statement = (
            select(ROLES.c.ROLE_NAME, ROLES.c.CREATE_TIME, ROLES.c.OWNER_NAME)
            .join(ROLE_MAP, ROLES.c.ROLE_ID == ROLE_MAP.c.ROLE_ID)
            .where(
                same_text(ROLE_MAP.c.PRINCIPAL_NAME, principal), ROLE_MAP.c.PRINCIPAL_TYPE == type_name(principal_type)
            )
        )
        rows = run_read(self._database, lambda connection: comparable_rows(connection, limited(statement), {}))
        roles = sorted((Role(*row) for row in listed(rows, "roles")), key=lambda role: str(role.roleName))
        if principal_type == PrincipalType.USER:
            roles.append(Role(PUBLIC, 0, PUBLIC))
        return roles

    def get_role_grants_of_principal(self, principal: str, principal_type: int) -> list[RolePrincipalGrant]:
        """The roles of a principal with the details of the grants."""
        kind = type_name(principal_type)
        grants = self._grants(
            _MEMBERS.where(same_text(ROLE_MAP.c.PRINCIPAL_NAME, principal), ROLE_MAP.c.PRINCIPAL_TYPE == kind)
        )
        if principal_type == PrincipalType.USER:
            grants.append(RolePrincipalGrant(PUBLIC, principal, PrincipalType.USER, False, 0, None, None))
        return grants

    def get_principals_in_role(self, name: str) -> list[RolePrincipalGrant]:
        """The members of a role, by name and type."""
        return self._grants(_MEMBERS.where(same_text(ROLES.c.ROLE_NAME, name)))

    def _grants(self, statement: Select[Any]) -> list[RolePrincipalGrant]:
        rows = run_read(self._database, lambda connection: comparable_rows(connection, limited(statement), {}))
        grants = [
            RolePrincipalGrant(role, principal, _type(kind), bool(option), time_s, grantor, _type(grantor_kind))
            for role, principal, kind, option, time_s, grantor, grantor_kind in listed(rows, "grants of roles")
        ]
        # Both names can be NULL in the tables, since a client may omit them.
        return sorted(
            grants, key=lambda grant: (grant.roleName or "", grant.principalName or "", grant.principalType or 0)
        )

    def _insert(self, transaction: WriteTransaction, name: str, owner: str | None) -> None:
        values = {"ROLE_ID": transaction.id("MRole"), "CREATE_TIME": self._context.now_s(), "OWNER_NAME": owner}
        try:
            transaction.connection.execute(insert(ROLES).values({**values, "ROLE_NAME": name}))
        except IntegrityError as error:
            raise RetryableConflict(f"somebody else created role {name}") from error


def type_name(value: int | None) -> str:
    """`USER`, `ROLE` or `GROUP`. Raises MetaException for anything else."""
    name = None if value is None else PrincipalType._VALUES_TO_NAMES.get(value)
    if name is None:
        raise MetaException(f"Unknown principal type {value}")
    return str(name)


def _type(name: str | None) -> int | None:
    return None if name is None else PrincipalType._NAMES_TO_VALUES.get(name)


def _role_id(connection: Connection, name: str, *, locks: bool = False) -> int | None:
    """The id of the role with exactly this name."""
    statement = select(ROLES.c.ROLE_ID).where(same_text(ROLES.c.ROLE_NAME, name))
    found: int | None = connection.execute(statement.with_for_update() if locks else statement).scalar()
    return found


def _role_like(name: str) -> Select[Any]:
    """Selects id and name of the role that the database finds for the name."""
    return select(ROLES.c.ROLE_ID, ROLES.c.ROLE_NAME).where(ROLES.c.ROLE_NAME == name)


def _required_role_id(connection: Connection, name: str, *, locks: bool = False) -> int:
    role_id = _role_id(connection, name, locks=locks)
    if role_id is None:
        raise NoSuchObjectException(f"{name} role can not be found.")
    return role_id


def _grant_id(connection: Connection, role_id: int, principal: str, kind: str) -> int | None:
    statement = (
        select(ROLE_MAP.c.ROLE_GRANT_ID)
        .where(
            ROLE_MAP.c.ROLE_ID == role_id,
            same_text(ROLE_MAP.c.PRINCIPAL_NAME, principal),
            ROLE_MAP.c.PRINCIPAL_TYPE == kind,
        )
        .order_by(ROLE_MAP.c.ROLE_GRANT_ID)
    )
    found: int | None = connection.execute(statement).scalars().first()
    return found


def _is_ancestor(connection: Connection, ancestor: str, role: str) -> bool:
    """Whether `ancestor` is the role itself, or was granted to it, directly or indirectly."""
    statement = _MEMBERS.where(ROLE_MAP.c.PRINCIPAL_TYPE == "ROLE")
    parents: dict[str, list[str]] = {}
    for row in connection.execute(statement):
        parents.setdefault(row.PRINCIPAL_NAME, []).append(row.ROLE_NAME)
    seen, pending = set(), [role]
    while pending:
        current = pending.pop()
        if current == ancestor:
            return True
        if current not in seen:
            seen.add(current)
            pending += parents.get(current, [])
    return False
