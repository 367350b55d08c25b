"""Names that MySQL treats as equal in one schema or another: a change of one object affects no other.

If the database cannot store both, the second is refused; on SQLite and PostgreSQL, as in Hive on Derby and PostgreSQL,
both exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hms_cache.metadata.object_names import DatabaseName, TableName, database_name, table_name
from hms_cache.store.contract.partitions import PartitionQuery
from hms_cache.store.engine.database import Database
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.auxiliary.conftest import World, make_world

REFUSALS = (
    ttypes.AlreadyExistsException,
    ttypes.InvalidObjectException,
    ttypes.InvalidOperationException,
    ttypes.MetaException,
    ttypes.NoSuchObjectException,
)
USER, ROLE = ttypes.PrincipalType.USER, ttypes.PrincipalType.ROLE
T = TableName("hive", "d", "t")


@pytest.fixture
def world(database_of_any_schema: Database, tmp_path: Path) -> World:
    made = make_world(database_of_any_schema, tmp_path)
    made.create_table("t", "p")
    return made


class Kind:
    """Objects of one kind: how they are created, changed, dropped and read."""

    in_lower_case = False
    """Whether Hive lowers the case of their names and cuts blanks off."""

    of_any_case = False
    """Whether names that differ in case only are one's."""

    has_ascii_names = False
    """Whether Hive refuses all other names."""

    def __init__(self, world: World) -> None:
        self.stores = world.stores
        self.objects = world.objects
        self.prepare()

    def prepare(self) -> None:
        """What must exist before."""

    def create(self, name: str) -> None:
        raise NotImplementedError

    def change(self, name: str) -> None:
        """May do nothing, or be refused, if there is none."""

    def drop(self, name: str) -> None:
        raise NotImplementedError

    def found(self, name: str) -> Any:
        """The objects of exactly this name; refused or empty if there are none."""
        raise NotImplementedError


class Procedures(Kind):
    of_any_case = True

    def create(self, name: str) -> None:
        self.stores.procedures.save_procedure(ttypes.StoredProcedure(name, "d", "hive", "o", f"source of {name}"))

    def drop(self, name: str) -> None:
        self.stores.procedures.drop_procedure("hive", "d", name)

    def found(self, name: str) -> Any:
        return self.stores.procedures.get_procedure("hive", "d", name)


class Packages(Kind):
    of_any_case = True

    def create(self, name: str) -> None:
        self.stores.procedures.save_package(ttypes.AddPackageRequest("hive", "d", name, "o", "h", f"body of {name}"))

    def drop(self, name: str) -> None:
        self.stores.procedures.drop_package("hive", "d", name)

    def found(self, name: str) -> Any:
        return self.stores.procedures.get_package("hive", "d", name)


class ScheduledQueries(Kind):
    def _query(self, name: str, text: str) -> ttypes.ScheduledQuery:
        key = ttypes.ScheduledQueryKey(name, "hive")
        return ttypes.ScheduledQuery(key, enabled=True, schedule="0 * * * * ?", user="u", query=text)

    def create(self, name: str) -> None:
        self.stores.scheduled_queries.create(self._query(name, f"select '{name}'"))

    def change(self, name: str) -> None:
        self.stores.scheduled_queries.alter(self._query(name, "select 'changed'"))

    def drop(self, name: str) -> None:
        self.stores.scheduled_queries.drop(ttypes.ScheduledQueryKey(name, "hive"))

    def found(self, name: str) -> Any:
        return self.stores.scheduled_queries.get(ttypes.ScheduledQueryKey(name, "hive"))


class Plans(Kind):
    in_lower_case = True

    def create(self, name: str) -> None:
        self.stores.resource_plans.create(ttypes.WMResourcePlan(name, queryParallelism=3), None)

    def change(self, name: str) -> None:
        changes = ttypes.WMNullableResourcePlan(isSetQueryParallelism=True, queryParallelism=77)
        self.stores.resource_plans.alter(name, None, changes)

    def drop(self, name: str) -> None:
        self.stores.resource_plans.drop(name, None)

    def found(self, name: str) -> Any:
        return self.stores.resource_plans.get(name, None)


