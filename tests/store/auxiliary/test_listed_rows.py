"""Lists that grow with the database and that no request limits: above the limit they are refused, not truncated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hms_cache.input_limits import refused_inputs
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.thrift_gen.hive_metastore.ttypes import LockType, PrincipalType, ShowCompactRequest, ShowLocksRequest
from tests.store.auxiliary.conftest import World
from tests.store.auxiliary.test_data_connectors import connector
from tests.store.auxiliary.test_privileges import ANYTHING, EVERYWHERE, ON_COLUMN, ON_DATABASE, ON_TABLE, grant
from tests.store.auxiliary.test_schema_registry import NAME, POLICY, version
from tests.txn.client import TxnClient, component
from tests.txn.conftest import store_of

ROLE, GROUP = PrincipalType.ROLE, PrincipalType.GROUP


class Lists:
    """How a numbered object is added to each list, and how the list is requested."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._txns = TxnClient(store_of(world.database), world.database)
        stores = world.stores
        self.of: dict[str, tuple[Callable[[int], object], Callable[[], Sequence[Any]]]] = {
            "privileges everywhere": (self._grant_on_a_level, lambda: self._privileges(ANYTHING)),
            "privileges of one kind": (
                lambda number: stores.privileges.grant_privileges([grant(EVERYWHERE, f"p{number}")]),
                lambda: self._privileges(EVERYWHERE),
            ),
            "privileges on one object": (
                lambda number: stores.privileges.grant_privileges([grant(ON_DATABASE, f"p{number}")]),
                lambda: self._privileges(ON_DATABASE),
            ),
            "roles": (lambda number: self._create_role(number), stores.roles.get_role_names),
            "roles of a group": (
                lambda number: self._grant_role(self._create_role(number), "g"),
                lambda: stores.roles.list_roles("g", GROUP),
            ),
            "grants of roles to a group": (
                lambda number: self._grant_role(self._create_role(number), "g"),
                lambda: stores.roles.get_role_grants_of_principal("g", GROUP),
            ),
            "principals in a role": (
                self._add_principal,
                lambda: stores.roles.get_principals_in_role("r0"),
            ),
            "tokens": (
                lambda number: stores.tokens.add_token(f"i{number}", "t"),
                stores.tokens.get_all_token_identifiers,
            ),
            "locks": (
                lambda number: self._txns.lock(component(LockType.SHARED_READ, f"t{number}")),
                lambda: self._txns.store.show_locks(ShowLocksRequest()).locks,
            ),
            "compactions": (
                self._compact,
                lambda: self._txns.store.show_compact(ShowCompactRequest()).compacts,
            ),
            "the first compactions": (
                self._compact,
                lambda: self._txns.store.show_compact(ShowCompactRequest(limit=100)).compacts,
            ),
            "compactions by a text": (
                self._compact,
                lambda: self._txns.store.show_compact(ShowCompactRequest(limit=100, order="CC_TABLE")).compacts,
            ),
            "data connectors": (
                lambda number: stores.data_connectors.create(connector(f"c{number}")),
                stores.data_connectors.get_names,
            ),
            "stored procedures": (
                lambda number: stores.procedures.save_procedure(
                    ttypes.StoredProcedure(f"p{number}", "d", "hive", "o", "1")
                ),
                lambda: stores.procedures.get_procedure_names("hive", None),
            ),
            "packages": (
                lambda number: stores.procedures.save_package(
                    ttypes.AddPackageRequest("hive", "d", f"p{number}", "o", "h", "b")
                ),
                lambda: stores.procedures.get_package_names("hive", "d"),
            ),
            "versions of a schema": (self._add_version, lambda: stores.schemas.get_all_versions(NAME)),
            "versions with a column": (self._add_version, lambda: stores.schemas.find_versions("a", None, None)),
            "properties": (
                lambda number: stores.properties.set("hms", {f"d.t{number}.k": "v"}),
                lambda: list(stores.properties.get("hms", None, None, None)),
            ),
            "runtime statistics": (
                lambda number: stores.runtime_statistics.add(ttypes.RuntimeStat(0, number, b"x")),
                lambda: stores.runtime_statistics.get(-1, 0),
            ),
            "replication metrics": (
                lambda number: stores.runtime_statistics.add_replication_metrics(
                    [ttypes.ReplicationMetrics(number, "p", 5)]
                ),
                lambda: stores.runtime_statistics.get_replication_metrics("p", None),
            ),
        }

    def _privileges(self, reference: ttypes.HiveObjectRef) -> Sequence[Any]:
        return self._world.stores.privileges.list_privileges(None, None, reference)

    def _grant_on_a_level(self, number: int) -> None:
        level = (EVERYWHERE, ON_DATABASE, ON_TABLE, ON_COLUMN)[number]
        self._world.stores.privileges.grant_privileges([grant(level, "SELECT")])

    def _create_role(self, number: int) -> str:
        self._world.stores.roles.create_role(f"r{number}", "o")
        return f"r{number}"

    def _grant_role(self, role: str, group: str) -> None:
        self._world.stores.roles.grant_role(role, group, GROUP, "admin", ROLE, grant_option=False)

    def _add_principal(self, number: int) -> None:
        if number == 0:
            self._create_role(0)
        self._grant_role("r0", f"g{number}")

    def _compact(self, number: int) -> None:
        request = ttypes.CompactionRequest("d", f"t{number}", type=ttypes.CompactionType.MAJOR)
        self._txns.store.compact2(request)

    def _add_version(self, number: int) -> None:
        schemas = self._world.stores.schemas
        if number == 0:
            schemas.create_schema(ttypes.ISchema(ttypes.SchemaType.AVRO, "s", "hive", "d", *POLICY))
        schemas.add_version(version(number + 1, ttypes.FieldSchema("a", "int")))


