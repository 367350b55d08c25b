"""A server with a policy: what is refused, what is visible, and that cached answers are only shared by users with equal
rights."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TApplicationException, TException, TType

from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.verification.verify import verify
from hms_cache.call_context import CallContext
from hms_cache.errors import StartupError
from hms_cache.server.authorization.answers import FILTERS
from hms_cache.store.locks import locking
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from hms_cache.wire import METHODS
from tests.server.conftest import Link, Running, Serve, database, request_bytes, table
from tests.servers import MAX_WAIT_S

ROOT = '[[grants]]\nusers = ["root"]\nactions = ["all"]\ncatalogs = ["*"]\ndatabases = ["*"]\n'
POLICY = (
    ROOT
    + """
[groups]
readers = ["ann", "bob"]
[[grants]]
groups = ["readers"]
actions = ["read"]
databases = ["open"]
tables = ["pub*"]
[[grants]]
users = ["eve"]
actions = ["write"]
databases = ["open"]
[[grants]]
users = ["hs2"]
actions = ["service"]
"""
)


class World:
    """A server with two databases: `open` with tables `pub` and `secret`, and `closed` with `hidden`."""

    def __init__(self, serve: Serve, path: Path) -> None:
        self.path = path
        path.write_text(POLICY)
        self.server: Running = serve(
            **{
                "admin.enabled": True,
                "authorization.provider": "policy",
                "authorization.policy_file": str(path),
                "authorization.policy_check_interval_s": 3600,
                "security.accept_insecure": True,
            }
        )
        root = self.root = self.link("root")
        for name, tables in (("open", ("pub", "secret")), ("closed", ("hidden",))):
            root.call("create_database", database=database(name))
            for one in tables:
                root.call("create_table", tbl=table(name, one))
            root.call("create_function", func=function(name))

    def link(self, user: str) -> Link:
        link = self.server.link()
        link.call("set_ugi", user_name=user, group_names=["readers"])  # groups that clients claim have no effect
        return link

    def allow(self, text: str) -> None:
        """Another policy, from now on."""
        self.path.write_text(text)
        self.server.service.reload(self.server.service._configuration)

    def hits(self) -> int:
        return int(self.server.service.metrics.cache.reads.values().get(("reply", Reason.HIT), 0))


def function(name: str) -> t.Function:
    return t.Function(
        *("f", name, "c", "o", t.PrincipalType.USER, 1, t.FunctionType.JAVA),
        [t.ResourceUri(t.ResourceType.JAR, "file:/j.jar")],
    )


@pytest.fixture
def world(serve: Serve, tmp_path: Path) -> World:
    return World(serve, tmp_path / "policy.toml")


def outcome(link: Link, method: str, **arguments: Any) -> Any:
    """The answer, or type and text of the error."""
    try:
        return link.call(method, **arguments)
    except Exception as error:
        return type(error), getattr(error, "message", None)


def test_without_authentication_the_start_is_refused(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(POLICY)
    settings = {"authorization.provider": "policy", "authorization.policy_file": str(tmp_path / "p.toml")}
    with pytest.raises(StartupError, match="do not authenticate"):
        serve(**settings)
    with pytest.raises(StartupError, match=r"nowhere\.toml"):
        serve(**{**settings, "authorization.policy_file": "nowhere.toml", "security.accept_insecure": True})


def of_table(name: str) -> dict[str, dict[str, Any]]:
    at = {"db_name": "open", "tbl_name": name}
    request = {"dbName": "open", "tblName": name}
    return {
        "get_table": {"dbname": "open", "tbl_name": name},
        "get_table_req": {"req": t.GetTableRequest(**request)},
        "get_fields": {"db_name": "open", "table_name": name},
        "get_schema": {"db_name": "open", "table_name": name},
        "get_fields_req": {"req": t.GetFieldsRequest(**request)},
        "get_partitions": {**at, "max_parts": -1},
        "get_partition_names": {**at, "max_parts": -1},
        "get_partition": {**at, "part_vals": ["1"]},
        "get_partition_by_name": {**at, "part_name": "p=1"},
        "get_partitions_by_filter": {**at, "filter": "p = '1'", "max_parts": -1},
        "get_partitions_by_names": {**at, "names": ["p=1"]},
        "get_table_statistics_req": {"request": t.TableStatsRequest(**request, colNames=["a"])},
        "get_aggr_stats_for": {"request": t.PartitionsStatsRequest(**request, colNames=["a"], partNames=["p=1"])},
        "get_table_objects_by_name": {"dbname": "open", "tbl_names": [name]},
        "get_tables": {"db_name": "open", "pattern": name},
        "get_table_meta": {"db_patterns": "open", "tbl_patterns": name},
    }


def test_what_may_not_be_read_is_answered_as_what_is_not_there(world: World) -> None:
    """The text differs only in the name, and is the same whether or not the object exists."""
    ann = world.link("ann")
    unlike = []
    for method, arguments in of_table("secret").items():
        denied = outcome(ann, method, **arguments)
        absent = outcome(ann, method, **of_table("absent")[method])
        assert repr(denied).replace("secret", "absent") == repr(absent), method
        missing = outcome(world.root, method, **of_table("absent")[method])
        if repr(missing) != repr(absent):
            unlike.append((method, missing, absent))
    # Where Hive's text differs between methods, ours is that of `get_table`.
    assert {method for method, missing, absent in unlike} <= {
        *(
            "get_partitions",
            "get_partition_names",
            "get_partition",
            "get_partition_by_name",
            "get_partitions_by_filter",
        ),
        *("get_partitions_by_names", "get_table_statistics_req", "get_aggr_stats_for"),
    }, unlike
    for name in ("closed", "absent"):
        assert outcome(ann, "get_database", name=name) == (
            t.NoSuchObjectException,
            f"database hive.{name}",
        )
        assert ann.call("get_all_tables", db_name=name) == []
        assert ann.call("get_functions", dbName=name, pattern="*") == []
        error = outcome(ann, "get_table_objects_by_name", dbname=name, tbl_names=["hidden"])
        assert error == (t.UnknownDBException, f"Could not find database hive.{name}: database hive.{name}")
    assert outcome(world.root, "get_database", name="absent") == (*(t.NoSuchObjectException, "database hive.absent"),)


def test_what_may_not_be_read_costs_what_is_not_there_costs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of an answer reveals neither that an object exists, nor that others have requested it."""
    sent = 0
    original = CallContext.statement_sent

    def counted(trace: CallContext) -> None:
        nonlocal sent
        sent += trace.call > 0  # those of other threads follow the log
        original(trace)

    monkeypatch.setattr(CallContext, "statement_sent", counted)
    ann = world.link("ann")
    requested = of_table("secret")
    for method, arguments in requested.items():
        for _ in range(3):  # cached for others
            outcome(world.root, method, **arguments)
    service = world.server.service

    def cost(link: Link, method: str, name: str) -> tuple[int, int, dict[str, int]]:
        nonlocal sent
        sent, hits, before = 0, world.hits(), service.reads_by_outcome()
        outcome(link, method, **of_table(name)[method])
        after = service.reads_by_outcome()
        return (
            sent,
            world.hits() - hits,
            {key: n - before.get(key, 0) for key, n in after.items() if n != before.get(key)},
        )

    for method in ("get_partition", "get_partitions"):
        assert cost(world.root, method, "secret") != cost(world.root, method, "absent"), "it would be seen"
    for method in requested:
        for _ in range(3):
            assert cost(ann, method, "secret") == cost(ann, method, "absent"), method