class Triggers(Kind):
    in_lower_case = True

    def prepare(self) -> None:
        self.stores.resource_plans.create(ttypes.WMResourcePlan("plan"), None)

    def create(self, name: str) -> None:
        self.stores.plan_parts.create_trigger(ttypes.WMTrigger("plan", name, "X > 1", "KILL"))

    def change(self, name: str) -> None:
        self.stores.plan_parts.alter_trigger(ttypes.WMTrigger("plan", name, "X > 2"))

    def drop(self, name: str) -> None:
        self.stores.plan_parts.drop_trigger("plan", name, None)

    def found(self, name: str) -> Any:
        return [one for one in self.stores.resource_plans.get_triggers("plan", None) if one.triggerName == name]


class Mappings(Triggers):
    def create(self, name: str) -> None:
        self.stores.plan_parts.save_mapping(ttypes.WMMapping("plan", "USER", name), is_update=False)

    def change(self, name: str) -> None:
        self.stores.plan_parts.save_mapping(ttypes.WMMapping("plan", "USER", name, "default"), is_update=True)

    def drop(self, name: str) -> None:
        self.stores.plan_parts.drop_mapping(ttypes.WMMapping("plan", "USER", name))

    def found(self, name: str) -> Any:
        return [one for one in self.stores.resource_plans.get("plan", None).mappings or () if one.entityName == name]


class Pools(Triggers):
    def create(self, name: str) -> None:
        self.stores.plan_parts.create_pool(ttypes.WMPool("plan", name, 0.1, 1))

    def change(self, name: str) -> None:
        self.stores.plan_parts.alter_pool(ttypes.WMNullablePool("plan", None, 0.2), name)

    def drop(self, name: str) -> None:
        self.stores.plan_parts.drop_pool("plan", name, None)

    def found(self, name: str) -> Any:
        return [one for one in self.stores.resource_plans.get("plan", None).pools if one.poolPath == name]


class Constraints(Kind):
    in_lower_case = True

    def create(self, name: str) -> None:
        one = ttypes.SQLNotNullConstraint("hive", "d", "t", "a", name, True, True, True)
        self.objects.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(notNullConstraints=[one]))

    def drop(self, name: str) -> None:
        self.objects.writes.constraints.drop_constraint(T, name)

    def found(self, name: str) -> Any:
        constraints = self.objects.reads.constraints.get_table_constraints(T).notNullConstraints or ()
        return [one for one in constraints if one.nn_name == name]


class Schemas(Kind):
    in_lower_case = True
    _POLICY = (ttypes.SchemaCompatibility.FORWARD, ttypes.SchemaValidation.ALL)

    def _schema(self, name: str, can_evolve: bool) -> ttypes.ISchema:
        return ttypes.ISchema(ttypes.SchemaType.AVRO, name, "hive", "d", *self._POLICY, can_evolve)

    def create(self, name: str) -> None:
        self.stores.schemas.create_schema(self._schema(name, True))

    def change(self, name: str) -> None:
        self.stores.schemas.alter_schema(ttypes.ISchemaName("hive", "d", name), self._schema(name, False))

    def drop(self, name: str) -> None:
        self.stores.schemas.drop_schema(ttypes.ISchemaName("hive", "d", name))

    def found(self, name: str) -> Any:
        return self.stores.schemas.get_schema(ttypes.ISchemaName("hive", "d", name))


class Roles(Kind):
    def create(self, name: str) -> None:
        self.stores.roles.create_role(name, "o")

    def change(self, name: str) -> None:
        self.stores.roles.grant_role(name, "ada", USER, "o", USER, grant_option=False)

    def drop(self, name: str) -> None:
        self.stores.roles.drop_role(name)

    def found(self, name: str) -> Any:
        if name not in self.stores.roles.get_role_names():
            return None
        return name, self.stores.roles.get_principals_in_role(name)


