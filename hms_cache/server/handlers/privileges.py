"""Privileges and roles of SQL-standard authorization.

The methods that change them declare no exception except MetaException: its text contains the others, with the wording
of Hive 4.0.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hms_cache.server.calls import Call, HandlerTable
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    GetPrincipalsInRoleResponse,
    GetRoleGrantsForPrincipalResponse,
    GrantRevokePrivilegeResponse,
    GrantRevokeRoleResponse,
    GrantRevokeType,
    HiveObjectPrivilege,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    PrincipalPrivilegeSet,
    PrivilegeBag,
    Role,
)

handlers = HandlerTable()


@contextmanager
def _errors_as_in_hive() -> Iterator[None]:
    try:
        yield
    except (InvalidObjectException, NoSuchObjectException) as error:
        name = f"org.apache.hadoop.hive.metastore.api.{type(error).__name__}"
        raise MetaException(f"Got exception: {name} {error.message}") from error


@handlers.write("create_role", audit=lambda a: "create_role")
def create_role(call: Call, arguments: methods.create_role_args) -> bool:
    with _errors_as_in_hive():
        call.stores.auxiliary.roles.create_role(arguments.role.roleName, arguments.role.ownerName)
        return True


@handlers.write("drop_role", audit=lambda a: "drop_role")
def drop_role(call: Call, arguments: methods.drop_role_args) -> bool:
    with _errors_as_in_hive():
        call.stores.auxiliary.roles.drop_role(arguments.role_name)
        return True


@handlers.read("get_role_names")
def get_role_names(call: Call, arguments: methods.get_role_names_args) -> list[str]:
    return call.stores.auxiliary.roles.get_role_names()


@handlers.write("grant_role", audit=lambda a: "add_role_member")
def grant_role(call: Call, arguments: methods.grant_role_args) -> bool:
    with _errors_as_in_hive():
        call.stores.auxiliary.roles.grant_role(
            arguments.role_name,
            arguments.principal_name,
            arguments.principal_type,
            arguments.grantor,
            arguments.grantorType,
            grant_option=bool(arguments.grant_option),
        )
        return True


@handlers.write("revoke_role", audit=lambda a: "remove_role_member")
def revoke_role(call: Call, arguments: methods.revoke_role_args) -> bool:
    with _errors_as_in_hive():
        roles = call.stores.auxiliary.roles
        roles.revoke_role(arguments.role_name, arguments.principal_name, arguments.principal_type)
        return True


@handlers.write("grant_revoke_role")
def grant_revoke_role(call: Call, arguments: methods.grant_revoke_role_args) -> GrantRevokeRoleResponse:
    with _errors_as_in_hive():
        request, roles = arguments.request, call.stores.auxiliary.roles
        option = bool(request.grantOption)
        grant = request.roleName, request.principalName, request.principalType
        if request.requestType == GrantRevokeType.GRANT:
            roles.grant_role(*grant, request.grantor, request.grantorType, grant_option=option)
        elif request.requestType == GrantRevokeType.REVOKE:
            roles.revoke_role(*grant, grant_option=option)
        else:
            raise MetaException(f"Unknown request type {request.requestType}")
        return GrantRevokeRoleResponse(success=True)


@handlers.read("list_roles", audit=lambda a: "list_roles")
def list_roles(call: Call, arguments: methods.list_roles_args) -> list[Role]:
    return call.stores.auxiliary.roles.list_roles(arguments.principal_name, arguments.principal_type)


@handlers.read("get_principals_in_role")
def get_principals_in_role(call: Call, arguments: methods.get_principals_in_role_args) -> GetPrincipalsInRoleResponse:
    return GetPrincipalsInRoleResponse(call.stores.auxiliary.roles.get_principals_in_role(arguments.request.roleName))


@handlers.read("get_role_grants_for_principal")
def get_role_grants_for_principal(
    call: Call, arguments: methods.get_role_grants_for_principal_args
) -> GetRoleGrantsForPrincipalResponse:
    request, roles = arguments.request, call.stores.auxiliary.roles
    return GetRoleGrantsForPrincipalResponse(
        roles.get_role_grants_of_principal(request.principal_name, request.principal_type)
    )


@handlers.read("get_privilege_set")
def get_privilege_set(call: Call, arguments: methods.get_privilege_set_args) -> PrincipalPrivilegeSet:
    return call.stores.auxiliary.privileges.get_privilege_set(
        arguments.hiveObject, arguments.user_name, arguments.group_names or []
    )


@handlers.read("list_privileges")
def list_privileges(call: Call, arguments: methods.list_privileges_args) -> list[HiveObjectPrivilege]:
    if arguments.hiveObject is None:
        raise MetaException("The object whose privileges are listed cannot be null")
    return call.stores.auxiliary.privileges.list_privileges(
        arguments.principal_name, arguments.principal_type, arguments.hiveObject
    )


@handlers.write("grant_privileges", audit=lambda a: "grant_privileges")
def grant_privileges(call: Call, arguments: methods.grant_privileges_args) -> bool:
    with _errors_as_in_hive():
        call.stores.auxiliary.privileges.grant_privileges(_grants(arguments.privileges))
        return True


@handlers.write("revoke_privileges", audit=lambda a: "revoke_privileges")
def revoke_privileges(call: Call, arguments: methods.revoke_privileges_args) -> bool:
    with _errors_as_in_hive():
        call.stores.auxiliary.privileges.revoke_privileges(_grants(arguments.privileges))
        return True


@handlers.write("grant_revoke_privileges")
def grant_revoke_privileges(
    call: Call, arguments: methods.grant_revoke_privileges_args
) -> GrantRevokePrivilegeResponse:
    with _errors_as_in_hive():
        request, privileges = arguments.request, call.stores.auxiliary.privileges
        if request.requestType == GrantRevokeType.GRANT:
            privileges.grant_privileges(_grants(request.privileges))
        elif request.requestType == GrantRevokeType.REVOKE:
            privileges.revoke_privileges(_grants(request.privileges), grant_option=bool(request.revokeGrantOption))
        else:
            raise MetaException(f"Unknown request type {request.requestType}")
        return GrantRevokePrivilegeResponse(success=True)


@handlers.write("refresh_privileges")
def refresh_privileges(call: Call, arguments: methods.refresh_privileges_args) -> GrantRevokePrivilegeResponse:
    with _errors_as_in_hive():
        call.stores.auxiliary.privileges.refresh_privileges(
            arguments.objToRefresh, arguments.authorizer, _grants(arguments.grantRequest.privileges)
        )
        return GrantRevokePrivilegeResponse(success=True)


def _grants(bag: PrivilegeBag | None) -> list[HiveObjectPrivilege]:
    return list(bag.privileges or ()) if bag is not None else []
