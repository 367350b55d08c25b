"""What Presto sends, by its sources, where it differs from other clients: only the fields that it sets.

Each of its calls has a connection of its own (`ThriftHiveMetastore.getMetastoreClientThenCall`).
"""

from __future__ import annotations

from typing import Any

import pytest

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.server.conftest import Running, Serve


@pytest.fixture
def server(serve: Serve) -> Running:
    """With a database `d`."""
    server = serve()
    call(server, "create_database", database=ttypes.Database("d", ownerName="o", ownerType=1, parameters={}))
    return server


def call(server: Running, method: str, **arguments: Any) -> Any:
    link = server.link()
    try:
        return link.call(method, **arguments)
    finally:
        link.sock.close()


def sent_table(name: str, **more: Any) -> ttypes.Table:
    """As `ThriftMetastoreUtil.toMetastoreApiTable` builds it: only these fields are set."""
    serde = ttypes.SerDeInfo(name=name, serializationLib=None, parameters={})
    fields = [ttypes.FieldSchema(column, "int", None) for column in ("a", "b", "c")]
    descriptor = ttypes.StorageDescriptor(cols=fields, serdeInfo=serde, parameters={})
    grant = ttypes.PrivilegeGrantInfo("select", 0, "o", ttypes.PrincipalType.USER, True)
    values = {"owner": "o", "tableType": "MANAGED_TABLE", "parameters": {}, "partitionKeys": [], "sd": descriptor}
    privileges = ttypes.PrincipalPrivilegeSet({"o": [grant]}, {}, {})
    return ttypes.Table(name, "d", privileges=privileges, **{**values, **more})


def test_constraints(server: Running) -> None:
    """Neither catalogs nor names: not of the table, and not of its constraints."""
    flags = (True, False, True)
    call(
        server,
        "create_table_with_constraints",
        tbl=sent_table("t"),
        primaryKeys=[ttypes.SQLPrimaryKey("d", "t", name, 1 + at, None, *flags) for at, name in enumerate("ba")],
        foreignKeys=[],
        uniqueConstraints=[ttypes.SQLUniqueConstraint(None, "d", "t", "c", 1, None, *flags)],
        notNullConstraints=[ttypes.SQLNotNullConstraint(None, "d", "t", "a", "given", *flags)],
        defaultConstraints=[],
        checkConstraints=[],
    )
    keys = call(server, "get_primary_keys", request=ttypes.PrimaryKeysRequest("d", "t")).primaryKeys
    assert [(one.column_name, one.enable_cstr, one.validate_cstr, one.rely_cstr) for one in keys] == [
        ("b", *flags),
        ("a", *flags),
    ]
    unique = ttypes.UniqueConstraintsRequest("hive", "d", "t")
    [first] = call(server, "get_unique_constraints", request=unique).uniqueConstraints
    assert first.uk_name
    assert len({one.pk_name for one in keys}) == 1 and keys[0].pk_name
    catalog = call(server, "get_table", dbname="d", tbl_name="t").catName
    more = [ttypes.SQLUniqueConstraint(catalog, "d", "t", "b", 1, None, *flags)]
    call(server, "add_unique_constraint", req=ttypes.AddUniqueConstraintRequest(more))
    found = call(server, "get_unique_constraints", request=unique).uniqueConstraints
    assert sorted(one.column_name for one in found) == ["b", "c"]
    assert len({one.uk_name for one in found}) == 2
    request = ttypes.NotNullConstraintsRequest("hive", "d", "t")
    assert [one.nn_name for one in call(server, "get_not_null_constraints", request=request).notNullConstraints] == [
        "given"
    ]
    for name in (keys[0].pk_name, "given"):
        call(server, "drop_constraint", req=ttypes.DropConstraintRequest("d", "t", name))
    assert call(server, "get_primary_keys", request=ttypes.PrimaryKeysRequest("d", "t")).primaryKeys == []
    again = [ttypes.SQLPrimaryKey("d", "t", "c", 1, None, *flags, catName=catalog)]
    call(server, "add_primary_key", req=ttypes.AddPrimaryKeyRequest(again))
    assert len(call(server, "get_primary_keys", request=ttypes.PrimaryKeysRequest("d", "t")).primaryKeys) == 1


