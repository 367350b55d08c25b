"""Authorization by the metastore's own owners, grants and roles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from hms_cache.jobs.schedule.lease import _component
from hms_cache.store.security.rights import GrantedRights
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.server.conftest import Link, Running, Serve, database, table
from tests.server.test_authorization import outcome


class World:
    """A server; `root` has the role admin, `ann` owns database `open` and table `open.hers`, `eve` owns nothing."""

    def __init__(self, serve: Serve, **settings: Any) -> None:
        self.server: Running = serve(
            **{
                "authorization.provider": "sql",
                "authorization.service_users": ["hs2"],
                "catalog.users_in_admin_role": ["root"],
                "security.accept_insecure": True,
                **settings,
            }
        )
        self.root, self.ann, self.eve = (self.link(name) for name in ("root", "ann", "eve"))
        made = database("open")
        made.ownerName, made.ownerType = "ann", t.PrincipalType.USER
        self.root.call("create_database", database=made)
        for name, owner in (("hers", "ann"), ("other", "bob")):
            one = table("open", name)
            one.owner, one.ownerType = owner, t.PrincipalType.USER
            self.root.call("create_table", tbl=one)

    def link(self, user: str) -> Link:
        link = self.server.link()
        link.call("set_ugi", user_name=user, group_names=["admin"])
        return link

    def sees(self, user: Link, name: str = "hers") -> bool:
        found = isinstance(outcome(user, "get_table", dbname="open", tbl_name=name), t.Table)
        assert found == (name in user.call("get_all_tables", db_name="open"))
        return found


@pytest.fixture(params=[(0, "read"), (60, "read"), (0, "logged")], ids=["each call", "aged", "logged"])
def world(serve: Serve, request: pytest.FixtureRequest) -> World:
    age_s, grants = request.param
    return World(serve, **{"authorization.sql_max_age_s": age_s, "authorization.sql_grants": grants})


def bag(privilege: str, to: str = "eve", *, kind: int = t.PrincipalType.USER, option: bool = False, **of: Any) -> Any:
    reference = t.HiveObjectRef(
        **{"objectType": t.HiveObjectType.TABLE, "dbName": "open", "objectName": "hers", "partValues": [], **of}
    )
    info = t.PrivilegeGrantInfo(privilege, 0, "ann", t.PrincipalType.USER, option)
    return t.PrivilegeBag([t.HiveObjectPrivilege(reference, to, kind, info, "SQL")])


def test_owners_may_do_what_is_theirs(world: World) -> None:
    ann, eve = world.ann, world.eve
    assert world.sees(ann) and not world.sees(ann, "other") and not world.sees(eve)
    assert world.sees(world.root) and world.sees(world.root, "other")
    assert eve.call("get_all_databases") == ["default"] and ann.call("get_all_databases") == ["default", "open"]
    assert "may not create" in outcome(eve, "create_table", tbl=table("open", "x"))[1]
    mine = table("open", "x")
    mine.owner = "ann"
    ann.call("create_table", tbl=mine)
    renamed = ann.call("get_table", dbname="open", tbl_name="x")
    renamed.tableName = "y"
    ann.call("alter_table", dbname="open", tbl_name="x", new_tbl=renamed)
    assert world.sees(ann, "y")
    renamed.tableName = "other"
    assert "may not alter" in outcome(ann, "alter_table", dbname="open", tbl_name="y", new_tbl=renamed)[1]
    ann.call("drop_table", dbname="open", name="y", deleteData=True)
    assert "may not" in outcome(ann, "create_database", database=database("hers"))[1]
    # Users without objects have `default`, which belongs to the role public.
    theirs = table("default", "e")
    theirs.owner = "eve"
    eve.call("create_table", tbl=theirs)
    assert eve.call("get_all_tables", db_name="default") == ["e"]
    assert ann.call("get_all_tables", db_name="default") == []


@pytest.mark.parametrize("word", ["SELECT", "insert", "UPDATE", "DELETE", "ALL"])
def test_each_privilege_allows_what_it_says(serve: Serve, word: str) -> None:
    world = World(serve)
    parted = table("open", "parted")
    parted.owner, parted.partitionKeys = "ann", [t.FieldSchema("p", "string", None)]
    world.ann.call("create_table", tbl=parted)
    partition = t.Partition(values=["1"], dbName="open", tableName="parted", sd=parted.sd)
    world.ann.call("add_partition", new_part=partition)
    assert not world.sees(world.eve, "parted")
    world.ann.call("grant_privileges", privileges=bag(word, objectName="parted"))
    assert world.sees(world.eve, "parted") and not world.sees(world.eve, "hers")
    at = {"db_name": "open", "tbl_name": "parted", "part_vals": ["1"], "deleteData": False}
    writes = {
        "INSERT": ("add_partition", {"new_part": t.Partition(["2"], "open", "parted", 0, 0, parted.sd)}),
        "DELETE": ("drop_partition", at),
        "ALTER": ("alter_table", {"dbname": "open", "tbl_name": "parted", "new_tbl": parted}),
        "DROP": ("drop_table", {"dbname": "open", "name": "parted", "deleteData": False}),
    }
    allowed = {name for name, (method, arguments) in writes.items() if may(world.eve, method, arguments)}
    assert allowed == {"ALL": {"INSERT", "DELETE"}, "insert": {"INSERT"}, "DELETE": {"DELETE"}}.get(word, set())
    request = t.AllocateTableWriteIdsRequest("open", "parted", txnIds=[1])
    assert may(world.eve, "allocate_table_write_ids", {"rqst": request}) == (word != "SELECT")


def may(link: Link, method: str, arguments: Any) -> bool:
    found = outcome(link, method, **arguments)
    return not (isinstance(found, tuple) and "Permission denied" in str(found[1]))


@pytest.mark.parametrize("word", ["OWNER", "shared", "COLUMN"])
def test_a_privilege_makes_nobody_an_owner(serve: Serve, word: str) -> None:
    """Privileges are texts that clients choose: those that represent ownership have no effect as grants."""
    world = World(serve)
    ann, eve = world.ann, world.eve
    whole = {"objectType": t.HiveObjectType.DATABASE, "objectName": None}
    assert not may(ann, "grant_privileges", {"privileges": bag(word, option=True, **whole)})
    everybodys = bag(word, option=True, **whole | {"dbName": "default"})
    assert not may(eve, "grant_privileges", {"privileges": everybodys})
    for of in ({}, whole):  # by a user who may grant anything
        world.root.call("grant_privileges", privileges=bag(word, option=True, **of))
    assert not world.sees(eve)
    mine = table("open", "x")
    mine.owner = "eve"
    assert not may(eve, "create_table", {"tbl": mine})
    assert not may(eve, "drop_table", {"dbname": "open", "name": "hers", "deleteData": False})
    assert not may(eve, "grant_privileges", {"privileges": bag("SELECT")})


def test_a_grant_and_a_revocation_count_for_the_next_call(world: World) -> None:
    ann, eve = world.ann, world.eve
    for _ in range(3):
        assert not world.sees(eve)
        ann.call("grant_privileges", privileges=bag("SELECT"))
        assert world.sees(eve) and eve.call("get_all_databases") == ["default", "open"]
        ann.call("revoke_privileges", privileges=bag("SELECT"))
    assert not world.sees(eve)
    columns = {"objectType": t.HiveObjectType.COLUMN, "columnName": "a"}
    ann.call("grant_privileges", privileges=bag("SELECT", **columns))
    assert world.sees(eve)
    ann.call("revoke_privileges", privileges=bag("SELECT", **columns))
    world.root.call("grant_privileges", privileges=bag("SELECT", objectType=t.HiveObjectType.DATABASE, objectName=None))
    assert world.sees(eve) and world.sees(eve, "other")


def test_what_another_metastore_changes_counts_for_the_next_call(serve: Serve) -> None:
    world = World(serve)
    url = world.server.service._settings.database.url
    world.ann.call("grant_privileges", privileges=bag("SELECT"))
    assert world.sees(world.eve)
    engine = create_engine(str(url))
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM TBL_PRIVS"))
    assert not world.sees(world.eve)
    with engine.begin() as connection:
        connection.execute(text("UPDATE TBLS SET OWNER = 'eve' WHERE TBL_NAME = 'hers'"))
    engine.dispose()
    assert world.sees(world.eve) and not world.sees(world.ann)


def test_roles(world: World) -> None:
    root, ann, eve = world.root, world.ann, world.eve
    user, role = t.PrincipalType.USER, t.PrincipalType.ROLE

    def give(name: str, to: str, kind: int) -> None:
        root.call(
            "grant_role", role_name=name, principal_name=to, principal_type=kind, grantor="root", grantorType=user
        )

    for name in ("readers", "all_readers"):
        root.call("create_role", role=t.Role(name, 0, "root"))
    ann.call("grant_privileges", privileges=bag("SELECT", "readers", kind=role))
    give("readers", "all_readers", role)
    assert not world.sees(eve)
    give("all_readers", "eve", user)
    assert world.sees(eve)
    root.call("revoke_role", role_name="readers", principal_name="all_readers", principal_type=role)
    assert not world.sees(eve)
    # A user with a role's name does not have the role.
    assert not world.sees(world.link("readers"))
    give("admin", "eve", user)
    assert world.sees(eve) and world.sees(eve, "other")
    root.call("revoke_role", role_name="admin", principal_name="eve", principal_type=user)
    assert not world.sees(eve)
    for method, arguments in {
        "create_role": {"role": t.Role("r", 0, "eve")},
        "grant_role": {
            "role_name": "admin",
            "principal_name": "eve",
            "principal_type": user,
            "grantor": "eve",
            "grantorType": user,
        },
        "get_principals_in_role": {"request": t.GetPrincipalsInRoleRequest("admin")},
    }.items():
        assert "Permission denied" in outcome(eve, method, **arguments)[1]


def test_who_may_grant(world: World) -> None:
    ann, eve, bob = world.ann, world.eve, world.link("bob")
    for link in (eve, bob):
        assert "may not change grants" in outcome(link, "grant_privileges", privileges=bag("SELECT"))[1]
    ann.call("grant_privileges", privileges=bag("SELECT", option=True))
    eve.call("grant_privileges", privileges=bag("SELECT", "bob"))
    assert world.sees(bob)
    assert "may not change grants" in outcome(bob, "grant_privileges", privileges=bag("SELECT", "eva"))[1]
    assert "may not change grants" in outcome(eve, "grant_privileges", privileges=bag("INSERT", "bob"))[1]
    for link in (eve, bob):
        assert "may not change grants" in outcome(link, "revoke_privileges", privileges=bag("SELECT", "bob"))[1]
    both = bag("SELECT,DELETE", "eva")
    assert "may not change grants" in outcome(eve, "grant_privileges", privileges=both)[1]
    request = t.GrantRevokePrivilegeRequest(t.GrantRevokeType.REVOKE, bag("SELECT", "bob"), False)
    assert "may not change grants" in outcome(eve, "grant_revoke_privileges", request=request)[1]
    ann.call("grant_revoke_privileges", request=request)
    assert not world.sees(bob)
    everywhere = {"objectType": t.HiveObjectType.GLOBAL, "dbName": None, "objectName": None}
    assert "may not change grants" in outcome(ann, "grant_privileges", privileges=bag("SELECT", **everywhere))[1]
    world.root.call("grant_privileges", privileges=bag("SELECT", "bob", **everywhere))
    assert world.sees(bob, "other")


DATABASE = {"objectType": t.HiveObjectType.DATABASE, "objectName": None}


def test_who_owns_a_database_gives_itself_no_right_on_tables_of_others(world: World) -> None:
    """`default` belongs to the role public: otherwise, all users could read and change everything in it."""
    root, ann, eve = world.root, world.ann, world.eve
    root.call("create_table", tbl=table("default", "private"))
    for link, user, name in ((ann, "ann", "open"), (eve, "eve", "default")):
        for word in ("SELECT", "INSERT", "DELETE", "ALL"):
            given = bag(word, user, **DATABASE, dbName=name)
            assert "may not change grants" in outcome(link, "grant_privileges", privileges=given)[1]
            request = t.GrantRevokePrivilegeRequest(t.GrantRevokeType.GRANT, given, False)
            assert "may not change grants" in outcome(link, "grant_revoke_privileges", request=request)[1]
        root.call("grant_privileges", privileges=bag("SELECT", "bob", **DATABASE, dbName=name))
        given = bag("SELECT", "bob", **DATABASE, dbName=name)
        assert "may not change grants" in outcome(link, "revoke_privileges", privileges=given)[1]
    assert not world.sees(ann, "other")
    assert isinstance(outcome(eve, "get_table", dbname="default", tbl_name="private"), tuple)
    # With the grant option, they may grant it.
    root.call("grant_privileges", privileges=bag("SELECT", "ann", **DATABASE, option=True))
    ann.call("grant_privileges", privileges=bag("SELECT", "eve", **DATABASE))
    assert world.sees(ann, "other") and world.sees(eve, "other")
    assert "may not change grants" in outcome(ann, "grant_privileges", privileges=bag("INSERT", "eve", **DATABASE))[1]


def test_functions_and_databases_are_changed_by_administrators(world: World) -> None:
    """As in Hive: a function is code that runs in all users' queries, and `default` belongs to all."""
    root, ann, eve = world.root, world.ann, world.eve

    def function(name: str, of: str, jar: str) -> t.Function:
        kind = t.FunctionType.JAVA
        resources = [t.ResourceUri(t.ResourceType.JAR, jar)]
        return t.Function(name, of, "com.example.F", "root", t.PrincipalType.USER, 1, kind, resources)

    for link, name in ((ann, "open"), (eve, "default")):
        assert "may not create" in outcome(link, "create_function", func=function("f", name, "file:///evil.jar"))[1]
        root.call("create_function", func=function("f", name, "file:///good.jar"))
        changed = {"dbName": name, "funcName": "f", "newFunc": function("f", name, "file:///evil.jar")}
        assert "may not alter" in outcome(link, "alter_function", **changed)[1]
        made = link.call("get_database", name=name)
        made.ownerName, made.ownerType, made.parameters = "eve", t.PrincipalType.USER, {"a": "b"}
        assert "may not alter" in outcome(link, "alter_database", dbname=name, db=made)[1]
        assert root.call("get_function", dbName=name, funcName="f").resourceUris[0].uri == "file:///good.jar"
        root.call("alter_function", **changed)
    assert "may not drop" in outcome(eve, "drop_function", dbName="default", funcName="f")[1]
    assert eve.call("get_all_stored_procedures", request=t.ListStoredProcedureRequest("hive", "default")) == []
    # A user who may drop the database may drop its contents.
    assert "may not drop" in outcome(ann, "drop_function", dbName="open", funcName="f")[1]
    root.call("drop_table", dbname="open", name="other", deleteData=False)
    ann.call("drop_function", dbName="open", funcName="f")


