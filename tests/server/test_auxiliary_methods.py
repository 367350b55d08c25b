"""Rarely used groups of methods through a whole server: their variants, answers and refusals on the wire."""

from __future__ import annotations

import uuid

import pytest
from thrift.Thrift import TApplicationException

from hms_cache.server.handlers.table import METHODS_NOT_SERVED, all_handlers
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import METHODS
from tests.server.conftest import Link, Serve, database, table

USER, ROLE = ttypes.PrincipalType.USER, ttypes.PrincipalType.ROLE


@pytest.fixture
def link(serve: Serve) -> Link:
    return serve().link()


def test_roles_and_privileges(link: Link) -> None:
    assert link.call("get_role_names") == ["admin", "public"]
    assert link.call("create_role", role=ttypes.Role("r", 0, "o")) is True
    with pytest.raises(ttypes.MetaException) as raised:
        link.call("create_role", role=ttypes.Role("r", 0, "o"))
    name = "org.apache.hadoop.hive.metastore.api.InvalidObjectException"
    assert raised.value.message == f"Got exception: {name} Role r already exists."
    granted = {"role_name": "r", "principal_name": "u", "principal_type": USER}
    assert link.call("grant_role", **granted, grantor="g", grantorType=USER, grant_option=True) is True
    assert [role.roleName for role in link.call("list_roles", principal_name="u", principal_type=USER)] == [
        "r",
        "public",
    ]
    members = link.call("get_principals_in_role", request=ttypes.GetPrincipalsInRoleRequest("r"))
    assert [grant.principalName for grant in members.principalGrants] == ["u"]
    request = ttypes.GetRoleGrantsForPrincipalRequest("u", USER)
    assert len(link.call("get_role_grants_for_principal", request=request).principalGrants) == 2
    revoke = ttypes.GrantRevokeRoleRequest(ttypes.GrantRevokeType.REVOKE, "r", "u", USER, grantOption=True)
    assert link.call("grant_revoke_role", request=revoke).success is True
    assert link.call("revoke_role", **granted) is True
    regrant = ttypes.GrantRevokeRoleRequest(ttypes.GrantRevokeType.GRANT, "r", "u", USER, "g", USER, False)
    assert link.call("grant_revoke_role", request=regrant).success is True

    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=table("d", "t"))
    reference = ttypes.HiveObjectRef(ttypes.HiveObjectType.TABLE, "d", "t")
    info = ttypes.PrivilegeGrantInfo("SELECT", 0, "g", USER, False)
    bag = ttypes.PrivilegeBag([ttypes.HiveObjectPrivilege(reference, "r", ROLE, info, "SQL")])
    assert link.call("grant_privileges", privileges=bag) is True
    found = link.call("list_privileges", principal_name=None, principal_type=None, hiveObject=ttypes.HiveObjectRef())
    assert {(each.principalName, each.grantInfo.privilege) for each in found} >= {("r", "SELECT"), ("admin", "All")}
    privileges = link.call("get_privilege_set", hiveObject=reference, user_name="u", group_names=[])
    assert [each.privilege for each in privileges.rolePrivileges["r"]] == ["SELECT"]
    assert link.call("revoke_privileges", privileges=bag) is True
    with pytest.raises(ttypes.MetaException, match="No grant"):
        link.call("revoke_privileges", privileges=bag)
    grant = ttypes.GrantRevokePrivilegeRequest(ttypes.GrantRevokeType.GRANT, bag)
    assert link.call("grant_revoke_privileges", request=grant).success is True
    empty = ttypes.GrantRevokePrivilegeRequest(ttypes.GrantRevokeType.GRANT, ttypes.PrivilegeBag([]))
    assert link.call("refresh_privileges", objToRefresh=reference, authorizer="SQL", grantRequest=empty).success
    assert link.call("list_privileges", principal_name="r", principal_type=ROLE, hiveObject=reference) == []
    assert link.call("drop_role", role_name="r") is True