def test_lists_show_what_may_be_read(world: World) -> None:
    ann, root = world.link("ann"), world.root
    assert ann.call("get_all_databases") == ["default", "open"]
    assert root.call("get_all_databases") == ["closed", "default", "open"]
    assert ann.call("get_databases", pattern="*") == ["default", "open"]
    assert [one.name for one in ann.call("get_databases_req", request=t.GetDatabaseObjectsRequest()).databases] == [
        *("default", "open"),
    ]
    assert ann.call("get_catalogs").names == ["hive"]
    assert ann.call("get_all_tables", db_name="open") == ["pub"]
    assert ann.call("get_tables", db_name="OPEN ", pattern="*") == ["pub"]
    assert ann.call("get_tables_by_type", db_name="open", pattern="*", tableType="MANAGED_TABLE") == ["pub"]
    assert [one.tableName for one in ann.call("get_table_meta", db_patterns="*", tbl_patterns="*")] == ["pub"]
    assert [one.tblName for one in ann.call("get_tables_ext", req=extended("open"))] == ["pub"]
    assert ann.call("get_tables_ext", req=extended("closed")) == []
    assert [one.dbName for one in ann.call("get_all_functions").functions] == ["open"]
    objects = ann.call("get_table_objects_by_name", dbname="open", tbl_names=["secret", "pub"])
    assert [one.tableName for one in objects] == ["pub"]
    for pattern in ("*", "open", "o*"):
        request = t.GetTablesRequest(dbName=pattern, tablesPattern="*", catName="hive")
        found = ann.call("get_table_objects_by_name_req", req=request).tables
        assert [one.tableName for one in found] == ["pub"], pattern
    for pattern in ("clos*", "abs*"):
        request = t.GetTablesRequest(dbName=pattern, tablesPattern="*", catName="hive")
        error = outcome(ann, "get_table_objects_by_name_req", req=request)
        assert error == (t.UnknownDBException, f"Could not find database hive.{pattern}")


