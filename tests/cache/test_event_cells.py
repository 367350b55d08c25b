"""Each cell of (event type × state of the entry): what an event must invalidate, and what it must leave.

`FACTS` lists, for each event, what may differ in the catalog afterwards. It was written from what Hive's metastore does
to its tables, not from the rules under test.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from hms_cache.cache.entries import Entry, Facet, Key
from hms_cache.cache.event_rules import Action
from hms_cache.cache.loads import MAX_NAMED, Load
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.verification import invariants
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.notifications import events as ev
from hms_cache.notifications.events import EventHeader, TransactionWriteId
from hms_cache.notifications.scope import EVERYTHING, scope_of_tables
from hms_cache.notifications.tjson import write_struct
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.txn.valid_write_ids import ValidWriteIdList
from hms_cache.wire.codec import encode_struct
from tests.cache.world import CATALOG, partition, table

FENCE = 10
"""Position of everything that was loaded before the event."""
EVENT = 11

D = DatabaseName(CATALOG, "d")
E = DatabaseName(CATALOG, "e")
PLAIN = TableName(CATALOG, "d", "plain")
ACID = TableName(CATALOG, "d", "acid")
OTHER = TableName(CATALOG, "e", "other")
COUNTED = TableName(CATALOG, "e", "counted")
TABLES = (PLAIN, ACID, OTHER, COUNTED)
P, Q = ("1",), ("2",)

Thing = tuple[Key, str]
"""A part of the catalog: (subject, part). Parts are facets, single partitions as `partition 1`, and `tag`."""

TABLE_PARTS = ("table", "constraints", "partition 1", "partition 2", "table_statistics")


def header(event_type: str, name: TableName | DatabaseName | None) -> EventHeader:
    if isinstance(name, TableName):
        return EventHeader(EVENT, 0, event_type, *name)
    if isinstance(name, DatabaseName):
        return EventHeader(EVENT, 0, event_type, *name, None)
    return EventHeader(EVENT, 0, event_type, None, None, None)


def whole(*tables: TableName) -> frozenset[Thing]:
    return frozenset((name, part) for name in tables for part in TABLE_PARTS)


def names(*databases: DatabaseName) -> frozenset[Thing]:
    return frozenset((name, "table_names") for name in databases)


def whole_database(name: DatabaseName) -> frozenset[Thing]:
    parts = frozenset((name, part) for part in ("database", "table_names", "functions"))
    return parts | whole(*(one for one in TABLES if one.in_database == name))


ALL_CONSTRAINTS: frozenset[Thing] = frozenset((name, "constraints") for name in TABLES)
DATABASE_NAMES: frozenset[Thing] = frozenset({(CATALOG, "database_names")})
EVERY_THING = whole_database(D) | whole_database(E) | DATABASE_NAMES


def parts(name: TableName, *of: str) -> frozenset[Thing]:
    return frozenset((name, part) for part in of)


@dataclass(frozen=True)
class Fact:
    """An event, and what may differ after it. What is not in `changes` or `may_go` must remain."""

    label: str
    event: ev.Event
    changes: frozenset[Thing]
    may_go: frozenset[Thing] = frozenset()
    tag: str | None = None
    """The tag of ACID afterwards (`None`: as before, while the table stays)."""
    has_peers: bool = False
    """Whether other kinds of metastores write, too."""


def facts_of_table(name: TableName) -> Iterator[Fact]:
    """Events of one table; of a transactional one, the table's write id may change with each partition."""
    own = parts(name, "table") if name is ACID else frozenset()
    one = parts(name, "partition 1")
    renamed = TableName(CATALOG, "e", "renamed")
    yield Fact("create", ev.TableCreated(header("CREATE_TABLE", name)), whole(name) | names(D))
    yield Fact("drop", ev.TableDropped(header("DROP_TABLE", name)), whole(name) | names(D) | ALL_CONSTRAINTS)
    # A changed list of columns affects foreign keys that refer to it.
    yield Fact(
        "alter",
        ev.TableAltered(header("ALTER_TABLE", name), old_name=name, new_name=name),
        whole(name) | names(D) | ALL_CONSTRAINTS,
    )
    # The row names the new name: the old one is in the message only (defect 6 of Hive's cache).
    yield Fact(
        "rename away",
        ev.TableAltered(header("ALTER_TABLE", renamed), old_name=name, new_name=renamed),
        whole(name) | names(D, E) | ALL_CONSTRAINTS,
    )
    yield Fact(
        "rename hither",
        ev.TableAltered(header("ALTER_TABLE", name), old_name=renamed, new_name=name),
        whole(name) | names(D, E) | ALL_CONSTRAINTS,
    )
    yield Fact(
        "rename of unknown names",
        ev.TableAltered(header("ALTER_TABLE", name)),
        EVERY_THING,
    )
    for label, event in (
        ("add partition", ev.PartitionsAdded(header("ADD_PARTITION", name), partitions=(P,))),
        ("alter partition", ev.PartitionAltered(header("ALTER_PARTITION", name), partitions=(P,))),
        ("alter partitions", ev.PartitionsAltered(header("ALTER_PARTITIONS", name), partitions=(P,))),
        ("drop partition", ev.PartitionsDropped(header("DROP_PARTITION", name), partitions=(P,))),
        (
            "partition statistics",
            ev.PartitionColumnStatisticsUpdated(header("UPDATE_PART_COL_STAT_EVENT", name), partitions=(P,)),
        ),
        (
            "no partition statistics",
            ev.PartitionColumnStatisticsDeleted(header("DELETE_PART_COL_STAT_EVENT", name), partitions=(P,)),
        ),
    ):
        yield Fact(label, event, one | own)
    yield Fact(
        "partitions unknown",
        ev.PartitionsDropped(header("DROP_PARTITION", name), partitions=None),
        parts(name, "partition 1", "partition 2") | own,
        may_go=whole(name),
    )
    yield Fact(
        "rename partition",
        ev.PartitionAltered(header("ALTER_PARTITION", name), partitions=(P, Q)),
        parts(name, "partition 1", "partition 2") | own,
    )
    for label, event in (
        ("insert into partition", ev.DataInserted(header("INSERT", name), partitions=(P,))),
        ("compaction of partition", ev.CompactionCommitted(header("COMMIT_COMPACTION_EVENT", name), partitions=(P,))),
        ("write to partition", ev.AcidDataWritten(header("ACID_WRITE_EVENT", name), partition_values=P)),
    ):
        # Row counts and the marker of accurate statistics are stored in parameters of both.
        yield Fact(label, event, one | parts(name, "table", "table_statistics"))
    for label, event in (
        ("insert", ev.DataInserted(header("INSERT", name))),
        ("compaction", ev.CompactionCommitted(header("COMMIT_COMPACTION_EVENT", name))),
        ("write", ev.AcidDataWritten(header("ACID_WRITE_EVENT", name))),
    ):
        yield Fact(label, event, parts(name, "table", "table_statistics"), may_go=whole(name))
    yield Fact("reload", ev.TableReloaded(header("RELOAD", name)), whole(name), may_go=names(D))
    yield Fact(
        "reload of partition",
        ev.TableReloaded(header("RELOAD", name), partitions=(P,)),
        one,
        may_go=whole(name) | names(D),
    )
    # Foreign keys of any table may refer to the key.
    for key in (ev.PrimaryKeyAdded, ev.UniqueConstraintAdded):
        yield Fact(key.__name__, key(header("ADD_CONSTRAINT", name)), ALL_CONSTRAINTS, may_go=parts(name, "table"))
    for kind in (
        ev.NotNullConstraintAdded,
        ev.DefaultConstraintAdded,
        ev.CheckConstraintAdded,
    ):
        yield Fact(
            kind.__name__, kind(header("ADD_CONSTRAINT", name)), parts(name, "constraints"), may_go=parts(name, "table")
        )
    # The row names the parent; the child is in the message only.
    yield Fact(
        "foreign key",
        ev.ForeignKeyAdded(header("ADD_FOREIGNKEY", OTHER), tables=frozenset({OTHER, name})),
        parts(name, "constraints") | parts(OTHER, "constraints"),
        may_go=parts(name, "table") | parts(OTHER, "table"),
    )
    yield Fact("foreign key of unknown tables", ev.ForeignKeyAdded(header("ADD_FOREIGNKEY", OTHER)), EVERY_THING)
    yield Fact(
        "drop constraint",
        ev.ConstraintDropped(header("DROP_CONSTRAINT", name), "fk"),
        ALL_CONSTRAINTS,
        may_go=parts(name, "table"),
    )
    for statistics in (ev.TableColumnStatisticsUpdated, ev.TableColumnStatisticsDeleted):
        yield Fact(statistics.__name__, statistics(header("COL_STAT", name)), parts(name, "table", "table_statistics"))
    yield Fact(
        "unknown type",
        ev.UndecodedEvent(header("NEW_KIND", name), "unknown", scope_of_tables([name], foreign_keys=True)),
        whole(name) | names(D) | ALL_CONSTRAINTS,
    )
    yield Fact("batch", ev.BatchWritten(header("BATCH_ACID_WRITE_EVENT", name)), whole(name) | ALL_CONSTRAINTS)