@pytest.mark.parametrize("method", ["drop_database", "drop_database_req"])
def test_who_drops_a_database_with_all_in_it_may_drop_all_in_it(world: World, method: str) -> None:
    """As in Hive, whose DROP DATABASE CASCADE checks each table."""

    def dropped(link: Link, name: str) -> Any:
        if method == "drop_database":
            return outcome(link, method, name=name, deleteData=True, cascade=True)
        request = t.DropDatabaseRequest(name, ignoreUnknownDb=False, deleteData=True, cascade=True)
        return outcome(link, method, req=request)

    found = dropped(world.ann, "open")
    assert "may not drop" in found[1] and "other" not in found[1]
    assert world.root.call("get_all_tables", db_name="open") == ["hers", "other"]
    world.root.call("drop_table", dbname="open", name="other", deleteData=False)
    assert not isinstance(dropped(world.ann, "open"), tuple)
    assert world.root.call("get_all_databases") == ["default"]


def test_services_are_those_of_the_setting(world: World) -> None:
    request = t.NotificationEventRequest(lastEvent=0)
    assert world.link("hs2").call("get_next_notification", rqst=request).events
    for link in (world.eve, world.root):
        assert "Permission denied" in outcome(link, "get_all_token_identifiers")[1]
    shown = {one.tableName for one in world.ann.call("get_next_notification", rqst=request).events}
    assert shown == {None, "hers"}
    assert {one.tableName for one in world.eve.call("get_next_notification", rqst=request).events} == {None}