def extended(name: str) -> t.GetTablesExtRequest:
    return t.GetTablesExtRequest(catalog="hive", database=name, tableNamePattern="*", requestedFields=0)


def test_an_insert_only_table_that_is_hidden_is_not_named_in_an_error(world: World) -> None:
    hidden = table("open", "secret2", transactional="true", transactional_properties="insert_only")
    world.root.call("create_table", tbl=hidden)
    request = t.GetTablesRequest(dbName="open", tablesPattern="*", catName="hive")
    ann = world.link("ann")
    found = ann.call("get_table_objects_by_name_req", req=request).tables
    assert [one.tableName for one in found] == ["pub"]


def test_a_foreign_key_is_shown_to_those_who_may_read_both_tables(world: World) -> None:
    key = t.SQLForeignKey(
        *("open", "secret", "a", "open", "pub", "a", 1, 0, 0, "fk", "pk", True, False, False),
        catName="hive",
    )
    primary = t.SQLPrimaryKey("open", "secret", "a", 1, "pk", True, False, False, catName="hive")
    world.root.call("add_primary_key", req=t.AddPrimaryKeyRequest([primary]))
    world.root.call("add_foreign_key", req=t.AddForeignKeyRequest([key]))
    request = t.ForeignKeysRequest(foreign_db_name="open", foreign_tbl_name="pub", catName="hive")
    everything = t.AllTableConstraintsRequest(dbName="open", tblName="pub", catName="hive")
    shown = []
    for user in ("root", "ann"):
        link = world.link(user)
        keys = link.call("get_foreign_keys", request=request).foreignKeys
        constraints = link.call("get_all_table_constraints", request=everything).allTableConstraints
        shown.append((len(keys), len(constraints.foreignKeys or ())))
    assert shown == [(1, 1), (0, 0)]


def test_what_is_left_out_for_one_is_there_for_the_next(world: World) -> None:
    """Answers are reduced to what a user may see; the data in memory, from which others are answered, is not."""
    key = t.SQLForeignKey(
        *("open", "secret", "a", "open", "pub", "a", 1, 0, 0, "fk", "pk", True, False, False),
        catName="hive",
    )
    primary = t.SQLPrimaryKey("open", "secret", "a", 1, "pk", True, False, False, catName="hive")
    world.root.call("add_primary_key", req=t.AddPrimaryKeyRequest([primary]))
    world.root.call("add_foreign_key", req=t.AddForeignKeyRequest([key]))
    at, tables = {"dbName": "open", "catName": "hive"}, t.GetTablesRequest(dbName="open", catName="hive")
    tables.tablesPattern = "*"
    of_functions = t.GetFunctionsRequest(dbName="open", catalogName="hive", pattern="*", returnNames=False)
    requested: dict[str, dict[str, Any]] = {
        "get_all_databases": {},
        "get_all_functions": {},
        "get_all_materialized_view_objects_for_rewriting": {},
        "get_all_table_constraints": {"request": t.AllTableConstraintsRequest(**at, tblName="pub")},
        "get_all_tables": {"db_name": "open"},
        "get_catalogs": {},
        "get_databases": {"pattern": "*"},
        "get_databases_req": {"request": t.GetDatabaseObjectsRequest(catalogName="hive", pattern="*")},
        "get_foreign_keys": {"request": t.ForeignKeysRequest(None, None, "open", "pub", "hive")},
        "get_functions": {"dbName": "open", "pattern": "*"},
        "get_functions_req": {"request": of_functions},
        "get_materialized_views_for_rewriting": {"db_name": "open"},
        "get_table": {"dbname": "open", "tbl_name": "pub"},
        "get_table_meta": {"db_patterns": "*", "tbl_patterns": "*", "tbl_types": []},
        "get_table_names_by_filter": {"dbname": "open", "filter": "", "max_tables": -1},
        "get_table_objects_by_name": {"dbname": "open", "tbl_names": ["pub", "secret"]},
        "get_table_objects_by_name_req": {"req": tables},
        "get_table_req": {"req": t.GetTableRequest(**at, tblName="pub")},
        "get_tables": {"db_name": "open", "pattern": "*"},
        "get_tables_by_type": {"db_name": "open", "pattern": "*", "tableType": "MANAGED_TABLE"},
        "get_tables_ext": {"req": t.GetTablesExtRequest("hive", "open", "*", 3)},
    }
    assert requested.keys() == FILTERS.keys()
    sources = world.server.service.admin_sources
    assert sources is not None and sources.cache is not None
    links = [world.link(user) for user in ("ann", "eve", "root")]
    for method, arguments in requested.items():
        sources.cache.shared.forget_all()
        first, *_ = [outcome(link, method, **arguments) for link in reversed(links)]  # it is in memory now
        sources.cache.shared.answers.clear()
        *_, last = [outcome(link, method, **arguments) for link in links]
        assert last == first, method
        report = verify(sources.cache.shared, sources.store, sources.cache.loader)
        assert report.differences == [], method