def test_all_grants_on_the_columns_of_a_wide_table_in_one_request(link: Link) -> None:
    """As sent by HiveServer2 with Ranger, which skips a table whose request is refused."""
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=table("d", "t"))
    info = ttypes.PrivilegeGrantInfo("1 0 0 0 0 0 0 0 0", 0, "ranger", USER, False)
    grants = [
        ttypes.HiveObjectPrivilege(
            ttypes.HiveObjectRef(ttypes.HiveObjectType.COLUMN, "d", "t", None, f"c{column}"), user, USER, info, "R"
        )
        for column in range(400)
        for user in ("u", "v", "w")
    ]
    request = ttypes.GrantRevokePrivilegeRequest(ttypes.GrantRevokeType.GRANT, ttypes.PrivilegeBag(grants))
    columns = ttypes.HiveObjectRef(ttypes.HiveObjectType.COLUMN, "d", "t")
    for _ in range(2):
        assert link.call("refresh_privileges", objToRefresh=columns, authorizer="R", grantRequest=request).success
    found = link.call("list_privileges", principal_name=None, principal_type=None, hiveObject=columns)
    assert len(found) == len(grants)
    assert link.call("revoke_privileges", privileges=request.privileges) is True
    assert link.call("list_privileges", principal_name=None, principal_type=None, hiveObject=columns) == []


TOKEN_CALLS = {
    "add_token": {"token_identifier": "i", "delegation_token": "t"},
    "remove_token": {"token_identifier": "i"},
    "get_token": {"token_identifier": "i"},
    "get_all_token_identifiers": {},
    "add_master_key": {"key": "k"},
    "update_master_key": {"seq_number": 1, "key": "k"},
    "remove_master_key": {"key_seq": 1},
    "get_master_keys": {},
    "get_delegation_token": {"token_owner": "o", "renewer_kerberos_principal_name": "r"},
    "renew_delegation_token": {"token_str_form": "t"},
    "cancel_delegation_token": {"token_str_form": "t"},
}


def test_every_call_about_tokens_and_keys_is_in_the_table() -> None:
    """A call that a later version adds is not left open."""
    about = {name for name in METHODS if ("token" in name or "master_key" in name)}
    assert about == TOKEN_CALLS.keys()


@pytest.mark.parametrize("name", TOKEN_CALLS)
def test_tokens_and_keys_are_not_for_everybody(link: Link, name: str) -> None:
    """A client that reads the master keys can forge tokens for each Kerberized server on the same database."""
    with pytest.raises((ttypes.MetaException, TApplicationException)) as raised:
        link.call(name, **TOKEN_CALLS[name])
    hint = "kerberos" if "delegation_token" in name else "security.delegation_tokens"
    assert hint in str(raised.value)
    if ttypes.MetaException in METHODS[name].exceptions:
        assert isinstance(raised.value, ttypes.MetaException)


def test_tokens(serve: Serve) -> None:
    link = serve(**{"security.delegation_tokens": True}).link()
    assert link.call("add_token", token_identifier="i", delegation_token="t") is True
    assert (link.call("get_token", token_identifier="i"), link.call("get_all_token_identifiers")) == ("t", ["i"])
    assert link.call("remove_token", token_identifier="i") is True
    number = link.call("add_master_key", key="k")
    link.call("update_master_key", seq_number=number, key="l")
    assert link.call("get_master_keys") == ["l"]
    assert link.call("remove_master_key", key_seq=number) is True
    with pytest.raises(ttypes.MetaException, match="Delegation Token can be issued only with kerberos"):
        link.call("get_delegation_token", token_owner="o", renewer_kerberos_principal_name="r")


