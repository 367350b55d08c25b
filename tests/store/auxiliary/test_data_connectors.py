"""Data connectors, and the privileges on them."""

from __future__ import annotations

import pytest

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.auxiliary.conftest import World


def connector(name: str | None = "c", **fields: object) -> ttypes.DataConnector:
    values: dict[str, object] = {"type": "mysql", "url": "jdbc:x", "ownerName": "o", "parameters": {"k": "v"}}
    return ttypes.DataConnector(name=name, **(values | fields))


def test_a_connector_from_creation_to_drop(world: World) -> None:
    connectors = world.stores.data_connectors
    connectors.create(connector("C", description="x"))
    connectors.create(connector("a", parameters=None))
    created = connector("c", description="x", ownerType=ttypes.PrincipalType.USER, createTime=1_700_000_000)
    assert connectors.get("C") == created
    assert connectors.get_names() == ["a", "c"]
    with pytest.raises(ttypes.AlreadyExistsException, match="DataConnector c already exists"):
        connectors.create(connector("c"))
    connectors.alter("c", connector("other", type="oracle", url="u", ownerName="p", parameters={"l": "w"}))
    changed = connectors.get("c")
    assert (changed.name, changed.type, changed.url, changed.description) == ("c", "mysql", "u", "x")
    assert (changed.ownerName, changed.parameters) == ("p", {"l": "w"})
    reference = ttypes.HiveObjectRef(ttypes.HiveObjectType.DATACONNECTOR, None, "c")
    info = ttypes.PrivilegeGrantInfo("SELECT", 0, "g", ttypes.PrincipalType.USER, False)
    grant = ttypes.HiveObjectPrivilege(reference, "u", ttypes.PrincipalType.USER, info, "SQL")
    privileges = world.stores.privileges
    privileges.grant_privileges([grant])
    assert [each.hiveObject.objectName for each in privileges.list_privileges("u", 1, ttypes.HiveObjectRef())] == ["c"]
    connectors.drop("C", if_exists=False)
    assert (connectors.get_names(), privileges.list_privileges("u", 1, ttypes.HiveObjectRef())) == (["a"], [])


def test_refusals(sqlite_world: World) -> None:
    connectors = sqlite_world.stores.data_connectors
    for action in (lambda: connectors.get("c"), lambda: connectors.alter("c", connector())):
        with pytest.raises(ttypes.NoSuchObjectException, match="Dataconnector named c does not exist"):
            action()
    with pytest.raises(ttypes.NoSuchObjectException, match="DataConnector c doesn't exist"):
        connectors.drop("c", if_exists=False)
    connectors.drop("c", if_exists=True)
    for name in ("\u00e4", " "):
        with pytest.raises(ttypes.InvalidObjectException, match="is not a valid dataconnector name"):
            connectors.create(connector(name))
    with pytest.raises(ttypes.MetaException, match="name cannot be null"):
        connectors.create(connector(name=None))
    with pytest.raises(ttypes.InvalidObjectException, match="must have a type and a url"):
        connectors.create(connector(url=None))