def test_what_is_refused_has_no_effect(world: World) -> None:
    ann, eve = world.link("ann"), world.link("eve")
    denied = "Permission denied: user ann may not drop table hive.open.pub"
    assert outcome(ann, "drop_table", dbname="open", name="pub", deleteData=True) == (
        t.MetaException,
        denied,
    )
    changed = world.root.call("get_table", dbname="open", tbl_name="pub")
    changed.owner = "ann"
    error = outcome(ann, "alter_table", dbname="open", tbl_name="pub", new_tbl=changed)
    assert error[0] is t.MetaException and "may not alter" in error[1]
    for link in (ann, eve):
        error = outcome(link, "create_table", tbl=table("open", "pub_made"))
        assert error[0] is t.MetaException and "may not create table hive.open.pub_made" in error[1]
    assert "pub_made" not in world.root.call("get_all_tables", db_name="open")
    assert world.root.call("get_table", dbname="open", tbl_name="pub").owner == "o"
    made = world.root.call("get_table", dbname="open", tbl_name="pub")
    partition = t.Partition(values=["1"], dbName="open", tableName="pub", sd=made.sd)
    error = outcome(ann, "add_partition", new_part=partition)
    assert error[0] is t.MetaException and "may not write" in error[1]
    assert eve.call("add_partition", new_part=partition).values == ["1"]


def constraints_on(name: str) -> dict[str, list[Any]]:
    """One of each kind, on a column of the table; named by the fields of `CreateTableRequest`."""
    at = {"catName": "hive", "table_db": "open", "table_name": name, "column_name": "a"}
    foreign = {"fktable_db": "open", "fktable_name": name, "fkcolumn_name": "a", "pktable_db": "open"}
    return {
        "primaryKeys": [t.SQLPrimaryKey(**at, key_seq=1, pk_name="p")],
        "foreignKeys": [t.SQLForeignKey(catName="hive", **foreign, pktable_name="pub", pkcolumn_name="a", key_seq=1)],
        "uniqueConstraints": [t.SQLUniqueConstraint(**at, key_seq=1, uk_name="u")],
        "notNullConstraints": [t.SQLNotNullConstraint(**at, nn_name="n", enable_cstr=True)],
        "defaultConstraints": [t.SQLDefaultConstraint(**at, default_value="1", dc_name="d")],
        "checkConstraints": [t.SQLCheckConstraint(**at, check_expression="a > 1", dc_name="c")],
    }


@pytest.mark.parametrize("kind", constraints_on(""))
def test_who_may_create_tables_changes_none_of_others_by_constraints(world: World, kind: str) -> None:
    """The constraints of a request that creates a table name their tables."""
    world.allow(POLICY + '[[grants]]\nusers = ["max"]\nactions = ["create", "read"]\ndatabases = ["open"]\n')
    maker = world.link("max")
    if kind == "foreignKeys":
        world.root.call("add_primary_key", req=t.AddPrimaryKeyRequest(constraints_on("pub")["primaryKeys"]))
    asking = t.AllTableConstraintsRequest(dbName="open", tblName="secret", catName="hive")
    before = world.root.call("get_all_table_constraints", request=asking)
    others, own = constraints_on("secret")[kind], constraints_on("made")[kind]
    for number, given in enumerate((others, [*own, *others])):
        made = table("open", "made")
        with pytest.raises(t.MetaException, match=r"max may not alter table hive\.open\.secret"):
            maker.call("create_table_req", request=t.CreateTableRequest(table=made, **{kind: given}))
        with pytest.raises(t.MetaException, match=r"max may not alter table hive\.open\.secret"):
            maker.call("create_table_with_constraints", tbl=made, **{kind: given})
        assert world.root.call("get_all_tables", db_name="open") == ["pub", "secret"], number
    assert world.root.call("get_all_table_constraints", request=asking) == before
    for constraint in own:
        constraint.catName = None  # that of the table
    maker.call("create_table_req", request=t.CreateTableRequest(table=table("open", "made"), **{kind: own}))
    asking.tblName = "made"
    found = world.root.call("get_all_table_constraints", request=asking).allTableConstraints
    assert len(getattr(found, kind)) == 1


