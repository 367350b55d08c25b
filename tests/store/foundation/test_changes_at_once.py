"""Two concurrent changes of one object: one is made after the other, sees its effect, and is logged after it.

The first is stopped when it has written its rows; the second has completed its reads by then, or waits.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import Column, select, update

from hms_cache.metadata.object_names import DatabaseName, FunctionName, TableName
from hms_cache.notifications import events as ev
from hms_cache.notifications.message_reader import read_event
from hms_cache.notifications.replication_properties import without_replication_properties
from hms_cache.server.calls import Call
from hms_cache.server.handlers import partition_changes
from hms_cache.store.contract.environment import EnvironmentOptions, Writer
from hms_cache.store.contract.tables import UsedByViews
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.schema import (
    GLOBAL_PRIVS,
    I_SCHEMA,
    MV_TABLES_USED,
    PART_COL_STATS,
    ROLE_MAP,
    SCHEDULED_EXECUTIONS,
    SCHEDULED_QUERIES,
    SCHEMA_VERSION,
    SERDES,
)
from hms_cache.store.transactions.write_notifications import TableWrite
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.world import CATALOG, Server, create_database, partition, table

D, E = DatabaseName(CATALOG, "d"), DatabaseName(CATALOG, "e")
F = FunctionName(CATALOG, "d", "f")
MAX_WAIT_S = 30.0
SOON_S = 0.3
"""Within which the second one has read, and waits for what the first holds."""

Do = Callable[[Server], Any]


@dataclass(frozen=True)
class Case:
    """The concurrent changes, and the state afterwards."""

    first: Do
    second: Do
    events: tuple[str, ...]
    """Types of the last ones."""
    then: Do
    """What is asked at last."""
    answer: Any
    """To that; the type of an exception if it raises one."""
    error: type[Exception] | None = None
    """Of the second."""
    prepare: tuple[Do, ...] = ()
    held_at: str = "write_events"
    """Method of the first's transaction; this one comes after all of its other statements."""


def function(name: str = "f", database: str = "d", **changes: Any) -> ttypes.Function:
    jar = ttypes.ResourceUri(ttypes.ResourceType.JAR, "file:/j.jar")
    made = ttypes.Function(name, database, "c", "o", ttypes.PrincipalType.USER, 1, ttypes.FunctionType.JAVA, [jar])
    made.catName = CATALOG
    for field_name, value in changes.items():
        setattr(made, field_name, value)
    return made


def alter_function(**changes: Any) -> Do:
    return lambda server: server.objects.writes.functions.alter_function(F, function(**changes))


def drop_function(server: Server) -> None:
    server.objects.writes.functions.drop_function(F)


def class_of(name: FunctionName) -> Do:
    return lambda server: server.objects.reads.functions.get_function(name).className


def alter_catalog(**changes: Any) -> Do:
    return lambda server: server.objects.writes.catalogs.alter_catalog("c", ttypes.Catalog("c", **changes))


def drop_catalog(server: Server) -> None:
    server.objects.writes.catalogs.drop_catalog("c")


def create_in_catalog(server: Server) -> None:
    server.objects.writes.databases.create_database(ttypes.Database("x", catalogName="c", parameters={}))


def catalog(server: Server) -> tuple[str, str]:
    found = server.objects.reads.catalogs.get_catalog("c")
    return found.description, found.locationUri


def alter_database(**changes: Any) -> Do:
    def alter(server: Server) -> None:
        changed = copy.deepcopy(server.objects.reads.databases.get_database(D))
        for name, value in changes.items():
            setattr(changed, name, value)
        server.objects.writes.databases.alter_database(D, changed)

    return alter


def drop_database(server: Server) -> None:
    server.objects.writes.databases.drop_database(D, delete_data=False, cascade=True)


def database(server: Server) -> tuple[str, dict[str, str]]:
    found = server.objects.reads.databases.get_database(D)
    return found.description, found.parameters