def facts_of_transactions() -> Iterator[Fact]:
    write_ids = (TransactionWriteId(7, 4),)
    yield Fact("open", ev.TransactionsOpened(header("OPEN_TXN", None), range(7, 9)), frozenset())
    yield Fact(
        "open of unknown", ev.TransactionsOpened(header("OPEN_TXN", None), None), frozenset(), may_go=EVERY_THING
    )
    allocated = ev.WriteIdsAllocated(header("ALLOC_WRITE_ID_EVENT", ACID), write_ids)
    yield Fact("allocate", allocated, frozenset(), may_go=parts(ACID, "table"), tag="4:2,4")
    yield Fact("abort", ev.TransactionAborted(header("ABORT_TXN", None), 5), frozenset())
    # Transaction 5 wrote 2 of ACID (according to the database); a commit may set a parameter of COUNTED; it names
    # neither.
    yield Fact(
        "commit resolved by the database",
        ev.TransactionCommitted(header("COMMIT_TXN", None), 5),
        parts(ACID, "table") | parts(COUNTED, "table"),
    )
    yield Fact(
        "commit of unknown",
        ev.TransactionCommitted(header("COMMIT_TXN", None), 99),
        parts(ACID, "table") | parts(COUNTED, "table"),
    )


OF_TWO_TABLES = "constraints of two tables"