def test_who_may_create_tables_refers_to_none_that_it_may_not_read(world: World) -> None:
    """A source of a materialized view cannot be dropped; the refusal of a foreign key reveals the other table's
    columns."""
    world.root.call("add_primary_key", req=t.AddPrimaryKeyRequest(constraints_on("secret")["primaryKeys"]))
    world.allow(POLICY + '[[grants]]\nusers = ["max"]\nactions = ["create"]\ndatabases = ["open"]\n')
    maker = world.link("max")

    def with_key_to(name: str) -> dict[str, Any]:
        """A new table with a primary key on one column, and a foreign key on the other."""
        made = table("open", "made")
        made.sd.cols = [t.FieldSchema("a", "int"), t.FieldSchema("b", "int")]
        [foreign] = constraints_on("made")["foreignKeys"]
        foreign.pktable_name, foreign.fkcolumn_name = name, "b"
        keys = {"primaryKeys": constraints_on("made")["primaryKeys"], "foreignKeys": [foreign]}
        return {"table": made, **keys}

    told = t.NoSuchObjectException, "hive.open.secret table not found"
    request = with_key_to("secret")
    assert outcome(maker, "create_table_req", request=t.CreateTableRequest(**request)) == told
    assert outcome(maker, "create_table_with_constraints", tbl=request.pop("table"), **request) == told
    view = table("open", "view")
    view.tableType, view.viewOriginalText, view.viewExpandedText = "MATERIALIZED_VIEW", "SELECT 1", "SELECT 1"
    view.creationMetadata = t.CreationMetadata("hive", "open", "view", {"open.secret"})
    assert outcome(maker, "create_table", tbl=view) == told
    # A table may refer to itself.
    maker.call("create_table_req", request=t.CreateTableRequest(**with_key_to("made")))


def test_who_may_create_replaces_no_code_of_others(world: World) -> None:
    """The call that creates a procedure or a package replaces an existing one."""
    rights = '[[grants]]\nusers = ["max"]\nactions = {}\ndatabases = ["open"]\n'
    own = t.StoredProcedure("p", "open", "hive", "root", "own source")
    package = t.AddPackageRequest("hive", "open", "p", "root", "own header", "own body")
    world.root.call("create_stored_procedure", proc=own)
    world.root.call("add_package", request=package)
    world.allow(POLICY + rights.format('["create", "read"]'))
    maker = world.link("max")
    changed = t.StoredProcedure("p", "open", "hive", "max", "another source")
    with pytest.raises(t.MetaException, match="max may not alter database"):
        maker.call("create_stored_procedure", proc=changed)
    with pytest.raises(t.MetaException, match="max may not alter database"):
        maker.call("add_package", request=t.AddPackageRequest("hive", "open", "p", "max", "h", "b"))
    requested = t.StoredProcedureRequest("hive", "open", "p")
    assert world.root.call("get_stored_procedure", request=requested).source == "own source"
    assert world.root.call("find_package", request=t.GetPackageRequest("hive", "open", "p")).body == "own body"
    world.allow(POLICY + rights.format('["create", "alter"]'))
    maker.call("create_stored_procedure", proc=changed)
    assert world.root.call("get_stored_procedure", request=requested).source == "another source"


def test_what_belongs_to_services_is_refused_to_others(world: World) -> None:
    request = t.NotificationEventRequest(lastEvent=0)
    tokens = {
        "ann": "get_all_token_identifiers",
        "root": "get_all_token_identifiers",
        "nobody": "get_next_notification",
    }
    for user, method in tokens.items():
        error = outcome(world.link(user), method, **({"rqst": request} if user == "nobody" else {}))
        assert error[0].__name__ in ("MetaException", "TApplicationException") and "Permission denied" in error[1]
    service = world.link("hs2")
    assert service.call("get_next_notification", rqst=request).events
    assert outcome(service, "get_table", dbname="open", tbl_name="pub")[0] is t.NoSuchObjectException
    nobody = world.link("nobody")
    assert nobody.call("getStatus") == 2
    assert "Permission denied" in outcome(nobody, "get_all_databases")[1]