def mark(server: Server) -> None:
    """As a replication does that commits what its source committed."""
    txn_id = server.transactions.open()
    server.transactions.commit(txn_id, replLastIdInfo=ttypes.ReplLastIdInfo("d", 42))


def open_replicated(server: Server) -> None:
    server.transactions.store.open_txns(
        ttypes.OpenTxnRequest(1, "u", "h", replPolicy="d.*", replSrcTxnIds=[7], txn_type=ttypes.TxnType.REPL_CREATED)
    )


def abort_replicated(server: Server) -> None:
    """Marks the database as one to which nothing can be replicated any more."""
    [txn_id] = server.transactions.store.get_replayed_txns_for_policy("d.*").replTxnMapEntry.values()
    server.transactions.abort(int(txn_id))


def create_partitioned(server: Server) -> None:
    server.objects.writes.tables.create_table(table("d", "t", (("k", "string"),)))


def create_view(server: Server) -> None:
    """Of table t, materialized."""
    view = table("d", "v")
    view.tableType = "MATERIALIZED_VIEW"
    view.viewOriginalText = view.viewExpandedText = "SELECT * FROM d.t"
    view.creationMetadata = ttypes.CreationMetadata(CATALOG, "d", "v", {"d.t"}, materializationTime=1)
    server.objects.writes.tables.create_table(view)


def rebuild_view(server: Server) -> None:
    """From table u instead of t."""
    metadata = ttypes.CreationMetadata(CATALOG, "d", "v", {"d.u"}, materializationTime=2)
    server.objects.writes.tables.update_creation_metadata(TableName(CATALOG, "d", "v"), metadata)


def add_column(server: Server) -> None:
    """With CASCADE."""
    changed = copy.deepcopy(server.objects.reads.tables.get_table(TableName(CATALOG, "d", "t")))
    changed.sd.cols.append(ttypes.FieldSchema("new", "int"))
    writer = Writer(options=EnvironmentOptions(cascades=True))
    server.objects.writes.tables.alter_table(TableName(CATALOG, "d", "t"), changed, writer=writer)


def call_of(server: Server) -> Call:
    """From a client of this server."""
    return cast(Call, SimpleNamespace(stores=SimpleNamespace(reads=server.objects.reads, writes=server.objects.writes)))


def append_partition(server: Server) -> None:
    partition_changes.append_partition(call_of(server), methods.append_partition_args("d", "t", ["1"]))


def add_without_columns(server: Server) -> None:
    added = partition(table("d", "t"), ("1",))
    added.sd.cols = []
    request = ttypes.AddPartitionsRequest("d", "t", [added], False, skipColumnSchemaForPartition=True)
    partition_changes.add_partitions_req(call_of(server), methods.add_partitions_req_args(request))


def columns_of_partition(server: Server) -> list[str]:
    found = server.objects.reads.partitions.get_partition(TableName(CATALOG, "d", "t"), ["1"])
    return [column.name for column in found.sd.cols]


def create_plain(name: str) -> Do:
    return lambda server: server.objects.writes.tables.create_table(table("d", name))


def drop_table(name: str) -> Do:
    return lambda server: server.objects.writes.tables.drop_table(TableName(CATALOG, "d", name), delete_data=False)


def sources_of_view(server: Server) -> set[str]:
    found = server.objects.reads.tables.get_table(TableName(CATALOG, "d", "v"))
    return set(found.creationMetadata.tablesUsed)


def add_partition(server: Server, **statistics: ttypes.ColumnStatistics) -> None:
    added = partition(table("d", "t"), ("1",))
    for name, value in statistics.items():
        setattr(added, name, value)
    server.objects.writes.partitions.add_partitions(TableName(CATALOG, "d", "t"), [added], if_not_exists=True)


def add_with_statistics(server: Server) -> None:
    data = ttypes.ColumnStatisticsData(stringStats=ttypes.StringColumnStatsData(9, 4.0, 1, 3))
    about = ttypes.ColumnStatisticsDesc(False, "d", "t", "k=1", catName=CATALOG)
    columns = [ttypes.ColumnStatisticsObj("a", "string", data)]
    add_partition(server, colStats=ttypes.ColumnStatistics(about, columns, engine="hive"))