class Connectors(Kind):
    in_lower_case = True
    has_ascii_names = True

    def _connector(self, name: str, url: str) -> ttypes.DataConnector:
        return ttypes.DataConnector(name, "mysql", url, parameters={"k": name})

    def create(self, name: str) -> None:
        self.stores.data_connectors.create(self._connector(name, f"jdbc:{name}"))

    def change(self, name: str) -> None:
        info = ttypes.PrivilegeGrantInfo("SELECT", 0, "g", USER, True)
        on = ttypes.HiveObjectRef(ttypes.HiveObjectType.DATACONNECTOR, None, name)
        with suppress(*REFUSALS):
            self.stores.privileges.grant_privileges([ttypes.HiveObjectPrivilege(on, "u", USER, info, "SQL")])
        self.stores.data_connectors.alter(name, self._connector(name, "changed"))

    def drop(self, name: str) -> None:
        self.stores.data_connectors.drop(name, if_exists=False)

    def found(self, name: str) -> Any:
        on = ttypes.HiveObjectRef(ttypes.HiveObjectType.DATACONNECTOR, None, name)
        return self.stores.data_connectors.get(name), self.stores.privileges.list_privileges(None, None, on)


class MembersOfRoles(Kind):
    def prepare(self) -> None:
        self.stores.roles.create_role("r", "o")

    def create(self, name: str) -> None:
        self.stores.roles.grant_role("r", name, USER, "o", USER, grant_option=True)

    def change(self, name: str) -> None:
        self.stores.roles.revoke_role("r", name, USER, grant_option=True)

    def drop(self, name: str) -> None:
        self.stores.roles.revoke_role("r", name, USER)

    def found(self, name: str) -> Any:
        listed = [one.roleName for one in self.stores.roles.list_roles(name, USER) if one.roleName != "public"]
        grants = [one for one in self.stores.roles.get_principals_in_role("r") if one.principalName == name]
        told = [one for one in self.stores.roles.get_role_grants_of_principal(name, USER) if one.roleName == "r"]
        assert grants == told and len(listed) == len(grants)
        return grants


class Grants(Kind):
    def _grant(self, name: str) -> ttypes.HiveObjectPrivilege:
        info = ttypes.PrivilegeGrantInfo("SELECT", 0, "g", USER, True)
        return ttypes.HiveObjectPrivilege(self._table(), name, USER, info, "SQL")

    def _table(self) -> ttypes.HiveObjectRef:
        return ttypes.HiveObjectRef(ttypes.HiveObjectType.TABLE, "d", "t")

    def create(self, name: str) -> None:
        self.stores.privileges.grant_privileges([self._grant(name)])

    def change(self, name: str) -> None:
        self.stores.privileges.revoke_privileges([self._grant(name)], grant_option=True)

    def drop(self, name: str) -> None:
        self.stores.privileges.revoke_privileges([self._grant(name)])

    def found(self, name: str) -> Any:
        return self.stores.privileges.list_privileges(name, USER, self._table())


class Tokens(Kind):
    def create(self, name: str) -> None:
        if not self.stores.tokens.add_token(name, f"token of {name}"):
            raise ttypes.AlreadyExistsException(name)

    def change(self, name: str) -> None:
        self.stores.tokens.update_token(name, "changed")

    def drop(self, name: str) -> None:
        self.stores.tokens.remove_token(name)

    def found(self, name: str) -> Any:
        found = self.stores.tokens.find_token([name, "none"])
        assert (found or (name, ""))[1] == self.stores.tokens.get_token(name)
        return found


class PropertyMaps(Kind):
    def create(self, name: str) -> None:
        self.stores.properties.set("hms", {f"d.{name}.x": name})

    def drop(self, name: str) -> None:
        # There is no drop: the value is removed.
        if self.found(name):
            self.stores.properties.set("hms", {f"d.{name}.x": ""})

    def found(self, name: str) -> Any:
        found = self.stores.properties.get("hms", f"d.{name}", None, None).get(f"d.{name}")
        return None if not found or not found["x"] else found