def test_users_share_kept_answers_only_within_their_class(world: World) -> None:
    links = {user: world.link(user) for user in ("root", "ann", "bob", "eve", "nobody")}
    requests = [
        request_bytes("get_all_tables", 7, db_name="open"),
        request_bytes("get_table", 7, dbname="open", tbl_name="secret"),
        request_bytes("get_table", 7, dbname="open", tbl_name="pub"),
        request_bytes("get_all_databases", 7),
    ]

    def answers(user: str) -> list[bytes]:
        found = []
        for request in requests:
            links[user].sock.sendall(request)
            found.append(links[user].sock.recv(1 << 20))
        return found

    first = {user: answers(user) for user in links}
    for _ in range(3):
        before = world.hits()
        for user in links:
            assert answers(user) == first[user]
    assert world.hits() - before >= 4 + 3 + 3, "of root, ann and bob: those that are no errors"
    assert first["ann"] == first["bob"]
    assert b"secret" in first["root"][0] and b"secret" not in first["ann"][0]
    assert all(b"Permission denied" in one or b"not found" in one for one in first["nobody"])
    fresh = world.link("bob")
    before = world.hits()
    fresh.sock.sendall(requests[0])
    assert fresh.sock.recv(1 << 20) == first["ann"][0]
    assert world.hits() == before + 1, "one class, one answer, from the first request of a connection"


def test_another_user_of_the_same_connection_is_decided_about_anew(world: World) -> None:
    link = world.link("root")
    for _ in range(3):
        assert link.call("get_all_tables", db_name="open") == ["pub", "secret"]
    link.call("set_ugi", user_name="ann", group_names=[])
    assert link.call("get_all_tables", db_name="open") == ["pub"]
    link.call("set_ugi", user_name="root", group_names=[])
    assert link.call("get_all_tables", db_name="open") == ["pub", "secret"]


def test_a_right_that_is_withdrawn_ends_with_the_next_call(world: World) -> None:
    ann = world.link("ann")
    for _ in range(3):
        assert ann.call("get_table", dbname="open", tbl_name="pub").tableName == "pub"
    world.allow(POLICY.replace('"ann", ', ""))
    assert outcome(ann, "get_table", dbname="open", tbl_name="pub")[0] is not t.Table
    assert "Permission denied" in outcome(ann, "get_all_databases")[1]
    world.allow(POLICY)
    assert ann.call("get_table", dbname="open", tbl_name="pub").tableName == "pub"


def test_a_policy_that_cannot_be_used_is_told_and_changes_nothing(world: World) -> None:
    ann = world.link("ann")
    with pytest.raises(StartupError, match="not TOML"):
        world.allow("nonsense")
    assert ann.call("get_all_tables", db_name="open") == ["pub"]


def test_revocation_under_load(world: World) -> None:
    """Once the reload has returned, no reader sees what was revoked, whether cached or in progress."""
    rounds, stop = 12, threading.Event()
    allowed, seen, failures = [True], [0, 0], []
    turn = threading.Condition()

    def read() -> None:
        link = world.link("ann")
        while not stop.is_set():
            was_allowed = allowed[0]
            found = outcome(link, "get_table", dbname="open", tbl_name="pub")
            is_shown = isinstance(found, t.Table)
            if is_shown and not was_allowed and not allowed[0]:
                failures.append(found)
            with turn:
                seen[is_shown] += 1
                turn.notify_all()

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for number in range(rounds):
            with turn:
                goal = seen[allowed[0]] + 10
                assert turn.wait_for(lambda least=goal: seen[allowed[0]] >= least, 30)  # type: ignore[misc]
            if number % 2 == 0:
                world.allow(ROOT)
                allowed[0] = False
            else:
                allowed[0] = True
                world.allow(POLICY)
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert failures == []


def test_a_refusal_is_audited_in_hives_form_and_counted(world: World, caplog: pytest.LogCaptureFixture) -> None:
    ann = world.link("ann")
    with caplog.at_level(logging.INFO, "hms_cache.audit"):
        outcome(ann, "get_table", dbname="open", tbl_name="secret")
        outcome(ann, "get_table", dbname="open", tbl_name="pub")
        outcome(ann, "drop_table", dbname="open", name="pub", deleteData=True)
        world.server.service.stop()
    lines = [r.getMessage() for r in caplog.records if r.name == "hms_cache.audit"]
    assert lines[-2:] == [
        "ugi=ann\tip=127.0.0.1\tcmd=denied: get_table : db=open tbl=secret\t",
        "ugi=ann\tip=127.0.0.1\tcmd=denied: drop_table : db=open tbl=pub\t",
    ]
    calls = world.server.service.metrics.server.calls.values()
    assert calls[("get_table", "denied")] == 1 and calls[("drop_table", "denied")] == 1