def report_write(name: str) -> Do:
    files = ttypes.InsertEventRequestData(filesAdded=[name])
    write = TableWrite(7, 1, table("d", "t"), None, "", files)
    return lambda server: server.transactions.store.add_write_notifications([write])


def reported_files(server: Server) -> list[list[str]]:
    request = ttypes.GetAllWriteEventInfoRequest(7)
    found = server.transactions.store.get_all_write_event_info(request)
    return [sorted(one.files.split("]")) for one in found]


def add_serde(server: Server) -> None:
    server.auxiliary.schemas.add_serde(ttypes.SerDeInfo("s", "lib", {}))


def schedule(server: Server) -> None:
    key = ttypes.ScheduledQueryKey("q", "n")
    query = ttypes.ScheduledQuery(key, enabled=True, schedule="0 * * * * ?", user="u", query="SELECT 1")
    server.auxiliary.scheduled_queries.create(query)


def begin_execution(server: Server) -> None:
    """An execution of the scheduled query, old enough to count as stuck."""
    with server.database.write_engine.begin() as connection:
        connection.execute(update(SCHEDULED_QUERIES).values(NEXT_EXECUTION=1))
    server.auxiliary.scheduled_queries.poll("n")
    with server.database.write_engine.begin() as connection:
        connection.execute(update(SCHEDULED_EXECUTIONS).values(LAST_UPDATE_TIME=1))


def finish_execution(server: Server) -> None:
    [execution_id] = every(SCHEDULED_EXECUTIONS.c.SCHEDULED_EXECUTION_ID)(server)
    report = ttypes.ScheduledQueryProgressInfo(execution_id, ttypes.QueryState.FINISHED, "e", None)
    server.auxiliary.scheduled_queries.report_progress(report)


def clean_executions(server: Server) -> None:
    server.auxiliary.scheduled_queries.clean()


SCHEMA = ttypes.ISchemaName(CATALOG, "d", "s")


def create_schema(server: Server) -> None:
    server.auxiliary.schemas.create_schema(ttypes.ISchema(1, "s", CATALOG, "d", 1, 1, True))


def drop_schema(server: Server) -> None:
    server.auxiliary.schemas.drop_schema(SCHEMA)


def add_version(server: Server) -> None:
    server.auxiliary.schemas.add_version(ttypes.SchemaVersion(SCHEMA, 1, 5, [ttypes.FieldSchema("a", "int")]))


def create_role(name: str) -> Do:
    return lambda server: server.auxiliary.roles.create_role(name, "o")


def drop_role(name: str) -> Do:
    return lambda server: server.auxiliary.roles.drop_role(name)


def grant_role(server: Server) -> None:
    """Grants the role `outer` to the role `inner`."""
    roles = server.auxiliary.roles
    roles.grant_role("outer", "inner", ttypes.PrincipalType.ROLE, "g", ttypes.PrincipalType.USER, grant_option=False)


def grant_globally(server: Server) -> None:
    """As clients of Hive 2 do, without an authorizer."""
    info = ttypes.PrivilegeGrantInfo("ALL", 0, "g", ttypes.PrincipalType.USER, False)
    on_all = ttypes.HiveObjectRef(ttypes.HiveObjectType.GLOBAL)
    grant = ttypes.HiveObjectPrivilege(on_all, "u", ttypes.PrincipalType.USER, info)
    server.auxiliary.privileges.grant_privileges([grant])


def every(of: Column[Any]) -> Callable[[Server], list[Any]]:
    def fetch(server: Server) -> list[Any]:
        with server.database.loading() as connection:
            return list(connection.execute(select(of)).scalars())

    return fetch


def count(of: Column[Any]) -> Do:
    return lambda server: len(every(of)(server))