def facts_beside_hive4() -> Iterator[Fact]:
    """Its merge of column statistics withdraws a claim within the transaction, and logs nothing else. For constraints
    that one request adds to several tables, it writes one event, whose row names the first."""
    for kind, event_type in (
        (ev.NotNullConstraintAdded, "ADD_NOTNULLCONSTRAINT"),
        (ev.DefaultConstraintAdded, "ADD_DEFAULTCONSTRAINT"),
        (ev.CheckConstraintAdded, "ADD_CHECKCONSTRAINT"),
    ):
        yield Fact(
            OF_TWO_TABLES,
            kind(header(event_type, OTHER), tables=frozenset({OTHER, PLAIN})),
            parts(PLAIN, "constraints") | parts(OTHER, "constraints"),
            may_go=parts(PLAIN, "table") | parts(OTHER, "table"),
            has_peers=True,
        )
        yield Fact(
            "constraints of unknown tables",
            kind(header(event_type, OTHER), tables=None),
            ALL_CONSTRAINTS,
            may_go=parts(OTHER, "table"),
            has_peers=True,
        )

    def claims(*tables: TableName) -> frozenset[Thing]:
        found = [parts(name, "table", "table_statistics", "partition 1", "partition 2") for name in tables]
        return frozenset().union(*found)

    yield Fact(
        "commit resolved by the database",
        ev.TransactionCommitted(header("COMMIT_TXN", None), 5),
        claims(ACID) | parts(COUNTED, "table"),
        # The database may have deleted a part of an ended transaction.
        may_go=claims(*TABLES),
        has_peers=True,
    )
    yield Fact(
        "commit of unknown",
        ev.TransactionCommitted(header("COMMIT_TXN", None), 99),
        claims(ACID) | parts(COUNTED, "table"),
        may_go=claims(*TABLES),
        has_peers=True,
    )
    allocated = ev.WriteIdsAllocated(header("ALLOC_WRITE_ID_EVENT", ACID), (TransactionWriteId(7, 4),))
    yield Fact("allocate", allocated, frozenset(), may_go=parts(ACID, "table"), tag="4:2,4", has_peers=True)