def test_data_connectors_in_both_spellings(link: Link) -> None:
    connector = ttypes.DataConnector("c", "mysql", "u", ownerName="o", parameters={})
    link.call("create_dataconnector", connector=connector)
    with pytest.raises(ttypes.AlreadyExistsException):
        link.call("create_dataconnector_req", connectorReq=ttypes.CreateDataConnectorRequest(connector))
    connector.url = "v"
    link.call("alter_dataconnector", name="c", connector=connector)
    request = ttypes.GetDataConnectorRequest("c")
    assert link.call("get_dataconnector_req", request=request).url == "v"
    connector.url = "w"
    link.call("alter_dataconnector_req", alterReq=ttypes.AlterDataConnectorRequest("c", connector))
    assert link.call("get_dataconnector_req", request=request).url == "w"
    assert link.call("get_dataconnectors") == ["c"]
    link.call("drop_dataconnector", name="c", ifNotExists=False, checkReferences=False)
    with pytest.raises(ttypes.NoSuchObjectException):
        link.call("drop_dataconnector_req", dropDcReq=ttypes.DropDataConnectorRequest("c", False, False))


def test_stored_programs(link: Link) -> None:
    link.call("create_stored_procedure", proc=ttypes.StoredProcedure("p", "default", "hive", "o", "s"))
    request = ttypes.StoredProcedureRequest("hive", "default", "p")
    assert link.call("get_stored_procedure", request=request).source == "s"
    assert link.call("get_all_stored_procedures", request=ttypes.ListStoredProcedureRequest("hive")) == ["p"]
    link.call("drop_stored_procedure", request=request)
    with pytest.raises(ttypes.NoSuchObjectException):
        link.call("get_stored_procedure", request=request)
    link.call("add_package", request=ttypes.AddPackageRequest("hive", "default", "p", "o", "h", "b"))
    with pytest.raises(ttypes.MetaException, match=r"There is no database hive\.nope"):
        link.call("add_package", request=ttypes.AddPackageRequest("hive", "nope", "p", "o", "h", "b"))
    found = ttypes.GetPackageRequest("hive", "default", "p")
    assert link.call("find_package", request=found).body == "b"
    assert link.call("get_all_packages", request=ttypes.ListPackageRequest("hive")) == ["p"]
    link.call("drop_package", request=ttypes.DropPackageRequest("hive", "default", "p"))
    with pytest.raises(ttypes.NoSuchObjectException):
        link.call("find_package", request=found)


def test_reports_types_and_identity(link: Link) -> None:
    found = link.call("get_metastore_db_uuid")
    assert str(uuid.UUID(found)) == found == link.call("get_metastore_db_uuid")
    link.call("add_runtime_stats", stat=ttypes.RuntimeStat(1, 2, b"p"))
    [statistic] = link.call("get_runtime_stats", rqst=ttypes.GetRuntimeStatsRequest(-1, -1))
    assert (statistic.weight, statistic.payload) == (2, b"p")
    assert statistic.createTime > 1
    with pytest.raises(ttypes.MetaException, match="needs maxWeight and maxCreateTime"):
        link.call("get_runtime_stats", rqst=ttypes.GetRuntimeStatsRequest(-1, None))
    metrics = ttypes.ReplicationMetricList([ttypes.ReplicationMetrics(1, "p", 2, "m", "q", "json-0.2")])
    link.call("add_replication_metrics", replicationMetricList=metrics)
    assert link.call("get_replication_metrics", rqst=ttypes.GetReplicationMetricsRequest(policy="p")) == metrics
    link.call("update_transaction_statistics", req=ttypes.UpdateTransactionalStatsRequest(1, 1, 1, 1))
    named = ttypes.Type("n", fields=[ttypes.FieldSchema("a", "int", None)])
    assert link.call("create_type", type=named) is True
    assert link.call("get_type", name="n") == named
    assert link.call("drop_type", type="n") is True
    with pytest.raises(ttypes.NoSuchObjectException):
        link.call("get_type", name="n")
    with pytest.raises(ttypes.MetaException, match="Not yet implemented"):
        link.call("get_type_all", name="n")


