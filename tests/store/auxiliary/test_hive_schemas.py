"""The auxiliary stores in databases created by Hive 3.1's own scripts, which lack some of their tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import run_write
from hms_cache.store.installation.init import ensure_default_roles
from hms_cache.store.schema import RUNTIME_STATS
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.auxiliary.conftest import make_world
from tests.store.schema.distribution import load_hive_schema

pytestmark = pytest.mark.java


@pytest.mark.parametrize("database_kind", ["mariadb", "postgresql"])
def test_what_hive_3_1_has_works_and_the_rest_is_refused(database_url: str, tmp_path: Path) -> None:
    load_hive_schema(database_url, "3.1.3")
    database = Database(database_url)
    try:
        assert database.features.version == "3.1.0"
        stores = make_world(database, tmp_path).stores
        run_write(database, lambda transaction: ensure_default_roles(transaction.connection, now_s=5))
        stores.roles.create_role("r", "o")
        info = ttypes.PrivilegeGrantInfo("SELECT", 0, "g", ttypes.PrincipalType.USER, True)
        on_database = ttypes.HiveObjectRef(ttypes.HiveObjectType.DATABASE, "d")
        grant = ttypes.HiveObjectPrivilege(on_database, "r", ttypes.PrincipalType.ROLE, info, "SQL")
        stores.privileges.grant_privileges([grant])
        found = stores.privileges.list_privileges(None, None, ttypes.HiveObjectRef())
        assert {each.principalName for each in found} == {"admin", "r"}
        on_connector = ttypes.HiveObjectRef(ttypes.HiveObjectType.DATACONNECTOR, None, "c")
        grant.hiveObject = on_connector
        with pytest.raises(ttypes.NoSuchObjectException):
            stores.privileges.grant_privileges([grant])
        assert stores.privileges.list_privileges(None, None, on_connector) == []
        stores.roles.drop_role("r")
        assert stores.identity.get() == stores.identity.get()
        if database.features.has(RUNTIME_STATS):
            stores.runtime_statistics.add(ttypes.RuntimeStat(1, 2, b"p"))
        else:
            assert database.dialect == "postgresql", "its script spells the table in lower case"
            with pytest.raises(ttypes.MetaException, match="has no table RUNTIME_STATS"):
                stores.runtime_statistics.add(ttypes.RuntimeStat(1, 2, b"p"))
        stores.runtime_statistics.add_changed_rows(1, 1, 1, 1)
        stores.schemas.add_serde(ttypes.SerDeInfo("x", "lib", {}))
        assert stores.tokens.add_token("i", "t")
        stores.resource_plans.create(ttypes.WMResourcePlan("p", queryParallelism=4), None)
        stores.plan_parts.create_pool(ttypes.WMPool("p", "a", 0.5, 1))
        plans = stores.resource_plans
        plans.create(ttypes.WMResourcePlan("q", ns="default"), "p")
        assert [pool.poolPath for pool in plans.get("q", None).pools] == ["a", "default"]
        assert plans.get_all("other") == []
        plans.drop("q", None)
        assert stores.scheduled_queries.is_available is False
        with pytest.raises(ttypes.MetaException, match=r"schema 3\.1\.0 cannot keep properties"):
            stores.properties.set("hms", {"d.t.a": "1"})
        for refused in (
            stores.data_connectors.get_names,
            lambda: stores.procedures.get_procedure_names("hive", None),
            lambda: stores.runtime_statistics.get_replication_metrics("p", None),
            lambda: stores.scheduled_queries.poll("n"),
        ):
            with pytest.raises(ttypes.MetaException, match=r"schema 3\.1\.0 has no table .* as Hive 4\.0 has it"):
                refused()
    finally:
        database.close()
