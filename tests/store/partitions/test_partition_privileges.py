"""Privileges per partition: inherited from the table, returned to a grantee."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import insert, select

from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import AllPartitions, Grantee, PartitionQuery
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.schema import (
    PART_COL_PRIVS,
    PART_PRIVS,
    ROLE_MAP,
    ROLES,
    TBL_COL_PRIVS,
    TBL_PRIVS,
    TBLS,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import PrincipalPrivilegeSet
from tests.store.partitions.catalog import PartitionCatalog, partition

T = ("hive", "d", "t")


def grant_on_table(catalog: PartitionCatalog, kind: str, principal: str, privilege: str) -> None:
    def grant(transaction: WriteTransaction) -> None:
        connection = transaction.connection
        table_id = connection.execute(select(TBLS.c.TBL_ID)).scalar_one()
        common = {
            "CREATE_TIME": 1,
            "GRANT_OPTION": 1,
            "GRANTOR": "admin",
            "GRANTOR_TYPE": "USER",
            "TBL_ID": table_id,
            "PRINCIPAL_NAME": principal,
            "PRINCIPAL_TYPE": kind,
            "AUTHORIZER": "SQL",
        }
        identity = transaction.id("MTablePrivilege")
        connection.execute(insert(TBL_PRIVS).values({**common, "TBL_GRANT_ID": identity, "TBL_PRIV": privilege}))
        identity = transaction.id("MTableColumnPrivilege")
        row = {**common, "TBL_COLUMN_GRANT_ID": identity, "TBL_COL_PRIV": privilege, "COLUMN_NAME": "v"}
        connection.execute(insert(TBL_COL_PRIVS).values(row))

    run_write(catalog.database, grant)


def grant_role(catalog: PartitionCatalog, role: str, kind: str, principal: str) -> None:
    def grant(transaction: WriteTransaction) -> None:
        connection = transaction.connection
        role_id = connection.execute(select(ROLES.c.ROLE_ID).where(ROLES.c.ROLE_NAME == role)).scalar()
        if role_id is None:
            role_id = transaction.id("MRole")
            connection.execute(insert(ROLES).values(ROLE_ID=role_id, CREATE_TIME=1, ROLE_NAME=role, OWNER_NAME="a"))
        connection.execute(
            insert(ROLE_MAP).values(
                ROLE_GRANT_ID=transaction.id("MRoleMap"),
                ADD_TIME=1,
                GRANT_OPTION=0,
                PRINCIPAL_NAME=principal,
                PRINCIPAL_TYPE=kind,
                ROLE_ID=role_id,
            )
        )

    run_write(catalog.database, grant)


def granted(privileges: PrincipalPrivilegeSet) -> dict[str, dict[str, list[str]] | None]:
    def names(by_principal: dict[str, list[Any]] | None) -> dict[str, list[str]] | None:
        if by_principal is None:
            return None
        return {principal: [one.privilege for one in infos] for principal, infos in by_principal.items()}

    return {
        "users": names(privileges.userPrivileges),
        "groups": names(privileges.groupPrivileges),
        "roles": names(privileges.rolePrivileges),
    }


@pytest.fixture
def protected(catalog: PartitionCatalog) -> PartitionCatalog:
    catalog.create_table(parameters={"PARTITION_LEVEL_PRIVILEGE": "true"})
    grant_on_table(catalog, "USER", "u", "SELECT")
    grant_on_table(catalog, "USER", "u", "INSERT")
    grant_on_table(catalog, "USER", "other", "DROP")
    grant_on_table(catalog, "GROUP", "g", "ALTER")
    grant_on_table(catalog, "ROLE", "inner", "UPDATE")
    catalog.writes.add_partitions(TableName(*T), [partition("a", "0"), partition("a", "1")])
    return catalog


def test_privileges_are_inherited_and_answered(protected: PartitionCatalog) -> None:
    assert len(protected.rows(PART_PRIVS)) == 10
    assert len(protected.rows(PART_COL_PRIVS)) == 10
    grant_role(protected, "outer", "USER", "u")
    grant_role(protected, "inner", "ROLE", "outer")
    grantee = Grantee("u", ("g", "h"))
    for one in protected.reads.get_partitions(PartitionQuery(TableName(*T)), grantee=grantee).partitions:
        assert granted(one.privileges) == {
            "users": {"u": ["INSERT", "SELECT"]},
            "groups": {"g": ["ALTER"], "h": []},
            "roles": {"inner": ["UPDATE"], "outer": [], "public": []},
        }
        [insert_grant, _] = one.privileges.userPrivileges["u"]
        assert (insert_grant.grantor, insert_grant.grantorType, insert_grant.grantOption) == ("admin", 1, True)
    [plain, _] = protected.reads.get_partitions(PartitionQuery(TableName(*T))).partitions
    assert plain.privileges is None


def test_privileges_go_with_their_partitions(protected: PartitionCatalog) -> None:
    protected.writes.drop_partitions(TableName(*T), AllPartitions(), delete_data=False)
    assert (protected.rows(PART_PRIVS), protected.rows(PART_COL_PRIVS)) == ([], [])


def test_tables_that_keep_no_privileges_per_partition(catalog: PartitionCatalog) -> None:
    catalog.create_table()
    grant_on_table(catalog, "USER", "u", "SELECT")
    catalog.writes.add_partitions(TableName(*T), [partition("a", "0")])
    assert catalog.rows(PART_PRIVS) == []
    found = catalog.reads.get_partition(TableName(*T), ["a", "0"], grantee=Grantee("u"))
    assert found.privileges is None