def facts_of_others() -> Iterator[Fact]:
    yield Fact("create database", ev.DatabaseCreated(header("CREATE_DATABASE", D)), whole_database(D) | DATABASE_NAMES)
    # Its properties decide whether its tables may be cached.
    yield Fact("alter database", ev.DatabaseAltered(header("ALTER_DATABASE", D)), whole_database(D) | DATABASE_NAMES)
    yield Fact(
        "drop database",
        ev.DatabaseDropped(header("DROP_DATABASE", D)),
        whole_database(D) | DATABASE_NAMES | ALL_CONSTRAINTS,
    )
    for kind in (ev.CatalogCreated, ev.CatalogAltered):
        yield Fact(kind.__name__, kind(header("CATALOG", None), catalog_name=CATALOG), frozenset())
        yield Fact(f"{kind.__name__} unnamed", kind(header("CATALOG", None)), frozenset(), may_go=EVERY_THING)
    yield Fact("drop catalog", ev.CatalogDropped(header("DROP_CATALOG", None), catalog_name=CATALOG), EVERY_THING)
    for function in (ev.FunctionCreated, ev.FunctionDropped):
        yield Fact(function.__name__, function(header("FUNCTION", D), function_name="f"), frozenset({(D, "functions")}))
        # Without its name, only the database in the row is known.
        yield Fact(
            f"{function.__name__} unnamed",
            function(header("FUNCTION", D)),
            frozenset({(D, "functions")}),
            may_go=EVERY_THING - whole_database(E) | ALL_CONSTRAINTS,
        )
    yield Fact("grants", ev.GrantsChanged(header("HMS_CACHE_GRANTS", None)), frozenset())
    yield Fact("schema registry", ev.OtherObjectChanged(header("CREATE_ISCHEMA", None)), frozenset())
    yield Fact("unknown", ev.UndecodedEvent(header("NEW_KIND", None), "unknown", EVERYTHING), EVERY_THING)


FACTS = tuple(
    (f"{label}: {fact.label}", fact)
    for label, group in (
        ("plain", facts_of_table(PLAIN)),
        ("acid", facts_of_table(ACID)),
        ("transactions", facts_of_transactions()),
        ("beside Hive 4", facts_beside_hive4()),
        ("others", facts_of_others()),
    )
    for fact in group
)
CASES = [pytest.param(fact, id=label) for label, fact in FACTS]


def test_every_event_type_has_its_facts() -> None:
    kinds = {one for one in vars(ev).values() if isinstance(one, type) and issubclass(one, ev.Event)}
    logged = {one for one in kinds if not any(other is not one and issubclass(other, one) for other in kinds)}
    missing = logged - {type(fact.event) for _, fact in FACTS}
    assert not missing


# States of the cache


def struct_of(name: TableName) -> ttypes.Table:
    parameters = {ACID: {"transactional": "true"}, COUNTED: {"_meta.offset": "1"}}.get(name, {})
    found = table(name.database, name.table, (("p", "string"),), **parameters)
    found.id = 100 + TABLES.index(name)
    return found


def value_of(key: Key, facet: Facet) -> Any:
    if facet is Facet.TABLE:
        assert isinstance(key, TableName)
        return struct_of(key)
    if facet is Facet.PARTITIONS:
        assert isinstance(key, TableName)
        return PartitionSet((("p", "string"),), [partition(struct_of(key), one) for one in (P, Q)], complete=True)
    if facet is Facet.DATABASE_NAMES:
        return ["d", "e"]
    if facet is Facet.DATABASE:
        assert isinstance(key, DatabaseName)
        return ttypes.Database(name=key.database, catalogName=CATALOG)
    if facet is Facet.TABLE_NAMES:
        return {
            name.table: ttypes.TableMeta(dbName=name.database, tableName=name.table, tableType="MANAGED_TABLE")
            for name in TABLES
            if name.in_database == key
        }
    return {Facet.FUNCTIONS: [], Facet.CONSTRAINTS: ttypes.SQLAllTableConstraints()}.get(facet, {})


LOADS: tuple[tuple[Key, tuple[Facet, ...]], ...] = (
    (CATALOG, (Facet.DATABASE_NAMES,)),
    *((name, (Facet.DATABASE, Facet.TABLE_NAMES, Facet.FUNCTIONS)) for name in (D, E)),
    *((name, (Facet.TABLE, Facet.CONSTRAINTS, Facet.PARTITIONS, Facet.TABLE_STATISTICS)) for name in TABLES),
)
TAG = ValidWriteIdList.parse("d.acid:3:2:2:")


def prepare(name: TableName) -> Any:
    def with_entry(entry: Entry) -> None:
        entry.table_id = struct_of(name).id
        entry.is_transactional = name == ACID
        entry.tag = TAG if name == ACID else None
        entry.encoded_table = encode_struct(value_of(name, Facet.TABLE))
        entry.has_commit_parameters = name == COUNTED

    return with_entry


def new_cache(*, has_peers: bool = False) -> SharedCache:
    """At the fence, and empty. The open transaction 5 has written to ACID under write id 2."""
    cache = SharedCache(10**9, lambda wanted: {5: [(ACID, 2)]} if 5 in wanted else {}, has_peers=has_peers)
    cache.reset("start", FENCE)
    return cache