def test_lists_of_many_databases_cost_a_few_statements(serve: Serve) -> None:
    world = World(serve)
    for n in range(6):
        world.root.call("create_database", database=database(f"d{n}"))
        for m in range(4):
            one = table(f"d{n}", f"t{m}")
            one.owner = "eve" if m == 1 else "bob"
            world.root.call("create_table", tbl=one)
    requested = []

    def counted(kind: str) -> Callable[..., Any]:
        original = getattr(GrantedRights, kind)

        def count(*given: Any, **options: Any) -> Any:
            requested.append(kind)
            return original(*given, **options)

        return count

    with pytest.MonkeyPatch.context() as patched:
        for kind in ("rights", "rights_on_tables", "rights_by_database"):
            patched.setattr(GrantedRights, kind, counted(kind))
        found = world.eve.call("get_table_meta", db_patterns="*", tbl_patterns="*")
        assert sorted((one.dbName, one.tableName) for one in found) == [(f"d{n}", "t1") for n in range(6)]
        assert len(requested) == 1
        assert world.eve.call("get_all_databases") == sorted(["default", *(f"d{n}" for n in range(6))])
        assert len(requested) == 2


def test_who_may_create_tables_locks_none_of_others(world: World) -> None:
    """In `default`, all users may create tables: an exclusive lock blocks all others as long as it is renewed."""
    world.root.call("create_table", tbl=table("default", "private"))
    for link, database_name, name, allowed in (
        (world.eve, "default", "private", False),
        (world.ann, "open", "other", False),
        (world.ann, "open", "hers", True),
        (world.eve, "default", "new", True),
        (world.ann, "open", "new", True),
        (world.eve, "open", "new", False),
        (world.eve, "default", None, False),
        (world.eve, "default", "", False),
        (world.eve, "hive.default (jobs)", "", False),
        (world.ann, "open", "", True),
    ):
        level = t.LockLevel.TABLE if name else t.LockLevel.DB
        part = t.LockComponent(t.LockType.EXCLUSIVE, level, database_name, name)
        found = outcome(link, "lock", rqst=t.LockRequest([part], 0, "somebody", "host"))
        assert isinstance(found, t.LockResponse) == allowed, (database_name, name)