@pytest.mark.parametrize("user", ["root", "ann"])
def test_what_a_request_lacks_makes_no_decision_fail(world: World, user: str, caplog: pytest.LogCaptureFixture) -> None:
    """Calls without arguments, and with empty structs: authorization examines them before the handler, which reports
    what is missing."""
    link = world.link(user)
    for method in sorted(METHODS.keys() - {"shutdown", "reinitialize"}):
        fields = [field for field in METHODS[method].args_table[1] if field is not None]
        blank = {field[2]: field[3][0]() for field in fields if field[1] == TType.STRUCT}
        for arguments in ({}, blank):
            with suppress(TException):
                link.call(method, **arguments)
    failed = [one.getMessage() for one in caplog.records if "internal error" in one.getMessage()]
    assert not failed


def test_kept_replies_of_every_class_are_verified(world: World) -> None:
    for user in ("root", "ann"):
        link = world.link(user)
        for _ in range(2):
            link.call("get_all_tables", db_name="open")
            link.call("get_table", dbname="open", tbl_name="pub")
    sources = world.server.service.admin_sources
    assert sources is not None and sources.cache is not None
    report = verify(sources.cache.shared, sources.store, sources.cache.loader, replies=sources.kept_replies)
    assert report.differences == []
    assert report.compared["replies"] >= 4