def test_what_a_request_lacks_is_named(link: Link) -> None:
    """As in Java: a missing argument is a MetaException, a missing field of a request a protocol error."""
    with pytest.raises(ttypes.MetaException, match="drop_type needs the argument type"):
        link.call("drop_type", type=None)
    for method, request, absent in (
        ("find_package", ttypes.GetPackageRequest("hive", None, "p"), "GetPackageRequest.dbName"),
        ("create_dataconnector_req", ttypes.CreateDataConnectorRequest(None), "CreateDataConnectorRequest.connector"),
    ):
        with pytest.raises(TApplicationException, match=absent) as raised:
            link.call(method, **{METHODS[method].args_class.__slots__[0]: request})
        assert raised.value.type == TApplicationException.PROTOCOL_ERROR
    assert link.call("get_dataconnectors") == []


def test_a_connector_without_an_owner_is_its_creator_s(link: Link) -> None:
    link.call("set_ugi", user_name="ann", group_names=[])
    link.call("create_dataconnector", connector=ttypes.DataConnector("c", "mysql", "u"))
    found = link.call("get_dataconnector_req", request=ttypes.GetDataConnectorRequest("c"))
    assert found.ownerName == "ann"


def test_settings_of_a_connection(link: Link) -> None:
    key = "metastore.try.direct.sql"
    link.call("setMetaConf", key=key, value="false")
    assert link.call("getMetaConf", key=key) == "false"
    for name in ("client.capability.check", "disallow.incompatible.col.type.changes"):
        assert link.call("getMetaConf", key=f"metastore.{name}") == "true"
        with pytest.raises(ttypes.MetaException, match="for the whole server only, by catalog"):
            link.call("setMetaConf", key=f"hive.metastore.{name}", value="false")
    with pytest.raises(ttypes.MetaException, match="Invalid configuration key"):
        link.call("getMetaConf", key="metastore.batch.retrieve.max")
    for method in ("getMetaConf", "setMetaConf"):
        with pytest.raises(ttypes.MetaException, match="Invalid configuration key null"):
            link.call(method, key=None)


@pytest.mark.parametrize("time", ["30", "30s", "5MIN", "1hours", "-1"])
def test_times_of_a_connection(link: Link, time: str) -> None:
    for prefix in ("", "hive."):
        link.call("setMetaConf", key=f"{prefix}metastore.client.socket.timeout", value=time)
        assert link.call("getMetaConf", key="metastore.client.socket.timeout") == time


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("client.socket.timeout", value) for value in ("", "soon", "5 minutes", "5x", "1.5s", "-5s", "9" * 19)),
        ("partition.order.expr", '"CREATE_TIME" desc'),
    ],
)
def test_values_that_a_connection_cannot_have(link: Link, name: str, value: str) -> None:
    """Hive's metastore refuses such a time: its clients read the value back."""
    before = link.call("getMetaConf", key=f"metastore.{name}")
    with pytest.raises(ttypes.MetaException) as raised:
        link.call("setMetaConf", key=f"hive.metastore.{name}", value=value)
    text = f"Invalid configuration value {value} for key hive.metastore.{name} by "
    assert raised.value.message.startswith(text)
    assert link.call("getMetaConf", key=f"metastore.{name}") == before


def test_the_order_of_partitions_of_a_connection(link: Link) -> None:
    by_name = link.call("getMetaConf", key="metastore.partition.order.expr")
    assert by_name == '"PART_NAME" asc'
    link.call("setMetaConf", key="metastore.partition.order.expr", value=by_name)


def test_the_version_is_that_of_the_hive_whose_answers_ours_are(link: Link) -> None:
    """`TestHiveMetaStore.testVersion` of Hive 4 expects the server's own; the version for the client is
    `getServerVersion`."""
    assert link.call("getVersion") == "4.0.1"


def test_file_metadata_is_not_supported(link: Link) -> None:
    assert link.call("get_file_metadata", req=ttypes.GetFileMetadataRequest([1])).isSupported is False
    by_expression = ttypes.GetFileMetadataByExprRequest([1], b"")
    assert link.call("get_file_metadata_by_expr", req=by_expression).isSupported is False
    assert link.call("cache_file_metadata", req=ttypes.CacheFileMetadataRequest("d", "t")).isSupported is False
    link.call("put_file_metadata", req=ttypes.PutFileMetadataRequest([1], [b""]))
    link.call("clear_file_metadata", req=ttypes.ClearFileMetadataRequest([1]))
    assert link.call("get_file_metadata", req=ttypes.GetFileMetadataRequest([1])).metadata == {}