def test_jobs_take_leases_on_what_their_user_may_change(world: World) -> None:
    """A lease is a lock on a database that does not exist: by that name, only administrators could take it."""

    def lease(link: Link, *target: Any) -> bool:
        request = t.LockRequest([_component(*target)], 0, "somebody", "host")
        found = outcome(link, "lock", rqst=request)
        if isinstance(found, tuple):
            assert "Permission denied" in found[1]
            return False
        link.call("unlock", rqst=t.UnlockRequest(found.lockid))
        return bool(found.state == t.LockState.ACQUIRED)

    root, ann, eve = world.root, world.ann, world.eve
    for link in (ann, root):
        assert lease(link, "hive.open", "hers") and lease(link, "hive.open", None)
    for link, target in (
        (ann, ("hive.open", "other")),
        (eve, ("hive.open", "hers")),
        (eve, ("hive.open", None)),
        (eve, ("hive.default", None)),
        (eve, ("c2.open", "hers")),
        (ann, ("output /data/a.b", None)),
    ):
        assert not lease(link, *target), target
    ann.call("grant_privileges", privileges=bag("SELECT"))
    assert not lease(eve, "hive.open", "hers")
    ann.call("grant_privileges", privileges=bag("INSERT"))
    assert lease(eve, "hive.open", "hers")