NAMES = [
    *("privileges everywhere", "privileges of one kind", "privileges on one object", "roles", "roles of a group"),
    *("grants of roles to a group", "principals in a role", "tokens", "locks", "compactions", "compactions by a text"),
    *("data connectors", "stored procedures", "packages", "versions of a schema", "versions with a column"),
    *("properties", "runtime statistics", "replication metrics", "the first compactions"),
]


def _is_refused_beyond_the_limit(world: World, name: str, put_in_force: Callable[..., None]) -> None:
    world.create_table("t", "p")
    lists = Lists(world)
    assert sorted(lists.of) == sorted(NAMES)
    add, read = lists.of[name]
    known = len(read()) if "version" not in name else 0
    put_in_force(listed_rows=known + 3)
    for number in range(3):
        add(number)
    assert len(read()) == known + 3
    add(3)
    before = refused_inputs()["listed_rows"]
    with pytest.raises(ttypes.MetaException, match=rf"more than {known + 3} .*\(setting limits\.listed_rows\)"):
        read()
    assert refused_inputs()["listed_rows"] == before + 1


@pytest.mark.parametrize("name", NAMES)
def test_a_longer_list_is_refused(sqlite_world: World, name: str, put_in_force: Callable[..., None]) -> None:
    _is_refused_beyond_the_limit(sqlite_world, name, put_in_force)


def test_so_it_is_on_every_database(world: World, put_in_force: Callable[..., None]) -> None:
    _is_refused_beyond_the_limit(world, "privileges everywhere", put_in_force)


def test_what_has_a_limit_of_its_own_is_answered(sqlite_world: World, put_in_force: Callable[..., None]) -> None:
    lists = Lists(sqlite_world)
    for number in range(5):
        lists.of["compactions"][0](number)
        lists.of["runtime statistics"][0](number + 1)
    put_in_force(listed_rows=3)
    client = TxnClient(store_of(sqlite_world.database), sqlite_world.database)
    assert len(client.store.show_compact(ShowCompactRequest(limit=3)).compacts) == 3
    assert len(sqlite_world.stores.runtime_statistics.get(5, 0)) == 1
