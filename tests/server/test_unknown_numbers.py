"""Numbers that an enumeration of the protocol does not have, as clients in Go write for unset fields.

Java reads them as absent (`findByValue`), and so does Hive.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from thrift.Thrift import TException

from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.server.conftest import Link, Serve, database, table

UNKNOWN = (0, 99)


@pytest.fixture
def link(serve: Serve) -> Link:
    found = serve().link()
    found.call("create_database", database=database("d"))
    return found


def function(**fields: object) -> t.Function:
    given = {"functionName": "f", "dbName": "d", "className": "c", "ownerName": "o", "ownerType": 1, "functionType": 1}
    return t.Function(**{**given, "resourceUris": [], **fields})


def schema(**fields: object) -> t.ISchema:
    given = {"schemaType": 1, "name": "s", "catName": "hive", "dbName": "d", "compatibility": 1, "validationLevel": 1}
    return t.ISchema(**{**given, "canEvolve": True, **fields})


REFUSED: dict[str, tuple[Callable[[Link, int], object], str]] = {
    "function type": (
        lambda link, number: link.call("create_function", func=function(functionType=number)),
        "Function type cannot be null",
    ),
    "owner type of a function": (
        lambda link, number: link.call("create_function", func=function(ownerType=number)),
        "Function owner type cannot be null",
    ),
    "resource type": (
        lambda link, number: link.call(
            "create_function", func=function(resourceUris=[t.ResourceUri(number, "file:/j")])
        ),
        "Resource type cannot be null",
    ),
    "schema type": (
        lambda link, number: link.call("create_ischema", schema=schema(schemaType=number)),
        "needs a type",
    ),
    "compatibility": (
        lambda link, number: link.call("create_ischema", schema=schema(compatibility=number)),
        "needs a compatibility",
    ),
    "validation level": (
        lambda link, number: link.call("create_ischema", schema=schema(validationLevel=number)),
        "needs a compatibility and a validation level",
    ),
}


@pytest.mark.parametrize("number", UNKNOWN)
@pytest.mark.parametrize("what", REFUSED)
def test_what_must_be_given_is_missing(link: Link, what: str, number: int) -> None:
    """It was stored, and returned to clients that cannot read it."""
    send, text = REFUSED[what]
    with pytest.raises(TException, match=text):
        send(link, number)
    assert link.call("get_functions", dbName="d", pattern="*") == []
    with pytest.raises(t.NoSuchObjectException):
        link.call("get_ischema", name=t.ISchemaName("hive", "d", "s"))


@pytest.mark.parametrize("number", UNKNOWN)
def test_versions_of_schemas_and_serdes(link: Link, number: int) -> None:
    link.call("create_ischema", schema=schema())
    name = t.ISchemaName("hive", "d", "s")
    serde = t.SerDeInfo("x", "lib", {}, serdeType=number)
    link.call("add_schema_version", schemaVersion=t.SchemaVersion(name, 1, 1, [], number, serDe=serde))
    descriptor = t.SchemaVersionDescriptor(name, 1)
    found = link.call("get_schema_version", schemaVersion=descriptor)
    assert (found.state, found.serDe.serdeType) == (None, None)
    link.call("set_schema_version_state", rqst=t.SetSchemaVersionStateRequest(descriptor, 2))
    link.call("set_schema_version_state", rqst=t.SetSchemaVersionStateRequest(descriptor, number))
    assert link.call("get_schema_version", schemaVersion=descriptor).state == 2


@pytest.mark.parametrize("number", UNKNOWN)
def test_a_grantor_of_no_type_is_a_role(link: Link, number: int) -> None:
    """`PrivilegeGrantInfo.isSetGrantorType` in `HMSHandler.grant_privileges`; such a grant was refused."""
    reference = t.HiveObjectRef(t.HiveObjectType.DATABASE, "d")
    info = t.PrivilegeGrantInfo("SELECT", 0, "g", number, False)
    bag = t.PrivilegeBag([t.HiveObjectPrivilege(reference, "ann", t.PrincipalType.USER, info, "SQL")])
    link.call("grant_privileges", privileges=bag)
    [found] = link.call("list_privileges", principal_name="ann", principal_type=1, hiveObject=reference)
    assert found.grantInfo.grantorType == t.PrincipalType.ROLE
    everything = t.HiveObjectRef(number)
    assert found in link.call("list_privileges", principal_name="ann", principal_type=1, hiveObject=everything)


@pytest.mark.parametrize("number", UNKNOWN)
def test_owners_keep_their_type(link: Link, number: int) -> None:
    """A change without a type keeps the type; it was removed, or became that of a user."""
    owned = database("e")
    owned.ownerName, owned.ownerType = "r", t.PrincipalType.ROLE
    link.call("create_database", database=owned)
    changed = database("e")
    changed.ownerName, changed.ownerType = "r", number
    link.call("alter_database", dbname="e", db=changed)
    assert link.call("get_database", name="e").ownerType == t.PrincipalType.ROLE
    connector = t.DataConnector("c", "mysql", "jdbc:x", ownerName="r", ownerType=t.PrincipalType.ROLE)
    link.call("create_dataconnector_req", connectorReq=t.CreateDataConnectorRequest(connector))
    connector.ownerType = number
    link.call("alter_dataconnector_req", alterReq=t.AlterDataConnectorRequest("c", connector))
    found = link.call("get_dataconnector_req", request=t.GetDataConnectorRequest("c"))
    assert found.ownerType == t.PrincipalType.ROLE


@pytest.mark.parametrize("number", UNKNOWN)
def test_new_objects_are_of_users_and_native(link: Link, number: int) -> None:
    new = database("e")
    new.ownerType = new.type = number
    link.call("create_database", database=new)
    found = link.call("get_database", name="e")
    assert (found.ownerType, found.type) == (t.PrincipalType.USER, t.DatabaseType.NATIVE)
    made = table("d", "t")
    made.ownerType = made.sd.serdeInfo.serdeType = number
    link.call("create_table", tbl=made)
    kept = link.call("get_table", dbname="d", tbl_name="t")
    assert (kept.ownerType, kept.sd.serdeInfo.serdeType) == (t.PrincipalType.USER, None)
