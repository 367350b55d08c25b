"""Names with characters that the database's columns do not have: no object has such a name, and they hide no other
name."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_cache.authorization.decisions import SecuredObject
from hms_cache.metadata.object_names import DatabaseName, FunctionName, TableName
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.store.engine.database import Database
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.auxiliary.conftest import make_world

D, T = DatabaseName("hive", "d"), TableName("hive", "d", "t")
PARTITIONS = ("p=a", "p=é")


def statistics(partition: str | None) -> ttypes.ColumnStatistics:
    data = ttypes.ColumnStatisticsData(longStats=ttypes.LongColumnStatsData(0, 5, 0, 3))
    about = ttypes.ColumnStatisticsDesc(partition is None, "d", "t", partition, catName="hive")
    return ttypes.ColumnStatistics(about, [ttypes.ColumnStatisticsObj("a", "int", data)], engine="hive")


@pytest.mark.parametrize("name", ["日本", "\x80", "\U0001f600"])
def test_there_is_nothing_of_that_name(database_of_any_schema: Database, tmp_path: Path, name: str) -> None:
    world = make_world(database_of_any_schema, tmp_path)
    reads, writes = world.objects.reads, world.objects.writes
    world.create_table("t", "p")
    for value in ("a", "é"):
        world.add_partition("t", value)
    writes.statistics.update_partition_column_statistics([statistics(one) for one in PARTITIONS])
    for missing in (
        lambda: reads.tables.get_table(TableName("hive", "d", name)),
        lambda: reads.tables.get_table(TableName("hive", name, "t")),
        lambda: reads.databases.get_database(DatabaseName("hive", name)),
        lambda: reads.functions.get_function(FunctionName("hive", "d", name)),
        lambda: writes.tables.drop_table(TableName("hive", "d", name), delete_data=False),
        lambda: writes.databases.drop_database(DatabaseName("hive", name), delete_data=False, cascade=False),
        lambda: writes.functions.drop_function(FunctionName("hive", "d", name)),
    ):
        with pytest.raises(ttypes.NoSuchObjectException):
            missing()
    assert [table.tableName for table in reads.tables.get_tables(D, ("t", name))] == ["t"]
    of_partitions = reads.statistics.get_partition_column_statistics(
        StatisticsQuery(T, ("a", name)), (*PARTITIONS, f"p={name}")
    )
    assert [one.statsDesc.partName for one in of_partitions] == [*PARTITIONS]
    writes.statistics.update_table_column_statistics(statistics(None))
    of_table = reads.statistics.get_table_column_statistics(StatisticsQuery(T, ("a", name)))
    assert [one.colName for one in of_table.statsObj] == ["a"]


@pytest.mark.parametrize("name", ["日本", "\x80", "\U0001f600"])
def test_who_has_that_name_has_the_rights_of_its_groups(
    database_of_any_schema: Database, tmp_path: Path, name: str
) -> None:
    """And nothing else: a directory contains users and groups of any name."""
    world = make_world(database_of_any_schema, tmp_path)
    world.create_table("t")
    group = ttypes.PrincipalType.GROUP
    stores, on = world.stores, ttypes.HiveObjectRef(ttypes.HiveObjectType.TABLE, "d", "t")
    info = ttypes.PrivilegeGrantInfo("SELECT", 0, "o", ttypes.PrincipalType.USER, False)
    stores.privileges.grant_privileges([ttypes.HiveObjectPrivilege(on, "g", group, info, "SQL")])
    stores.roles.create_role("r", "o")
    stores.roles.grant_role("r", "g", group, "o", ttypes.PrincipalType.USER, grant_option=False)

    def rights(groups: set[str], *of: str) -> tuple[set[str], set[str]]:
        found = stores.rights.rights(name, SecuredObject(*of), frozenset(groups))
        return set(found.roles), {right.privilege for right in found.rights}

    assert rights({"g", name}, "hive", "d", "t") == ({"public", "r"}, {"SELECT"})
    assert rights({name}, "hive", "d", "t") == ({"public"}, set())
    assert rights({"g"}, "hive", "d", name) == ({"public", "r"}, set())
    on_database = ttypes.HiveObjectRef(ttypes.HiveObjectType.DATABASE, "d")
    stores.privileges.grant_privileges([ttypes.HiveObjectPrivilege(on_database, "g", group, info, "SQL")])
    assert rights({"g"}, "hive", "d", name) == ({"public", "r"}, {"SELECT"}), "that on its database"
    assert rights({"g"}, "hive", name) == ({"public", "r"}, set())
    assert [role.roleName for role in stores.roles.list_roles(name, ttypes.PrincipalType.USER)] == ["public"]
    assert stores.privileges.list_privileges(name, group, on) == []
    granted = stores.privileges.get_privilege_set(on, name, [name, "g"])
    assert [len(granted.groupPrivileges[one]) for one in (name, "g")] == [0, 1]
    elsewhere = ttypes.HiveObjectRef(ttypes.HiveObjectType.TABLE, "d", name)
    assert stores.privileges.list_privileges("g", group, elsewhere) == []
