"""Changes by other servers, in orders that event-driven caches handle wrongly; collected from Impala's event processor.

Each scenario is executed by one server (`writer`, which caches, too, and may return data of any age), while two others
have everything about the names in memory: one checks the position for each read, the other never does, and its poller
takes one step. Afterwards, all three must return what the database contains.

Other scenarios of that collection are tested elsewhere: batches, damaged events, failures, outages, commands and
metrics of the poller in `tests/notifications`; flags in `test_policy`; loads that overlap with events in `test_loads`;
write-id lists in `test_write_ids`; budgets in `test_bounds`; waiting for events in `tests/admin/test_commands`;
outages, trimmed logs and restored databases under a running server in `tests/consistency`. Not tested at all, since
events only invalidate: recognizing a server's own events, skipping old ones, and a mode for catching up.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.verification import invariants
from hms_cache.metadata.object_names import DatabaseName, TableName, table_name
from hms_cache.notifications.poller_status import PollerStatus
from hms_cache.notifications.poller_steps import StepOutcome
from hms_cache.store.contract.environment import EnvironmentOptions, Writer
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import ByFilter, ByNames, ByPartialValues, PartitionQuery
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.store.engine.work_units import run_write
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.world import CATALOG, Server, changed_table, create_database, encoded, partition, table
from tests.conftest import ServerLookup
from tests.notifications.log_writer import BUILDER

INF = float("inf")
KEYS = (("p", "string"), ("q", "string"))
VALUES = (("a", "1"), ("a", "2"), ("b", "1"))
ODD = (
    ("a/b", "x=y"),
    ("50%", "tab\there"),
    ("Grüße", "人"),
    ("it's", 'a "b"'),
    ("{json}", "[1,2]"),
    ("back\\slash", "semi;colon"),
    (" leading", "trailing "),
    ("__HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__"),
    ("UPPER", "upper"),
)
DATABASES = ("d", "e")
TABLES = ("t", "u", "v")
ACID = {"transactional": "true", "transactional_properties": "insert_only"}

Scenario = Callable[[MetadataStore, Server], object]
Ask = Callable[[MetadataStore], object]


# ---- the questions --------------------------------------------------------------------------------------------------


def questions() -> Iterator[tuple[str, Ask]]:
    yield "databases", lambda store: store.reads.databases.get_database_names(CATALOG)
    for database in DATABASES:
        yield (
            f"database {database}",
            lambda store, d=database: store.reads.databases.get_database(DatabaseName(CATALOG, d)),
        )
        yield (
            f"names {database}",
            lambda store, d=database: store.reads.tables.get_table_names(DatabaseName(CATALOG, d)),
        )
        yield (
            f"objects {database}",
            lambda store, d=database: store.reads.tables.get_tables(DatabaseName(CATALOG, d), TABLES),
        )
        for name in TABLES:
            at = (CATALOG, database, name)
            yield f"table {at}", lambda store, at=at: store.reads.tables.get_table(TableName(*at))
            yield (
                f"partitions {at}",
                lambda store, at=at: store.reads.partitions.get_partitions(PartitionQuery(TableName(*at))),
            )
            yield (
                f"ps {at}",
                lambda store, at=at: store.reads.partitions.get_partition_names(
                    PartitionQuery(TableName(*at), ByPartialValues(("a",)))
                ),
            )
            yield (
                f"filter {at}",
                lambda store, at=at: store.reads.partitions.get_partition_names(
                    PartitionQuery(TableName(*at), ByFilter('p >= "b"'))
                ),
            )
            yield (
                f"partition {at}",
                lambda store, at=at: store.reads.partitions.get_partition(TableName(*at), list(VALUES[0])),
            )
            yield (
                f"statistics {at}",
                lambda store, at=at: store.reads.statistics.get_table_column_statistics(
                    StatisticsQuery(TableName(*at), ["a"])
                ),
            )


QUESTIONS = tuple(questions())


# ---- the servers ----------------------------------------------------------------------------------------------------


@dataclass
class Site:
    writer: Server
    asking: Server
    following: Server

    @property
    def servers(self) -> tuple[Server, ...]:
        return self.writer, self.asking, self.following

    def clean(self) -> None:
        """No database except ``default`` and new ones of these two; no catalog except ``hive``."""
        objects = self.writer.objects
        for catalog in objects.reads.catalogs.get_catalog_names():
            for database in objects.reads.databases.get_database_names(catalog):
                if database in DATABASES:
                    objects.writes.databases.drop_database(
                        DatabaseName(catalog, database), delete_data=True, cascade=True
                    )
            if catalog != CATALOG:
                for database in objects.reads.databases.get_database_names(catalog):
                    objects.writes.databases.drop_database(
                        DatabaseName(catalog, database), delete_data=True, cascade=True
                    )
                objects.writes.catalogs.drop_catalog(catalog)
        for database in DATABASES:
            create_database(objects, database)
        for name in ("t", "u"):
            make(objects, "d", name)

    def warm(self) -> None:
        for server in self.servers:
            while server.poller.step().outcome is not StepOutcome.CAUGHT_UP:
                pass
        self.compare()

    def compare(self) -> None:
        for label, ask in QUESTIONS:
            expected = encoded(lambda ask=ask: ask(self.writer.objects))
            for who, server in zip(("writer", "asking", "following"), self.servers, strict=True):
                for _ in range(2):
                    assert encoded(lambda ask=ask, server=server: ask(server.store)) == expected, (who, label)
        for server in self.servers:
            invariants.check(server.cache.shared)


@pytest.fixture(scope="module")
def shared_site(database_servers: ServerLookup, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    databases = database_servers("sqlite")
    url, directory = databases.initialized_database(), tmp_path_factory.mktemp("elsewhere")
    servers = [Server(url, directory, CacheOptions(max_staleness_s=age)) for age in (INF, 0.0, INF)]
    yield Site(*servers)
    for server in servers:
        server.close()
    databases.give_back(url)


@pytest.fixture
def site(shared_site: Site) -> Site:
    """``d`` and ``e``; in ``d`` the partitioned tables ``t`` and ``u``; all of this in the memory of three servers."""
    shared_site.clean()
    shared_site.warm()
    return shared_site


# ---- the scenarios --------------------------------------------------------------------------------------------------


def make(store: MetadataStore, database: str, name: str, **parameters: str) -> None:
    made = table(database, name, KEYS, **parameters)
    store.writes.tables.create_table(made)
    store.writes.partitions.add_partitions(
        TableName(CATALOG, database, name), [partition(made, values) for values in VALUES]
    )


def drop(store: MetadataStore, database: str, name: str) -> None:
    store.writes.tables.drop_table(TableName(CATALOG, database, name), delete_data=True)


def rename(store: MetadataStore, old: tuple[str, str], new: tuple[str, str]) -> None:
    changed = changed_table(store, *old)
    changed.dbName, changed.tableName = new
    store.writes.tables.alter_table(TableName(CATALOG, *old), changed)


def create_drop_create_database(store: MetadataStore, _: Server) -> None:
    for round_ in range(3):
        store.writes.databases.drop_database(DatabaseName(CATALOG, "d"), delete_data=True, cascade=True)
        create_database(store, "d", round=str(round_))
    make(store, "d", "u", version="new")


def drop_and_create_table(store: MetadataStore, _: Server) -> None:
    drop(store, "d", "t")
    store.writes.tables.create_table(table("d", "t", KEYS, version="new"))


def create_and_drop_table(store: MetadataStore, _: Server) -> None:
    make(store, "d", "v")
    drop(store, "d", "v")


def drop_a_database_with_events_of_its_tables(store: MetadataStore, _: Server) -> None:
    make(store, "e", "v")
    store.writes.tables.alter_table(TableName(CATALOG, "e", "v"), changed_table(store, "e", "v", k="1"))
    store.writes.databases.drop_database(DatabaseName(CATALOG, "e"), delete_data=True, cascade=True)


def swap_names(store: MetadataStore, _: Server) -> None:
    store.writes.tables.alter_table(TableName(CATALOG, "d", "t"), changed_table(store, "d", "t", once="t"))
    rename(store, ("d", "t"), ("d", "v"))
    rename(store, ("d", "u"), ("d", "t"))
    rename(store, ("d", "v"), ("d", "u"))


def rename_across_databases_and_make_again(store: MetadataStore, _: Server) -> None:
    rename(store, ("d", "t"), ("e", "t"))
    make(store, "d", "t", version="new")
    rename(store, ("e", "t"), ("e", "u"))


def write_names_in_upper_case(store: MetadataStore, _: Server) -> None:
    changed = changed_table(store, "d", "t", k="upper")
    changed.dbName, changed.tableName = "D", "T"
    store.writes.tables.alter_table(table_name("hive", "D", "T"), changed)
    with pytest.raises(ttypes.AlreadyExistsException):
        store.writes.tables.create_table(table("D", "T", KEYS))
    store.writes.partitions.add_partitions(table_name(CATALOG, "D", "T"), [partition(table("D", "T"), ("a", "9"))])


def odd_partition_values(store: MetadataStore, _: Server) -> None:
    made = table("d", "t")
    store.writes.partitions.add_partitions(TableName(CATALOG, "d", "t"), [partition(made, values) for values in ODD])


def change_odd_partition_values(store: MetadataStore, server: Server) -> None:
    odd_partition_values(store, server)
    server.store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d", "t")))
    for values in ODD[::2]:
        changed = store.reads.partitions.get_partition(TableName(CATALOG, "d", "t"), list(values))
        changed.parameters = {**changed.parameters, "changed": values[0]}
        store.writes.partitions.alter_partitions(TableName(CATALOG, "d", "t"), [changed])
    names = store.reads.partitions.get_partition_names(PartitionQuery(TableName(CATALOG, "d", "t")))
    doomed = [name for name in names if "%" in name][:2]
    assert doomed
    store.writes.partitions.drop_partitions(TableName(CATALOG, "d", "t"), ByNames(tuple(doomed)), delete_data=True)


def move_partition(store: MetadataStore, server: Server) -> None:
    changed = store.reads.partitions.get_partition(TableName(CATALOG, "d", "t"), list(VALUES[0]))
    changed.sd.location = f"file:{server.directory}/moved"
    store.writes.partitions.alter_partitions(TableName(CATALOG, "d", "t"), [changed])
    assert store.reads.partitions.get_partition(TableName(CATALOG, "d", "t"), list(VALUES[0])).sd.location.endswith(
        "/moved"
    )


def change_what_is_called_trivial(store: MetadataStore, _: Server) -> None:
    """Impala keeps its copy if only these differ, but a client sees them."""
    trivial = {"numFiles": "7", "totalSize": "77", "transient_lastDdlTime": "7777"}
    store.writes.tables.alter_table(TableName(CATALOG, "d", "t"), changed_table(store, "d", "t", **trivial))
    changed = store.reads.partitions.get_partition(TableName(CATALOG, "d", "t"), list(VALUES[0]))
    changed.parameters = {**changed.parameters, **trivial}
    store.writes.partitions.alter_partitions(TableName(CATALOG, "d", "t"), [changed])


def add_a_column_everywhere(store: MetadataStore, _: Server) -> None:
    changed = changed_table(store, "d", "t")
    changed.sd = copy.deepcopy(changed.sd)
    changed.sd.cols = [*changed.sd.cols, ttypes.FieldSchema("added", "string", "new")]
    store.writes.tables.alter_table(
        TableName(CATALOG, "d", "t"), changed, writer=Writer(options=EnvironmentOptions(cascades=True))
    )
    assert len(store.reads.partitions.get_partition(TableName(CATALOG, "d", "t"), list(VALUES[0])).sd.cols) == 3


def truncate_table(store: MetadataStore, _: Server) -> None:
    store.writes.tables.truncate_table(TableName(CATALOG, "d", "t"))


def truncate_partition(store: MetadataStore, _: Server) -> None:
    store.writes.tables.truncate_table(TableName(CATALOG, "d", "t"), ["p=a/q=1"])


def insert_and_drop(store: MetadataStore, _: Server) -> None:
    data = ttypes.InsertEventRequestData(filesAdded=["f"])
    store.writes.tables.fire_insert_events(TableName(CATALOG, "d", "t"), [(list(VALUES[0]), data)])
    drop(store, "d", "t")


def insert_events_of_tables_that_are_gone(store: MetadataStore, server: Server) -> None:
    """Written late, by a client that still holds the old table."""
    made = copy.deepcopy(store.reads.tables.get_table(TableName(CATALOG, "d", "t")))
    drop(store, "d", "t")
    nowhere = table("nowhere", "t", KEYS)
    for one in (made, nowhere):
        row = BUILDER.build_insert(one, files=["f"])
        run_write(server.database, lambda transaction, row=row: transaction.append_event(row))


def drop_and_add_partition(store: MetadataStore, _: Server) -> None:
    store.writes.partitions.drop_partitions(TableName(CATALOG, "d", "t"), ByNames(("p=a/q=1",)), delete_data=True)
    store.writes.partitions.add_partitions(
        TableName(CATALOG, "d", "t"), [partition(table("d", "t"), VALUES[0], version="new")]
    )


def add_and_drop_partition(store: MetadataStore, _: Server) -> None:
    store.writes.partitions.add_partitions(TableName(CATALOG, "d", "t"), [partition(table("d", "t"), ("c", "1"))])
    store.writes.partitions.drop_partitions(TableName(CATALOG, "d", "t"), ByNames(("p=c/q=1",)), delete_data=True)


def change_partitions_of_two_tables_in_turn(store: MetadataStore, _: Server) -> None:
    for number in range(6):
        name = ("t", "u")[number % 2]
        changed = store.reads.partitions.get_partition(TableName(CATALOG, "d", name), list(VALUES[number // 2]))
        changed.parameters = {**changed.parameters, "turn": str(number)}
        store.writes.partitions.alter_partitions(TableName(CATALOG, "d", name), [changed])
        if number == 3:
            rename(store, ("d", "u"), ("d", "v"))
            make(store, "d", "u", version="new")


def rename_partition_onto_a_dropped_one(store: MetadataStore, _: Server) -> None:
    store.writes.partitions.drop_partitions(TableName(CATALOG, "d", "t"), ByNames(("p=a/q=2",)), delete_data=True)
    changed = store.reads.partitions.get_partition(TableName(CATALOG, "d", "t"), list(VALUES[0]))
    changed.values = list(VALUES[1])
    store.writes.partitions.rename_partition(TableName(CATALOG, "d", "t"), list(VALUES[0]), changed)


def use_names_in_another_catalog(store: MetadataStore, server: Server) -> None:
    store.writes.catalogs.create_catalog(
        ttypes.Catalog(name="other", description="", locationUri=f"file:{server.directory}/other")
    )
    store.writes.databases.create_database(
        ttypes.Database(name="d", catalogName="other", description="other", parameters={})
    )
    made = table("d", "t", KEYS)
    made.catName = "other"
    store.writes.tables.create_table(made)
    store.writes.tables.drop_table(TableName("other", "d", "t"), delete_data=True)


def switch_flags(store: MetadataStore, _: Server) -> None:
    """Disabled, changed and enabled; a table that no longer exists by then, and one that nobody had read."""
    make(store, "e", "v", **{"impala.disableHmsSync": "true"})
    for value in ("true", "false"):
        for name in ("t", "u"):
            changed = changed_table(store, "d", name, **{"impala.disableHmsSync": value, f"was {value}": "yes"})
            store.writes.tables.alter_table(TableName(CATALOG, "d", name), changed)
    drop(store, "d", "u")
    store.writes.tables.alter_table(
        TableName(CATALOG, "e", "v"), changed_table(store, "e", "v", **{"impala.disableHmsSync": "false"})
    )


def make_transactional(store: MetadataStore, _: Server) -> None:
    store.writes.tables.alter_table(TableName(CATALOG, "d", "t"), changed_table(store, "d", "t", **ACID))
    changed = store.reads.partitions.get_partition(TableName(CATALOG, "d", "t"), list(VALUES[0]))
    changed.parameters = {**changed.parameters, "k": "v"}
    store.writes.partitions.alter_partitions(TableName(CATALOG, "d", "t"), [changed])


SCENARIOS: tuple[Scenario, ...] = (
    create_drop_create_database,
    drop_and_create_table,
    create_and_drop_table,
    drop_a_database_with_events_of_its_tables,
    swap_names,
    rename_across_databases_and_make_again,
    write_names_in_upper_case,
    odd_partition_values,
    change_odd_partition_values,
    move_partition,
    change_what_is_called_trivial,
    add_a_column_everywhere,
    truncate_table,
    truncate_partition,
    insert_and_drop,
    insert_events_of_tables_that_are_gone,
    drop_and_add_partition,
    add_and_drop_partition,
    change_partitions_of_two_tables_in_turn,
    rename_partition_onto_a_dropped_one,
    use_names_in_another_catalog,
    switch_flags,
    make_transactional,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_afterwards_everybody_answers_as_the_database_does(scenario: Scenario, site: Site) -> None:
    resets = [server.cache.shared.resets for server in site.servers]
    scenario(site.writer.store, site.writer)
    site.following.poller.step()
    site.compare()
    for server in site.servers:
        server.poller.step()
        assert server.poller.status is PollerStatus.ACTIVE
        assert server.poller.statistics().failed == 0
        assert server.poller.statistics().failed == 0
        assert server.cache.shared.position == server.objects.reads.current_event_id()
    assert [server.cache.shared.resets for server in site.servers] == resets


# ---- what is loaded, and when ---------------------------------------------------------------------------------------


def test_a_table_made_elsewhere_is_listed_and_not_loaded_until_it_is_read(site: Site) -> None:
    here = site.asking
    make(site.writer.objects, "d", "v")
    requested = here.loaded()
    assert here.store.reads.tables.get_table_names(DatabaseName(CATALOG, "d")) == ["t", "u", "v"]
    assert {one.key for one in requested if isinstance(one.key, TableName)} == set()
    here.store.reads.tables.get_table(TableName(CATALOG, "d", "v"))
    assert {one.key for one in requested if isinstance(one.key, TableName)} == {TableName(CATALOG, "d", "v")}


def test_a_table_whose_creation_was_cleaned_away_is_loaded_like_any_other(site: Site) -> None:
    here = site.asking
    make(site.writer.objects, "d", "v")
    site.writer.objects.writes.tables.alter_table(
        TableName(CATALOG, "d", "u"), changed_table(site.writer.objects, "d", "u", version="new")
    )  # the event at the poller's position must remain
    here.poller.step()
    with here.database.writing() as connection:
        connection.exec_driver_sql(
            'DELETE FROM "NOTIFICATION_LOG" WHERE "EVENT_ID" < (SELECT MAX("EVENT_ID") FROM "NOTIFICATION_LOG")'
        )
        connection.commit()
    resets = here.cache.shared.resets
    here.reads.clear()
    for _ in range(2):
        assert here.store.reads.tables.get_table(TableName(CATALOG, "d", "v")) == here.objects.reads.tables.get_table(
            TableName(CATALOG, "d", "v")
        )
    assert here.reasons() == [Reason.MISS, Reason.HIT]
    here.poller.step()
    assert here.cache.shared.resets == resets


def _seek_end(server: Server) -> None:
    server.poller.seek(server.objects.reads.current_event_id())


COMMANDS: dict[str, Callable[[Server], Any]] = {
    "resume": lambda server: server.poller.resume(),
    "seek the end": _seek_end,
    "seek back": lambda server: server.poller.seek(server.objects.reads.current_event_id() - 1),
    "resync": lambda server: server.poller.resync(),
    "restart": lambda server: (server.poller.stop(), server.poller.start()),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_events_that_passed_while_it_was_paused_are_missing_nowhere(command: str, site: Site) -> None:
    """After a seek past events, Impala has tables that miss them; this cache drops everything that may miss
    something."""
    here = site.following
    here.poller.pause()
    drop_and_create_table(site.writer.objects, site.writer)
    make(site.writer.objects, "e", "v")
    COMMANDS[command](here)
    while here.poller.step().outcome is not StepOutcome.CAUGHT_UP:
        pass
    site.writer.poller.step()  # its memory may have any age: these writes bypassed its cache
    site.compare()