KINDS: Sequence[type[Kind]] = (
    *(Procedures, Packages, ScheduledQueries, Plans, Triggers, Mappings, Pools, Constraints, Schemas),
    *(Roles, Connectors, MembersOfRoles, Grants, Tokens, PropertyMaps),
)


def _tried(call: Callable[[str], Any], name: str) -> Any:
    try:
        return call(name)
    except REFUSALS:
        return None


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_a_similar_name_is_of_another_object(world: World, make: type[Kind]) -> None:
    kind = make(world)
    kind.create("a")
    first = kind.found("a")
    assert first
    for other in ("á",) if kind.in_lower_case else ("a ", "á") if kind.of_any_case else ("A", "a ", "á"):
        assert not _tried(kind.found, other), other
        _tried(kind.change, other)
        _tried(kind.drop, other)
        assert kind.found("a") == first, other
        try:
            kind.create(other)
        except REFUSALS:
            assert world.database.dialect == "mysql" or kind.has_ascii_names
            assert not _tried(kind.found, other)
        else:
            assert kind.found(other) != first
            kind.drop(other)
            assert not _tried(kind.found, other)
        assert kind.found("a") == first, other
    kind.drop("a")
    assert not _tried(kind.found, "a")


def test_roles_that_hold_each_other_are_refused_whatever_blanks_they_have(world: World) -> None:
    roles = world.stores.roles
    for name in ("a", "b"):
        roles.create_role(name, "o")
    roles.grant_role("a", "b", ROLE, "o", USER, grant_option=False)
    for ours, theirs in (("b", "a"), ("b ", "a"), ("b", "a "), ("b ", "a ")):
        with pytest.raises((ttypes.MetaException, ttypes.NoSuchObjectException)):
            roles.grant_role(ours, theirs, ROLE, "o", USER, grant_option=False)


def test_two_constraints_of_one_request_that_the_database_takes_for_the_same(world: World) -> None:
    names = ("a", "á")
    wanted = [ttypes.SQLNotNullConstraint("hive", "d", "t", "a", name, True, True, True) for name in names]
    try:
        world.objects.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(notNullConstraints=wanted))
    except ttypes.InvalidObjectException:
        assert world.database.dialect == "mysql"
        names = ()
    found = world.objects.reads.constraints.get_table_constraints(T).notNullConstraints or ()
    assert {one.nn_name for one in found} == set(names)


BOTH = {"k": "1", "k ": "2"}


def _tables_parameters(world: World) -> dict[str, str]:
    table = world.objects.reads.tables.get_table(T)
    table.parameters |= BOTH
    world.objects.writes.tables.alter_table(T, table)
    return dict(world.objects.reads.tables.get_table(T).parameters)


def _new_tables_parameters(world: World) -> dict[str, str]:
    table = world.objects.reads.tables.get_table(T)
    table.tableName, table.sd.location = "u", None
    table.parameters = dict(BOTH)
    world.objects.writes.tables.create_table(table)
    return dict(world.objects.reads.tables.get_table(TableName("hive", "d", "u")).parameters)


def _descriptors_parameters(world: World) -> dict[str, str]:
    table = world.objects.reads.tables.get_table(T)
    table.sd.parameters = dict(BOTH)
    world.objects.writes.tables.alter_table(T, table)
    return dict(world.objects.reads.tables.get_table(T).sd.parameters)


def _serdes_parameters(world: World) -> dict[str, str]:
    table = world.objects.reads.tables.get_table(T)
    table.tableName, table.sd.location = "u", None
    table.sd.serdeInfo.parameters = dict(BOTH)
    world.objects.writes.tables.create_table(table)
    return dict(world.objects.reads.tables.get_table(TableName("hive", "d", "u")).sd.serdeInfo.parameters)