def test_a_view(server: Running) -> None:
    """Without columns, formats and a location; found again by a parameter."""
    sent = sent_table(
        "v",
        tableType="VIRTUAL_VIEW",
        parameters={"presto_view": "true", "comment": "Presto View"},
        viewOriginalText="/* Presto View: eyJ9 */",
        viewExpandedText="/* Presto View */",
    )
    sent.sd.cols = []
    call(server, "create_table", tbl=sent)
    found = call(server, "get_table", dbname="d", tbl_name="v")
    assert found.partitionKeys == [] and found.sd.serdeInfo is not None and found.sd.cols == []
    assert (found.viewOriginalText, found.viewExpandedText) == (sent.viewOriginalText, sent.viewExpandedText)
    text = 'hive_filter_field_params__presto_view = "true"'
    assert call(server, "get_table_names_by_filter", dbname="d", filter=text, max_tables=-1) == ["v"]
    call(server, "alter_table", dbname="d", tbl_name="v", new_tbl=sent)
    assert call(server, "get_table", dbname="d", tbl_name="v").viewOriginalText == sent.viewOriginalText


def test_locks(server: Running) -> None:
    """Without a transaction, for an unnamed operation, and still held when the connection has ended."""
    component = ttypes.LockComponent(ttypes.LockType.EXCLUSIVE, ttypes.LockLevel.TABLE, "d", tablename="t")
    first = call(server, "lock", rqst=ttypes.LockRequest([component], user="u", hostname="h"))
    second = call(server, "lock", rqst=ttypes.LockRequest([component], user="u", hostname="h"))
    assert (first.state, second.state) == (ttypes.LockState.ACQUIRED, ttypes.LockState.WAITING)
    waiting = ttypes.CheckLockRequest(second.lockid)
    assert call(server, "check_lock", rqst=waiting).state == ttypes.LockState.WAITING
    call(server, "unlock", rqst=ttypes.UnlockRequest(first.lockid))
    assert call(server, "check_lock", rqst=waiting).state == ttypes.LockState.ACQUIRED
    call(server, "unlock", rqst=ttypes.UnlockRequest(second.lockid))


def test_privileges_of_all(server: Running) -> None:
    """Of a table for anybody: no principal is named."""
    call(server, "create_table", tbl=sent_table("t"))
    place = ttypes.HiveObjectRef(ttypes.HiveObjectType.TABLE, "d", "t", None, None)
    grant = ttypes.PrivilegeGrantInfo("insert", 0, "o", ttypes.PrincipalType.USER, False)
    bag = ttypes.PrivilegeBag([ttypes.HiveObjectPrivilege(place, "r", ttypes.PrincipalType.ROLE, grant)])
    call(server, "create_role", role=ttypes.Role("r", 0, "o"))
    assert call(server, "grant_privileges", privileges=bag) is True
    found = call(server, "list_privileges", principal_name=None, principal_type=None, hiveObject=place)
    assert sorted((one.principalName, one.grantInfo.privilege) for one in found) == [("o", "select"), ("r", "insert")]
    assert call(server, "revoke_privileges", privileges=bag) is True
    found = call(
        server, "list_privileges", principal_name="r", principal_type=ttypes.PrincipalType.ROLE, hiveObject=place
    )
    assert found == []


def test_statistics(server: Running) -> None:
    """Without bounds and without the time of the analysis."""
    call(server, "create_table", tbl=sent_table("t"))
    stats = [
        ttypes.ColumnStatisticsObj(
            "a", "int", ttypes.ColumnStatisticsData(longStats=ttypes.LongColumnStatsData(numNulls=0, numDVs=0))
        )
    ]
    description = ttypes.ColumnStatisticsDesc(True, "d", "t")
    call(server, "update_table_column_statistics", stats_obj=ttypes.ColumnStatistics(description, stats))
    request = ttypes.TableStatsRequest("d", "t", ["a", "b"])
    [found] = call(server, "get_table_statistics_req", request=request).tableStats
    assert found.statsData.longStats.lowValue is None
    call(server, "delete_table_column_statistics", db_name="d", tbl_name="t", col_name="a")
    assert call(server, "get_table_statistics_req", request=request).tableStats == []