def begin(cache: SharedCache) -> dict[Key, Load]:
    return {key: cache.begin_load(key, facets) for key, facets in LOADS}


def finish(cache: SharedCache, loads: dict[Key, Load], fence: int) -> set[tuple[Key, Facet]]:
    """Installs everything. Returns what was kept."""
    kept = set()
    for key, facets in LOADS:
        for facet in facets:
            ready = prepare(key) if isinstance(key, TableName) and facet is Facet.TABLE else None
            if cache.install(loads[key], fence, facet, value_of(key, facet), 100, ready):
                kept.add((key, facet))
        cache.end_load(loads[key])
    return kept


def held(cache: SharedCache) -> set[Thing]:
    """What would be answered from memory."""
    found: set[Thing] = set()
    for key, entry in itertools.chain(cache.catalogs.items(), cache.databases.items(), cache.tables.items()):
        for facet, value in entry.facets.items():
            if isinstance(value, PartitionSet):
                assert value.complete
                found.update((key, f"partition {one[0]}") for one in (P, Q) if one not in value.missing)
            else:
                found.add((key, facet.value))
    return found


ALL = {
    (key, part) for key, facets in LOADS for facet in facets if facet is not Facet.PARTITIONS for part in [facet.value]
}
ALL |= {(name, f"partition {one[0]}") for name in TABLES for one in (P, Q)}


class State(Enum):
    ABSENT = "absent"
    LOADED = "loaded"
    PARTIALLY_MISSING = "partially missing"
    LOADING_BEFORE = "loading, snapshot before the event"
    LOADING_AFTER = "loading, snapshot shows the event"
    RELOADING = "loaded, and loading, snapshot before the event"
    RESET = "loading, and the cache was reset"


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("fact", CASES)
def test_what_an_event_takes_out_and_leaves(fact: Fact, state: State) -> None:
    cache = new_cache(has_peers=fact.has_peers)
    before = ALL
    if state in (State.LOADED, State.PARTIALLY_MISSING, State.RELOADING):
        assert len(finish(cache, begin(cache), FENCE)) == sum(len(facets) for _, facets in LOADS)
        assert held(cache) == ALL
    if state is State.PARTIALLY_MISSING:
        for name in TABLES:
            cache.tables[name].facets[Facet.PARTITIONS].mark_missing([Q])
        before = {thing for thing in ALL if thing[1] != "partition 2"}
    loads = begin(cache) if state not in (State.ABSENT, State.LOADED, State.PARTIALLY_MISSING) else {}

    cache.apply([fact.event], EVENT)

    assert cache.position == EVENT
    invariants.check(cache)
    match state:
        case State.ABSENT:
            assert held(cache) == set()
            return
        case State.LOADING_BEFORE | State.RELOADING:
            finish(cache, loads, FENCE)
        case State.LOADING_AFTER:
            kept = finish(cache, loads, EVENT)
            assert len(kept) == sum(len(facets) for _, facets in LOADS), "the snapshot showed the event"
            assert held(cache) == ALL
            invariants.check(cache)
            return
        case State.RESET:
            cache.reset("another history", EVENT)
            assert finish(cache, loads, EVENT) == set()
            assert held(cache) == set()
            return
    now = held(cache)
    assert not now & fact.changes, "what the event may have changed must not be served"
    gone = before - now - fact.changes - fact.may_go
    assert not gone, "what the event did not change must stay"
    if state in (State.LOADED, State.PARTIALLY_MISSING) and fact.tag is not None:
        high_watermark, _, invalid = fact.tag.partition(":")
        tag = cache.tables[ACID].tag
        assert (str(tag.high_watermark), ",".join(map(str, tag.invalid))) == (high_watermark, invalid)
    if (ACID, "table") in now and fact.tag is None:
        assert cache.tables[ACID].tag == TAG
    invariants.check(cache)