def test_who_may_not_is_refused_alone_in_a_transaction_that_calls_share(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locks of three users are collected while one is being taken: they are executed together, except the refused
    one."""
    take, entered, proceed = locking.lock, threading.Event(), threading.Event()

    def take_slowly(*arguments: Any) -> Any:
        entered.set()
        assert proceed.wait(MAX_WAIT_S)
        return take(*arguments)

    def request(table_name: str) -> t.LockRequest:
        kind = {"type": t.LockType.EXCLUSIVE, "level": t.LockLevel.TABLE}
        return t.LockRequest([t.LockComponent(dbname="open", tablename=table_name, **kind)], user="u", hostname="h")

    def waiting() -> int:
        return next(one.waiting for one in world.server.service._thread_pool_loads() if one.pool == "transactions")

    links = {user: world.link(user) for user in ("root", "eve", "ann")}
    monkeypatch.setattr(locking, "lock", take_slowly)
    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(links["root"].call, "lock", rqst=request("first"))]
        assert entered.wait(MAX_WAIT_S)
        monkeypatch.setattr(locking, "lock", lambda *_: pytest.fail("not carried out together"))
        answers += [pool.submit(links[user].call, "lock", rqst=request(user)) for user in ("eve", "ann")]
        pause = threading.Event()
        while waiting() < 2:
            assert not pause.wait(0.005)
        more = pool.submit(world.link("root").call, "lock", rqst=request("eve"))
        while waiting() < 3:
            assert not pause.wait(0.005)
        proceed.set()
        states = [one.result(MAX_WAIT_S).state for one in (answers[0], answers[1], more)]
        assert states == [t.LockState.ACQUIRED, t.LockState.ACQUIRED, t.LockState.WAITING]
        with pytest.raises(TApplicationException, match="Permission denied: user ann may not"):
            answers[2].result(MAX_WAIT_S)


def test_a_limit_tells_nothing_of_tables_that_are_not_shown(world: World) -> None:
    """A list shorter than the limit would reveal whether a filter or a pattern matches a hidden object."""
    hidden = table("open", "a_first")
    hidden.parameters = {"budget": "7"}
    shown = table("open", "pub_last")
    shown.parameters = {"budget": "7"}
    for one in (hidden, shown):
        world.root.call("create_table", tbl=one)
    ann = world.link("ann")

    def names(link: Link, most: int) -> tuple[list[str], list[str]]:
        text = 'hive_filter_field_params__budget = "7"'
        request = t.GetTablesExtRequest(
            catalog="hive", database="open", tableNamePattern="*", requestedFields=0, limit=most
        )
        return (
            link.call("get_table_names_by_filter", dbname="open", filter=text, max_tables=most),
            [one.tblName for one in link.call("get_tables_ext", req=request)],
        )

    assert names(world.root, 1) == (["a_first"], ["a_first"])
    assert names(ann, 1) == (["pub_last"], ["pub"])
    assert names(ann, 2) == (["pub_last"], ["pub", "pub_last"])


@pytest.mark.parametrize("kind", [t.LockType.EXCLUSIVE, t.LockType.SHARED_WRITE, t.LockType.SHARED_READ])
def test_who_may_create_tables_locks_none_that_is_there(world: World, kind: int) -> None:
    """An exclusive lock blocks everybody else as long as it is renewed; a shared one blocks drops of the table.

    A database that is visible can be locked for reading, whatever the rights in it.
    """
    grants = (("create", '["made*", "pub"]'), ("alter", '["secret"]'))
    world.allow(
        world.path.read_text()
        + "".join(
            f'[[grants]]\nusers = ["kim"]\nactions = ["{action}"]\ndatabases = ["open"]\ntables = {tables}\n'
            for action, tables in grants
        )
        + '[[grants]]\nusers = ["kim"]\nactions = ["create"]\ndatabases = ["closed", "none"]\n'
    )
    world.root.call("create_table", tbl=table("open", "made"))
    kim = world.link("kim")
    for database_name, name, allowed in (
        ("open", "made", False),
        ("open", "pub", False),
        ("open", None, kind == t.LockType.SHARED_READ),
        ("open", "made_later", True),
        ("open", "other", False),
        ("open", "secret", True),
        ("closed", "hidden", False),
        ("closed", None, kind == t.LockType.SHARED_READ),
        ("closed", "", kind == t.LockType.SHARED_READ),
        ("none", None, True),
        ("none", "any", True),
    ):
        level = t.LockLevel.TABLE if name else t.LockLevel.DB
        part = t.LockComponent(kind, level, database_name, name)
        found = outcome(kim, "lock", rqst=t.LockRequest([part], 0, "somebody", "host"))
        assert isinstance(found, t.LockResponse) == allowed, (database_name, name)


CATALOGS = 2_000

MAX_CPU_S = 2.0


@pytest.mark.parametrize("provider", ["policy", None])
def test_a_request_names_no_more_objects_than_its_elements(serve: Serve, tmp_path: Path, provider: str | None) -> None:
    """Each element may name a catalog, and each table is checked in each catalog: 100 kB would name four million
    objects. Without authorization, the audit log would name them, too."""
    if provider is None:
        link = serve(**{"server.audit": "all", "server.audit_format": "json"}).link()
    else:
        link = World(serve, tmp_path / "policy.toml").link("ann")
    strangers = [t.Partition([str(n)], "open", f"t{n}", catName=f"c{n}") for n in range(CATALOGS)]
    started_s = time.process_time()
    found = outcome(link, "add_partitions", new_parts=strangers)
    assert time.process_time() - started_s < MAX_CPU_S
    if provider is not None:
        assert found == (
            t.MetaException,
            f"The request names {CATALOGS} catalogs beside {CATALOGS} tables or databases",
        )
    few = [t.Partition([str(n)], "open", f"t{n}", catName=f"c{n % 2}") for n in range(CATALOGS)]
    assert "catalogs beside" not in str(outcome(link, "add_partitions", new_parts=few))


def test_who_may_change_a_schema_reads_no_serde_of_others(world: World) -> None:
    """Serdes are looked up by name only; Trino gives those of tables the names of the tables."""
    world.allow(POLICY + '[[grants]]\nusers = ["max"]\nactions = ["all"]\ndatabases = ["mine"]\n')
    world.root.call("create_database", database=database("mine"))
    hidden = table("closed", "named")
    hidden.sd.serdeInfo = t.SerDeInfo("named", "lib", {"password": "of others"})
    world.root.call("create_table", tbl=hidden)
    maker = world.link("max")
    schema = t.ISchemaName("hive", "mine", "s")
    version = t.SchemaVersionDescriptor(schema, 1)
    maker.call("create_ischema", schema=t.ISchema(1, "s", "hive", "mine", 1, 1, True))
    maker.call("add_schema_version", schemaVersion=t.SchemaVersion(schema, 1, 5, [t.FieldSchema("a", "int")]))

    def told(user: Link, serde: str) -> Any:
        request = t.MapSchemaVersionToSerdeRequest(version, serde)
        return outcome(user, "map_schema_version_to_serde", rqst=request)

    assert told(maker, "named") == told(maker, "absent"), "whether there is such a table is not told either"
    assert "Permission denied" in told(maker, "named")[1]
    assert maker.call("get_schema_version", schemaVersion=version).serDe is None
    assert told(world.root, "named") is None
    assert world.root.call("get_schema_version", schemaVersion=version).serDe.parameters == {"password": "of others"}