def test_partition_values_against_the_whitelist(link: Link, serve: Serve) -> None:
    values = {"part_vals": ["a b", "c"], "throw_exception": False}
    assert link.call("partition_name_has_valid_characters", **values) is True
    with pytest.raises(ttypes.MetaException, match=r"whole server only, by catalog\.partition_name_whitelist_pattern"):
        link.call("setMetaConf", key="metastore.partition.name.whitelist.pattern", value="(a*)*b")
    link = serve(**{"catalog.partition_name_whitelist_pattern": r"[\x20-\x7E&&[^ ]]*"}).link()
    assert link.call("partition_name_has_valid_characters", **values) is False
    with pytest.raises(ttypes.MetaException, match="Partition value 'a b' contains a character not matched"):
        link.call("partition_name_has_valid_characters", part_vals=["a b"], throw_exception=True)


def test_the_schema_registry(link: Link) -> None:
    name = ttypes.ISchemaName("hive", "default", "s")
    policy = (ttypes.SchemaCompatibility.NONE, ttypes.SchemaValidation.ALL, True)
    schema = ttypes.ISchema(ttypes.SchemaType.HIVE, "s", "hive", "default", *policy)
    link.call("create_ischema", schema=schema)
    link.call("alter_ischema", rqst=ttypes.AlterISchemaRequest(name, schema))
    assert link.call("get_ischema", name=name) == schema
    version = ttypes.SchemaVersion(name, 1, 2, [ttypes.FieldSchema("a", "int", None)])
    link.call("add_schema_version", schemaVersion=version)
    descriptor = ttypes.SchemaVersionDescriptor(name, 1)
    link.call("add_serde", serde=ttypes.SerDeInfo("x", "lib", {}))
    assert link.call("get_serde", rqst=ttypes.GetSerdeRequest("x")).serializationLib == "lib"
    link.call("map_schema_version_to_serde", rqst=ttypes.MapSchemaVersionToSerdeRequest(descriptor, "x"))
    link.call("set_schema_version_state", rqst=ttypes.SetSchemaVersionStateRequest(descriptor, 5))
    found = link.call("get_schema_version", schemaVersion=descriptor)
    assert (found.state, found.serDe.name) == (5, "x")
    assert link.call("get_schema_latest_version", schemaName=name) == found
    assert link.call("get_schema_all_versions", schemaName=name) == [found]
    columns = ttypes.FindSchemasByColsRqst(colName="a")
    assert link.call("get_schemas_by_cols", rqst=columns).schemaVersions == [descriptor]
    with pytest.raises(ttypes.InvalidOperationException):
        link.call("drop_ischema", name=name)
    link.call("create_database", database=database("e"))
    other = ttypes.ISchema(ttypes.SchemaType.HIVE, "o", "hive", "e", *policy)
    link.call("create_ischema", schema=other)
    with pytest.raises(ttypes.InvalidOperationException, match="One or more schemas exist"):
        link.call("drop_database", name="e", deleteData=False, cascade=True)
    link.call("drop_ischema", name=ttypes.ISchemaName("hive", "e", "o"))
    link.call("drop_database", name="e", deleteData=False, cascade=True)
    link.call("drop_schema_version", schemaVersion=descriptor)
    link.call("drop_ischema", name=name)


def test_a_method_without_a_handler_is_unknown(link: Link) -> None:
    missing = METHODS.keys() - all_handlers().keys()
    assert missing == METHODS_NOT_SERVED
    for name in sorted(missing):
        with pytest.raises(TApplicationException) as raised:
            link.call(name)
        assert raised.value.type == TApplicationException.UNKNOWN_METHOD, name
    assert link.call("get_role_names") == ["admin", "public"]