@pytest.mark.parametrize("opens_around", [False, True], ids=["", "others opened around it"])
@pytest.mark.parametrize("has_peers", [False, True])
def test_a_commit_of_a_transaction_whose_writes_were_seen(has_peers: bool, opens_around: bool) -> None:
    """Without peers, all its changes to the table were logged, and cached data remains.

    `opens_around`: Hive opens two transactions at once, whose ids surround this one, and logs the first and the last.
    """
    cache = new_cache(has_peers=has_peers)
    finish(cache, begin(cache), FENCE)
    opened = ev.TransactionsOpened(header("OPEN_TXN", None), range(7, 8))
    write_ids = header("ALLOC_WRITE_ID_EVENT", ACID)._replace(event_id=EVENT + 1)
    committed = header("COMMIT_TXN", None)._replace(event_id=EVENT + 2)
    cache.apply([opened, ev.WriteIdsAllocated(write_ids, (TransactionWriteId(7, 4),))], EVENT + 1)
    assert held(cache) == ALL
    loads = begin(cache)
    if opens_around:
        around = header("OPEN_TXN", None)._replace(event_id=EVENT + 2)
        committed = committed._replace(event_id=EVENT + 3)
        cache.apply([ev.TransactionsOpened(around, range(6, 9))], EVENT + 2)
    cache.apply([ev.TransactionCommitted(committed, 7)], committed.event_id)
    claims = parts(ACID, "table", "table_statistics", "partition 1", "partition 2") if has_peers else frozenset()
    assert held(cache) == ALL - claims - parts(COUNTED, "table")
    if not has_peers:
        tag = cache.tables[ACID].tag
        assert tag is not None and tag.is_valid(4)
    finish(cache, loads, EVENT + 1)
    assert not held(cache) & claims, "a load that did not see the commit"
    invariants.check(cache)


@pytest.mark.parametrize("fact", CASES)
def test_an_event_that_comes_again_changes_nothing(fact: Fact) -> None:
    cache = new_cache(has_peers=fact.has_peers)
    finish(cache, begin(cache), FENCE)
    cache.apply([fact.event], EVENT)
    first = held(cache)
    loads = begin(cache)
    cache.apply([fact.event], EVENT)
    assert held(cache) == first
    assert finish(cache, loads, EVENT)
    invariants.check(cache)


def test_an_event_that_cannot_be_applied_leaves_those_before_it_taken() -> None:
    class Broken(ev.TableCreated):
        @property
        def scope(self) -> Any:
            raise ValueError("no scope")

    cache = new_cache()
    finish(cache, begin(cache), FENCE)
    first = ev.DatabaseAltered(header("ALTER_DATABASE", D))
    broken = Broken(header("CREATE_TABLE", PLAIN)._replace(event_id=EVENT + 1))
    with pytest.raises(ValueError, match="no scope"):
        cache.apply([first, broken], EVENT + 1)
    assert cache.position == EVENT
    cache.apply([first, ev.UndecodedEvent(broken.header, "could not be applied", EVERYTHING)], EVENT + 1)
    assert (cache.position, held(cache)) == (EVENT + 1, set())
    invariants.check(cache)


@pytest.mark.parametrize(
    ("before", "after", "keeps"),
    [
        ({"k": "1"}, {"k": "2"}, True),
        ({}, {"hms_cache.sync": "false"}, False),
        ({"impala.disableHmsSync": "true"}, {}, False),
        ({"hms_cache.sync": "true"}, {"hms_cache.sync": "true", "impala.disableHmsSync": "true"}, True),
        (None, {}, False),
        ({}, None, False),
    ],
)
def test_an_altered_database_keeps_what_is_in_it_if_its_images_show_that(
    before: dict[str, str] | None, after: dict[str, str] | None, keeps: bool
) -> None:
    def image(parameters: dict[str, str] | None) -> str | None:
        return None if parameters is None else write_struct(ttypes.Database(name="d", parameters=parameters))

    cache = new_cache()
    finish(cache, begin(cache), FENCE)
    everything = held(cache)
    cache.apply([ev.DatabaseAltered(header("ALTER_DATABASE", D), image(before), image(after))], EVENT)
    gone = everything - held(cache)
    assert (D, "database") in gone
    assert (len(gone) == 1) is keeps
    invariants.check(cache)


def test_what_a_long_load_remembers_is_bounded() -> None:
    cache = new_cache()
    loads = begin(cache)
    for number in range(3 * MAX_NAMED):
        commit = ev.TransactionCommitted(header("COMMIT_TXN", None)._replace(event_id=EVENT + number), number)
        cache.apply([commit], EVENT + number)
    for load in cache.loads:
        assert len(load.effects) <= len(Facet) * len(Action)
    load = Load(PLAIN, frozenset({Facet.PARTITIONS}))
    for number in range(3 * MAX_NAMED):
        load.note(number, Facet.PARTITIONS, Action.DROP_NAMED, ((str(number),),))
        assert sum(map(len, load.named.values())) <= MAX_NAMED
    assert load.effects[Facet.PARTITIONS, Action.DROP] > MAX_NAMED
    assert loads