def _databases_parameters(world: World) -> dict[str, str]:
    name = DatabaseName("hive", "d")
    database = world.objects.reads.databases.get_database(name)
    database.parameters = dict(BOTH)
    world.objects.writes.databases.alter_database(name, database)
    return dict(world.objects.reads.databases.get_database(name).parameters)


def _partitions_parameters(world: World) -> dict[str, str]:
    world.add_partition("t", "1")
    [one] = world.objects.reads.partitions.get_partitions(PartitionQuery(T)).partitions
    one.parameters |= BOTH
    world.objects.writes.partitions.alter_partitions(T, [one])
    [one] = world.objects.reads.partitions.get_partitions(PartitionQuery(T)).partitions
    return dict(one.parameters)


def _new_partitions_parameters(world: World) -> dict[str, str]:
    sd = world.objects.reads.tables.get_table(T).sd
    sd.location = None
    new = ttypes.Partition(["1"], "d", "t", sd=sd, parameters=dict(BOTH), catName="hive")
    world.objects.writes.partitions.add_partitions(T, [new])
    [one] = world.objects.reads.partitions.get_partitions(PartitionQuery(T)).partitions
    return dict(one.parameters)


def _connectors_parameters(world: World) -> dict[str, str]:
    world.stores.data_connectors.create(ttypes.DataConnector("c", "mysql", "u", parameters=dict(BOTH)))
    return dict(world.stores.data_connectors.get("c").parameters)


def _registered_serdes_parameters(world: World) -> dict[str, str]:
    world.stores.schemas.add_serde(ttypes.SerDeInfo("s", "l", dict(BOTH)))
    return dict(world.stores.schemas.get_serde("s").parameters)


_PARAMETERS: Sequence[Callable[[World], dict[str, str]]] = (
    *(_tables_parameters, _new_tables_parameters, _descriptors_parameters, _serdes_parameters, _databases_parameters),
    *(_partitions_parameters, _new_partitions_parameters, _connectors_parameters, _registered_serdes_parameters),
)


@pytest.mark.parametrize("write", _PARAMETERS, ids=lambda write: write.__name__)
def test_of_two_parameters_none_is_lost(world: World, write: Callable[[World], dict[str, str]]) -> None:
    try:
        stored = write(world)
    except ttypes.MetaException as error:
        assert world.database.dialect == "mysql"
        assert "for the same" in error.message
    else:
        assert world.database.dialect != "mysql"
        assert stored.items() >= BOTH.items()


def test_a_parameter_may_be_replaced_by_a_similar_one(world: World) -> None:
    for key in ("k", "k ", "k"):
        table = world.objects.reads.tables.get_table(T)
        table.parameters = {key: key}
        table.sd.parameters = {key: key}
        world.objects.writes.tables.alter_table(T, table)
        table = world.objects.reads.tables.get_table(T)
        assert (table.parameters[key], table.sd.parameters) == (key, {key: key})


def test_a_similar_catalog_is_another_one(world: World, tmp_path: Path) -> None:
    writes, reads = world.objects.writes, world.objects.reads
    world.objects.writes.catalogs.create_catalog(ttypes.Catalog("other", None, f"file:{tmp_path}/other"))
    name = database_name("öther", "default")
    refused: Sequence[Callable[[], Any]] = (
        lambda: reads.catalogs.get_catalog("öther"),
        lambda: writes.catalogs.drop_catalog("öther"),
        lambda: writes.catalogs.alter_catalog("öther", ttypes.Catalog("öther", "changed", None)),
        lambda: reads.databases.get_database(name),
        lambda: writes.databases.drop_database(name, delete_data=False, cascade=True),
        lambda: reads.tables.get_table(table_name("hivé", "d", "t")),
        lambda: writes.databases.create_database(ttypes.Database("x", catalogName="öther")),
    )
    for call in refused:
        with pytest.raises((ttypes.NoSuchObjectException, ttypes.InvalidObjectException)):
            call()
    assert reads.databases.get_database_names("öther") == []
    assert reads.databases.get_database_names("other") == ["default"]
    assert reads.catalogs.get_catalog("other").description is None