CASES = {
    "function renamed, altered": Case(
        alter_function(functionName="g"),
        alter_function(className="other"),
        ("DROP_FUNCTION", "CREATE_FUNCTION"),
        class_of(FunctionName(CATALOG, "d", "g")),
        "c",
        ttypes.MetaException,
    ),
    "function altered, dropped": Case(
        alter_function(className="other"),
        drop_function,
        ("DROP_FUNCTION", "CREATE_FUNCTION", "DROP_FUNCTION"),
        class_of(F),
        ttypes.NoSuchObjectException,
    ),
    "function dropped, altered": Case(
        drop_function,
        alter_function(className="other"),
        ("CREATE_FUNCTION", "DROP_FUNCTION"),
        class_of(F),
        ttypes.NoSuchObjectException,
        ttypes.MetaException,
    ),
    "function altered, its database dropped": Case(
        alter_function(className="other"),
        drop_database,
        ("CREATE_FUNCTION", "DROP_FUNCTION", "DROP_DATABASE"),
        class_of(F),
        ttypes.NoSuchObjectException,
    ),
    "function moved away, its database dropped": Case(
        alter_function(dbName="e"),
        drop_database,
        ("DROP_FUNCTION", "CREATE_FUNCTION", "DROP_DATABASE"),
        class_of(FunctionName(CATALOG, "e", "f")),
        "c",
    ),
    "function moved to a name, that is taken": Case(
        lambda server: server.objects.writes.functions.create_function(function("g", className="g")),
        alter_function(functionName="g"),
        ("CREATE_FUNCTION", "CREATE_FUNCTION"),
        class_of(FunctionName(CATALOG, "d", "g")),
        "g",
        ttypes.MetaException,
    ),
    "catalog altered twice": Case(
        alter_catalog(description="first"),
        alter_catalog(locationUri="file:/elsewhere"),
        ("ALTER_CATALOG", "ALTER_CATALOG"),
        catalog,
        ("first", "file:/elsewhere"),
    ),
    "catalog dropped, altered": Case(
        drop_catalog,
        alter_catalog(description="second"),
        ("DROP_DATABASE", "DROP_CATALOG"),
        catalog,
        ttypes.NoSuchObjectException,
        ttypes.NoSuchObjectException,
    ),
    "catalog dropped, added to": Case(
        drop_catalog,
        create_in_catalog,
        ("DROP_DATABASE", "DROP_CATALOG"),
        catalog,
        ttypes.NoSuchObjectException,
        ttypes.InvalidObjectException,
        held_at="append_event",
    ),
    "catalog added to, dropped": Case(
        create_in_catalog,
        drop_catalog,
        ("CREATE_FUNCTION", "CREATE_DATABASE"),
        catalog,
        ("before", "file:/c"),
        ttypes.InvalidOperationException,
    ),
    "database altered twice": Case(
        alter_database(description="first", parameters={"a": "1"}),
        alter_database(description=None, parameters={"b": "2"}),
        ("ALTER_DATABASE", "ALTER_DATABASE"),
        database,
        ("first", {"b": "2"}),
    ),
    "database altered, dropped": Case(
        alter_database(description="first"),
        drop_database,
        ("ALTER_DATABASE", "DROP_FUNCTION", "DROP_DATABASE"),
        database,
        ttypes.NoSuchObjectException,
    ),
    "database altered, marked": Case(
        alter_database(description="first", parameters={"a": "1"}),
        mark,
        ("ALTER_DATABASE", "ALTER_DATABASE", "COMMIT_TXN"),
        database,
        ("first", {"a": "1", "repl.last.id": "42"}),
    ),
    "database dropped, marked": Case(
        drop_database,
        mark,
        ("DROP_FUNCTION", "DROP_DATABASE"),
        database,
        ttypes.NoSuchObjectException,
        ttypes.MetaException,
    ),
    "database altered, its replication aborted": Case(
        alter_database(description="first", parameters={"a": "1"}),
        abort_replicated,
        ("ALTER_DATABASE", "ALTER_DATABASE", "ABORT_TXN"),
        database,
        ("first", {"a": "1", "repl.incompatible": "true"}),
        prepare=(open_replicated,),
    ),
    **{
        f"column added, partition {what}": Case(
            add_column,
            second,
            ("ALTER_TABLE", "ADD_PARTITION"),
            columns_of_partition,
            ["a", "b", "new"],
            prepare=(create_partitioned,),
        )
        for what, second in (("appended", append_partition), ("added without columns", add_without_columns))
    },
    "table dropped, a view made of it": Case(
        drop_table("t"),
        create_view,
        ("CREATE_TABLE", "DROP_TABLE"),
        count(MV_TABLES_USED.c.TBL_ID),
        0,
        ttypes.MetaException,
        prepare=(create_plain("t"),),
    ),
    "view made of a table, dropped": Case(
        create_view,
        drop_table("t"),
        ("CREATE_TABLE", "CREATE_TABLE"),
        sources_of_view,
        {"d.t"},
        UsedByViews,
        prepare=(create_plain("t"),),
    ),
    "table dropped, a view rebuilt from it": Case(
        drop_table("u"),
        rebuild_view,
        ("CREATE_TABLE", "DROP_TABLE"),
        sources_of_view,
        {"d.t"},
        ttypes.MetaException,
        prepare=(create_plain("t"), create_plain("u"), create_view),
    ),
    "partition added twice, with statistics": Case(
        add_with_statistics,
        add_with_statistics,
        ("UPDATE_PART_COL_STAT_EVENT", "UPDATE_PART_COL_STAT_EVENT"),
        count(PART_COL_STATS.c.CS_ID),
        1,
        prepare=(create_partitioned,),
    ),
    "partition that is there added twice, with statistics": Case(
        add_with_statistics,
        add_with_statistics,
        ("ADD_PARTITION", "UPDATE_PART_COL_STAT_EVENT", "UPDATE_PART_COL_STAT_EVENT"),
        count(PART_COL_STATS.c.CS_ID),
        1,
        prepare=(create_partitioned, add_partition),
    ),
    "serde added twice": Case(add_serde, add_serde, (), count(SERDES.c.SERDE_ID), 1, ttypes.AlreadyExistsException),
    "query scheduled twice": Case(
        schedule, schedule, (), count(SCHEDULED_QUERIES.c.SCHEDULED_QUERY_ID), 1, ttypes.AlreadyExistsException
    ),
    "execution finished, given up": Case(
        finish_execution,
        clean_executions,
        (),
        every(SCHEDULED_EXECUTIONS.c.STATE),
        ["FINISHED"],
        prepare=(schedule, begin_execution),
    ),
    "execution given up twice": Case(
        clean_executions,
        clean_executions,
        (),
        every(SCHEDULED_EXECUTIONS.c.STATE),
        ["TIMED_OUT"],
        prepare=(schedule, begin_execution),
    ),
    "schema created twice": Case(
        create_schema, create_schema, (), count(I_SCHEMA.c.SCHEMA_ID), 1, ttypes.AlreadyExistsException
    ),
    "schema's database dropped, schema created": Case(
        drop_database,
        create_schema,
        ("DROP_FUNCTION", "DROP_DATABASE"),
        count(I_SCHEMA.c.SCHEMA_ID),
        0,
        ttypes.NoSuchObjectException,
    ),
    "schema's database, dropped after its creation": Case(
        create_schema, drop_database, (), count(I_SCHEMA.c.SCHEMA_ID), 1, ttypes.InvalidOperationException
    ),
    "schema dropped, version added": Case(
        drop_schema,
        add_version,
        (),
        count(SCHEMA_VERSION.c.SCHEMA_VERSION_ID),
        0,
        ttypes.NoSuchObjectException,
        prepare=(create_schema,),
    ),
    "version added, schema dropped": Case(
        add_version,
        drop_schema,
        (),
        count(SCHEMA_VERSION.c.SCHEMA_VERSION_ID),
        1,
        ttypes.InvalidOperationException,
        prepare=(create_schema,),
    ),
    "role granted, the one that has it dropped": Case(
        grant_role,
        drop_role("inner"),
        (),
        count(ROLE_MAP.c.ROLE_GRANT_ID),
        0,
        prepare=(create_role("outer"), create_role("inner")),
    ),
    "role granted, dropped": Case(
        grant_role,
        drop_role("outer"),
        (),
        count(ROLE_MAP.c.ROLE_GRANT_ID),
        0,
        prepare=(create_role("outer"), create_role("inner")),
    ),
    "role dropped, another granted to it": Case(
        drop_role("inner"),
        grant_role,
        (),
        count(ROLE_MAP.c.ROLE_GRANT_ID),
        0,
        ttypes.NoSuchObjectException,
        prepare=(create_role("outer"), create_role("inner")),
    ),
    "role dropped, granted": Case(
        drop_role("outer"),
        grant_role,
        (),
        count(ROLE_MAP.c.ROLE_GRANT_ID),
        0,
        ttypes.NoSuchObjectException,
        prepare=(create_role("outer"), create_role("inner")),
    ),
    "privilege granted twice": Case(
        grant_globally, grant_globally, (), count(GLOBAL_PRIVS.c.USER_GRANT_ID), 1, ttypes.InvalidObjectException
    ),
    "files of one write reported twice": Case(
        report_write("file:/1"),
        report_write("file:/2"),
        (),
        reported_files,
        [["file:/1###", "file:/2###"]],
    ),
    "database dropped, its replication aborted": Case(
        drop_database,
        abort_replicated,
        ("DROP_FUNCTION", "DROP_DATABASE", "ABORT_TXN"),
        database,
        ttypes.NoSuchObjectException,
        prepare=(open_replicated,),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize(
    "database_kind", [pytest.param("sqlite", marks=pytest.mark.soak), "mariadb", "postgresql"], indirect=True
)
def test_the_second_change_begins_from_the_first(
    initialized_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    go_on = getattr(WriteTransaction, case.held_at)
    reached, proceed = threading.Event(), threading.Event()
    holder: list[int] = []

    def held(self: WriteTransaction, what: Any) -> None:
        if threading.get_ident() in holder:
            reached.set()
            assert proceed.wait(MAX_WAIT_S)
        go_on(self, what)

    def first_change() -> None:
        holder.append(threading.get_ident())
        case.first(here)

    with (
        closing(Server(initialized_database_url, tmp_path / "here")) as here,
        closing(Server(initialized_database_url, tmp_path / "there")) as there,
        ThreadPoolExecutor(2) as pool,
    ):
        create_database(here.objects, "d")
        create_database(here.objects, "e")
        here.objects.writes.catalogs.create_catalog(ttypes.Catalog("c", "before", "file:/c"))
        here.objects.writes.functions.create_function(function())
        for prepare in case.prepare:
            prepare(here)
        monkeypatch.setattr(WriteTransaction, case.held_at, held)
        first = pool.submit(first_change)
        assert reached.wait(MAX_WAIT_S)
        second = pool.submit(case.second, there)
        wait([second], SOON_S)
        proceed.set()
        first.result(MAX_WAIT_S)
        if case.error is None:
            second.result(MAX_WAIT_S)
        else:
            with pytest.raises(case.error):
                second.result(MAX_WAIT_S)
        log = here.log.fetch(0, 1_000).rows
        told = [row.event_type for row in log if row.event_type != "OPEN_TXN"]
        assert tuple(told[len(told) - len(case.events) :]) == case.events
        if isinstance(case.answer, type):
            with pytest.raises(case.answer):
                case.then(here)
            return
        assert case.then(here) == case.answer
        altered = [event for event in map(read_event, log) if isinstance(event, ev.DatabaseAltered)]
        if altered:
            stored = here.objects.reads.databases.get_database(D)
            assert altered[-1].after() == without_replication_properties(stored)