def test_who_grants_is_named_as_the_grantor(world: World) -> None:
    """Grants that differ in the grantor are stored separately: with invented names, one would remain after its
    revocation."""
    root, ann, eve = world.root, world.ann, world.eve
    user = t.PrincipalType.USER

    def grantors(name: str = "hers", kind: int = t.HiveObjectType.TABLE) -> set[tuple[str, str, int]]:
        reference = t.HiveObjectRef(kind, "open", name)
        found = root.call("list_privileges", principal_name=None, principal_type=None, hiveObject=reference)
        return {(one.principalName, one.grantInfo.grantor, one.grantInfo.grantorType) for one in found}

    ann.call("grant_privileges", privileges=bag("SELECT", option=True))
    for number, name in enumerate(("root", "ann", "", None)):
        given = bag("SELECT", f"friend{number}")
        given.privileges[0].grantInfo.grantor = name
        given.privileges[0].grantInfo.grantorType = t.PrincipalType.ROLE
        eve.call("grant_privileges", privileges=given)
    friends = {(f"friend{number}", "eve", user) for number in range(4)}
    assert grantors() == {("eve", "ann", user), *friends}
    # An existing one is not created again under another name, by either spelling.
    again = bag("SELECT", "friend0")
    again.privileges[0].grantInfo.grantor = "bob"
    request = t.GrantRevokePrivilegeRequest(t.GrantRevokeType.GRANT, again, False)
    assert "already granted" in outcome(eve, "grant_revoke_privileges", request=request)[1]
    assert "already granted" in outcome(eve, "grant_privileges", privileges=again)[1]
    # With a new table, too.
    made = table("open", "made")
    made.owner = "ann"
    info = t.PrivilegeGrantInfo("SELECT", 0, "root", user, False)
    made.privileges = t.PrincipalPrivilegeSet({"eve": [info]}, {"g": [info]}, {"public": [info]})
    for name, method in (("made", "create_table"), ("requested", "create_table_req")):
        made.tableName = name
        arguments = {"tbl": made} if method == "create_table" else {"request": t.CreateTableRequest(made)}
        ann.call(method, **arguments)
        assert {grantor for _, grantor, _ in grantors(name)} == {"ann"}, method
    # Administrators grant for others.
    root.call("grant_privileges", privileges=bag("INSERT", "friend0"))
    assert ("friend0", "ann", user) in grantors()
