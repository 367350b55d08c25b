"""Reads with a write-id list (P2, P5): which lists the tag covers, which table the list names, which table id is
requested."""

from __future__ import annotations

import copy
from contextlib import suppress

import pytest
from sqlalchemy import text

from hms_cache.cache.entries import Facet
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reading import HEAL_AFTER_READS, HEAL_INTERVAL_S, ReadModes
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.write_id_tags import REMEMBERED_TRANSACTIONS, TransactionTracker
from hms_cache.call_context import call_context
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.notifications import events as ev
from hms_cache.notifications.events import EventHeader, TransactionWriteId
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import AllPartitions, PartitionQuery
from hms_cache.store.contract.read_version import ReadVersion
from hms_cache.store.schema import TXN_TO_WRITE_ID
from hms_cache.store.transactions import housekeeping
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    MetaException,
    OpenTxnRequest,
    SeedTableWriteIdsRequest,
    SeedTxnIdRequest,
    Table,
    TxnType,
)
from hms_cache.txn.valid_write_ids import ValidWriteIdList
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, changed_table, create_database, encoded, partition, table
from tests.databases import count_statements
from tests.manual_clock import ManualClock

TRUST = CacheOptions(max_staleness_s=float("inf"), modes=ReadModes(trust_write_ids=True))
INF = CacheOptions(max_staleness_s=float("inf"))


def make(server: Server, name: str = "t", **parameters: str) -> int:
    """A transactional table d.`name`; its id."""
    if "d" not in server.objects.reads.databases.get_database_names(CATALOG):
        create_database(server.objects, "d")
    kind = {"transactional": "true", "transactional_properties": "insert_only"}
    server.objects.writes.tables.create_table(table("d", name, version="old", **kind, **parameters))
    return int(server.objects.reads.tables.get_table(TableName(CATALOG, "d", name)).id)


def list_of(server: Server, name: str = "t") -> str:
    """What a session that starts now may read."""
    return server.transactions.valid(f"d.{name}")[0].to_text()


def read(server: Server, valid: str | None, table_id: int | None = None, name: str = "t") -> tuple[Table, Reason]:
    server.reads.clear()
    found = server.store.reads.tables.get_table(
        TableName(CATALOG, "d", name), version=ReadVersion(valid_write_ids=valid, table_id=table_id)
    )
    return found, server.reasons()[-1]


def write(server: Server, version: str, name: str = "t") -> int:
    """A transaction that changes the table and commits; its write id."""
    client = server.transactions
    txn_id = client.open()
    write_id = client.allocate([txn_id], name)[txn_id]
    server.objects.writes.tables.alter_table(
        TableName(CATALOG, "d", name), changed_table(server.objects, "d", name, version=version)
    )
    client.commit(txn_id)
    return write_id


@pytest.fixture
def here(servers: MakeServer) -> Server:
    server = servers()
    make(server)
    write(server, "old")
    return server


def test_a_list_that_the_tag_covers_is_answered_from_memory(here: Server) -> None:
    valid = list_of(here)
    assert read(here, valid)[1] is Reason.MISS
    found, reason = read(here, valid)
    assert (found.parameters["version"], reason) == ("old", Reason.HIT)
    write(here, "new")
    assert read(here, valid)[0].parameters["version"] == "new", "an older list is covered by a newer tag"
    assert read(here, list_of(here))[1] is Reason.HIT


@pytest.mark.parametrize("end", ["1-150000:", "1-150000,x:"])
def test_a_long_list_is_not_read_while_others_wait_for_memory(
    end: str, here: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A range of a few characters stands for a million ids, which take a tenth of a second to enumerate."""
    read(here, list_of(here))
    parse_text = ValidWriteIdList.parse
    under_the_lock = []

    def watched(text: str) -> ValidWriteIdList:
        under_the_lock.append(here.cache.shared.view().locked())
        return parse_text(text)

    monkeypatch.setattr(ValidWriteIdList, "parse", watched)
    call_context.begin(1)
    try:
        with suppress(MetaException):
            read(here, f"d.t:150000:1:{end}")
    finally:
        call_context.end()
    assert under_the_lock
    assert not any(under_the_lock)


def test_the_tag_follows_allocation_commit_and_abort(here: Server) -> None:
    read(here, list_of(here))
    client = here.transactions
    first, second = client.open(), client.open()
    ids = client.allocate([first, second])
    both_open = list_of(here)
    assert read(here, both_open)[1] is Reason.HIT, "an allocation changes no table"
    client.abort(first)
    assert read(here, list_of(here))[1] is Reason.HIT
    client.commit(second)
    committed = list_of(here)
    assert ValidWriteIdList.parse(committed).is_valid(ids[second])
    assert read(here, committed)[1] is Reason.HIT, "nothing but the tag changed"
    entry = here.cache.shared.tables[TableName(CATALOG, "d", "t")]
    assert not entry.tag.is_valid(ids[first])


def test_a_list_that_the_tag_does_not_cover_goes_to_the_database(servers: MakeServer) -> None:
    """P5: the entry was loaded while the transaction was open, and its commit has not been applied."""
    here, elsewhere = servers(TRUST), servers()
    make(elsewhere)
    client = elsewhere.transactions
    txn_id = client.open()
    client.allocate([txn_id])
    read(here, None)
    table_id = int(here.objects.reads.tables.get_table(TableName(CATALOG, "d", "t")).id)
    assert read(here, list_of(elsewhere), table_id)[1] is Reason.HIT
    elsewhere.objects.writes.tables.alter_table(
        TableName(CATALOG, "d", "t"), changed_table(elsewhere.objects, "d", "t", version="new")
    )
    client.commit(txn_id)
    found, reason = read(here, list_of(elsewhere), table_id)
    assert (found.parameters["version"], reason) == ("new", Reason.STALE_WRITE_IDS)
    here.poller.step()
    assert read(here, list_of(elsewhere), table_id)[1] is Reason.MISS
    assert read(here, list_of(elsewhere), table_id)[1] is Reason.HIT


def test_in_trust_mode_a_covered_list_with_the_right_id_needs_no_statement(servers: MakeServer) -> None:
    here = servers(CacheOptions(modes=ReadModes(trust_write_ids=True)))
    table_id = make(here)
    write(here, "old")
    valid = list_of(here)
    read(here, valid, table_id)
    with count_statements(here.database) as seen:
        assert read(here, valid, table_id)[1] is Reason.HIT
    assert seen.count == 0
    # Hive's own getTable sends no id: such a request is checked.
    with count_statements(here.database) as seen:
        assert read(here, valid)[1] is Reason.HIT
    assert seen.count == 1


def test_in_trust_mode_a_single_partition_that_is_not_held_is_loaded(servers: MakeServer) -> None:
    here, elsewhere = servers(CacheOptions(modes=ReadModes(trust_write_ids=True))), servers()
    create_database(elsewhere.objects, "d")
    made = table("d", "t", (("p", "string"),), transactional="true", transactional_properties="insert_only")
    name = TableName(CATALOG, "d", "t")
    elsewhere.objects.writes.tables.create_table(made)
    elsewhere.objects.writes.partitions.add_partitions(name, [partition(made, (value,)) for value in "12"])
    valid, table_id = list_of(here), int(here.objects.reads.tables.get_table(name).id)
    version = ReadVersion(valid_write_ids=valid, table_id=table_id)
    read(here, valid, table_id)
    assert Facet.PARTITIONS not in here.cache.shared.tables[name].facets

    def partition_of(value: str) -> dict[str, str]:
        return dict(here.store.reads.partitions.get_partition(name, [value], version=version).parameters)

    here.reasons()
    for value, expected in ("1", Reason.MISS), ("1", Reason.HIT), ("2", Reason.MISS), ("2", Reason.HIT):
        partition_of(value)
        assert here.reasons() == [expected], value
    # An event names one of a complete set.
    here.store.reads.partitions.get_partition_names(PartitionQuery(name))
    changed = partition(made, ("1",), k="new")
    elsewhere.objects.writes.partitions.alter_partitions(name, [changed])
    here.poller.step()
    here.reasons()
    for expected in (Reason.MISS, Reason.HIT):
        assert partition_of("1")["k"] == "new"
        assert here.reasons() == [expected]


@pytest.mark.parametrize("none", [f"null:7:{2**63 - 1}::", f"d.t:{2**63 - 1}:{2**63 - 1}::"])
def test_in_trust_mode_a_list_that_stands_for_none_is_checked(servers: MakeServer, none: str) -> None:
    """It does not show what its reader has seen: commits of others are visible, as for readers without a list."""
    here, elsewhere = servers(CacheOptions(modes=ReadModes(trust_write_ids=True))), servers()
    name, version = TableName(CATALOG, "d", "t"), ReadVersion(valid_write_ids=none, table_id=make(elsewhere))
    reads = (
        lambda: here.store.reads.tables.get_table(name, version=version).parameters["version"],
        lambda: here.store.reads.partitions.get_partition_names(PartitionQuery(name, AllPartitions(), version=version)),
        lambda: here.store.reads.constraints.get_table_constraints(name, version=version),
    )
    for read_once in reads:
        for _ in range(2):
            read_once()
        with count_statements(here.database) as seen:
            read_once()
        assert seen.count


@pytest.mark.parametrize("who", ["read", "poller"])
def test_trust_shows_nothing_older_than_what_the_database_has_shown(who: str, servers: MakeServer) -> None:
    """P3: an answer of the store may be newer than memory; a check, or the poller, catches up once."""
    here, elsewhere = servers(TRUST), servers()
    table_id = make(elsewhere)
    valid = list_of(elsewhere)
    for _ in range(2):
        read(here, valid, table_id)
    txn_id = elsewhere.transactions.open()
    elsewhere.transactions.allocate([txn_id])
    elsewhere.objects.writes.tables.alter_table(
        TableName(CATALOG, "d", "t"), changed_table(elsewhere.objects, "d", "t", version="new")
    )
    assert read(here, valid, table_id)[0].parameters["version"] == "old"
    here.store.reads.tables.get_table_names_by_filter(
        DatabaseName(CATALOG, "d"), 'hive_filter_field_owner__ = "tester"'
    )
    if who == "poller":
        here.poller.step()
    assert read(here, valid, table_id)[0].parameters["version"] == "new"
    with count_statements(here.database) as seen:
        assert read(here, valid, table_id)[1] is Reason.HIT
    assert seen.count == 0


def test_in_check_mode_every_list_is_checked_too(servers: MakeServer) -> None:
    here = servers()
    table_id = make(here)
    valid = list_of(here)
    read(here, valid, table_id)
    with count_statements(here.database) as seen:
        assert read(here, valid, table_id)[1] is Reason.HIT
    assert seen.count == 1


def test_trust_ends_where_the_poller_does_not_follow(servers: MakeServer) -> None:
    """P7: another history may use the same write ids."""
    here = servers(CacheOptions(modes=ReadModes(trust_write_ids=True)))
    table_id = make(here)
    valid = list_of(here)
    for _ in range(2):
        read(here, valid, table_id)
    for command in (here.poller.pause, lambda: here.poller.resync("test"), lambda: here.poller.fail("test")):
        command()
        assert read(here, valid, table_id)[1] is Reason.BEHIND_EVENTS


def test_another_table_under_the_same_name_is_not_taken_for_it(servers: MakeServer) -> None:
    """HIVE-28551: write ids start again after a drop and a creation; only the table id differs."""
    here, elsewhere = servers(TRUST), servers()
    first = make(elsewhere)
    write(elsewhere, "old")
    valid = list_of(elsewhere)
    for _ in range(2):
        assert read(here, valid, first)[0].id == first
    elsewhere.objects.writes.tables.drop_table(TableName(CATALOG, "d", "t"), delete_data=True)
    second = make(elsewhere)
    write(elsewhere, "another")
    assert list_of(elsewhere) == valid, "the lists cannot be told apart"
    assert read(here, valid, second)[1] is Reason.WRONG_TABLE_ID
    assert read(here, valid, second)[0].id == second


@pytest.mark.parametrize("with_id", [True, False])
def test_a_reader_who_saw_the_table_is_not_told_that_there_is_none(with_id: bool, servers: MakeServer) -> None:
    """Memory has all names of the database from before the table was created."""
    here, elsewhere = servers(TRUST), servers()
    make(elsewhere, "u")
    here.store.reads.tables.get_table_names(DatabaseName(CATALOG, "d"))
    read(here, None, name="u")
    table_id = make(elsewhere)
    write(elsewhere, "new")
    assert "t" not in here.store.reads.tables.get_table_names(DatabaseName(CATALOG, "d"))
    found, reason = read(here, list_of(elsewhere), table_id if with_id else None)
    assert (found.parameters["version"], reason) == ("new", Reason.STALE_WRITE_IDS)


def test_a_list_of_another_table_covers_nothing(here: Server) -> None:
    make(here, "u")
    valid = list_of(here, "u")
    read(here, list_of(here))
    assert read(here, valid)[1] is Reason.STALE_WRITE_IDS


@pytest.mark.parametrize(
    ("valid", "reason"),
    [("d.plain:0:9223372036854775807::", Reason.HIT), ("d.plain:3:9223372036854775807::", Reason.STALE_WRITE_IDS)],
    ids=["of no write id", "of some"],
)
def test_lists_for_tables_that_are_not_transactional(valid: str, reason: Reason, here: Server) -> None:
    here.objects.writes.tables.create_table(table("d", "plain", version="old"))
    read(here, None, name="plain")
    assert read(here, valid, name="plain")[1] is reason


@pytest.mark.parametrize("name", ["t", "plain"])
@pytest.mark.parametrize("text", ["", "null", "nonsense", "d.t:x:y:z", "null:5:5::", "d.t:9223372036854775807:1::"])
def test_what_is_no_list_is_judged_by_the_store(text: str, name: str, here: Server) -> None:
    here.objects.writes.tables.create_table(table("d", "plain", version="old"))
    read(here, None, name=name)

    def ask(store: MetadataStore) -> object:
        return encoded(
            lambda: store.reads.tables.get_table(
                TableName(CATALOG, "d", name), version=ReadVersion(valid_write_ids=text)
            )
        )

    assert ask(here.store) == ask(here.objects)


@pytest.mark.parametrize("mode", ["check", "store", "reject"])
def test_transactional_tables_without_a_list(mode: str, servers: MakeServer) -> None:
    here = servers(CacheOptions(modes=ReadModes(without_write_ids=mode)))
    make(here)
    here.objects.writes.tables.create_table(table("d", "plain", version="old"))
    valid = list_of(here)
    for _ in range(2):
        read(here, valid)
        read(here, None, name="plain")
    assert read(here, valid)[1] is Reason.HIT
    assert read(here, None, name="plain")[1] is Reason.HIT
    if mode == "reject":
        with pytest.raises(MetaException, match="without a ValidWriteIdList"):
            read(here, None)
    else:
        assert read(here, None)[1] is {"check": Reason.HIT, "store": Reason.EXCLUDED}[mode]


def test_a_commit_of_a_transaction_that_was_open_before_the_server_is_resolved_by_the_database(
    servers: MakeServer,
) -> None:
    elsewhere = servers()
    make(elsewhere)
    make(elsewhere, "u")
    client = elsewhere.transactions
    txn_id = client.open()
    write_id = client.allocate([txn_id])[txn_id]
    here = servers()
    read(here, None)
    read(here, None, name="u")
    client.commit(txn_id)
    here.poller.step()
    assert TableName(CATALOG, "d", "t") not in here.cache.shared.tables
    assert TableName(CATALOG, "d", "u") in here.cache.shared.tables, "it wrote nothing there"
    assert read(here, list_of(here))[1] is Reason.MISS
    assert here.cache.shared.tables[TableName(CATALOG, "d", "t")].tag.is_valid(write_id)
    assert read(here, list_of(here))[1] is Reason.HIT


def test_a_commit_that_nobody_can_resolve_voids_all_tags(servers: MakeServer) -> None:
    elsewhere = servers()
    for name in ("t", "u"):
        make(elsewhere, name)
    elsewhere.objects.writes.tables.create_table(table("d", "plain", version="old"))
    txn_id = elsewhere.transactions.open()  # it writes nothing: it has no row in TXN_TO_WRITE_ID
    here = servers()
    for name in ("t", "u", "plain"):
        read(here, None, name=name)
    elsewhere.transactions.commit(txn_id)
    here.poller.step()
    assert [name.table for name in here.cache.shared.tables] == ["plain"]


def test_a_commit_of_which_the_database_knows_a_part_is_of_any_table(
    servers: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Write ids are deleted table by table; and Hive 4 withdraws a claim with a commit, and logs nothing else."""
    elsewhere = servers()
    for name in ("t", "u"):
        make(elsewhere, name)
    client = elsewhere.transactions
    txn_id = client.open()
    for name in ("t", "u"):
        client.allocate([txn_id], name)
    here = servers(CacheOptions(peers="hive4"))
    for name in ("t", "u"):
        assert read(here, None, name=name)[0].parameters["version"] == "old"
        assert read(here, None, name=name)[1] is Reason.HIT
    client.change(text("UPDATE TABLE_PARAMS SET PARAM_VALUE = 'new' WHERE PARAM_KEY = 'version'"))
    client.commit(txn_id)
    client.age(2000)
    monkeypatch.setattr(housekeeping, "_BATCH_SIZE", 1)
    client.store._write(housekeeping.clean, client.store.context)
    assert client.rows(TXN_TO_WRITE_ID, "T2W_TABLE", "T2W_TXNID") == [("u", txn_id)]
    for name in ("t", "u"):
        assert read(here, None, name=name)[0].parameters["version"] == "new", name


def test_a_database_that_cannot_be_asked_leaves_a_commit_unknown(
    servers: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = servers()
    make(elsewhere)
    elsewhere.objects.writes.tables.create_table(table("d", "plain", version="old"))
    txn_id = elsewhere.transactions.open()
    elsewhere.transactions.allocate([txn_id])
    here = servers()
    for name in ("t", "plain"):
        read(here, None, name=name)

    def away(_: object) -> object:
        raise ConnectionError("away")

    monkeypatch.setattr(here.cache.shared, "_resolve_commits", away)
    elsewhere.transactions.commit(txn_id)
    here.poller.step()
    assert [name.table for name in here.cache.shared.tables] == ["plain"]
    assert here.poller.statistics().failed == 0


def test_a_commit_raises_no_tag_of_a_table_that_bears_the_name_by_then(servers: MakeServer) -> None:
    """Transaction 1 wrote under id 1 to `t`, which was renamed; write id 1 of the new `t` is of transaction 2."""
    here, elsewhere = servers(INF), servers()
    make(elsewhere)
    client = elsewhere.transactions
    first, second = client.open(), client.open()
    here.poller.step()
    client.allocate([first])
    renamed = copy.deepcopy(elsewhere.objects.reads.tables.get_table(TableName(CATALOG, "d", "t")))
    renamed.tableName = "was_t"
    elsewhere.objects.writes.tables.alter_table(TableName(CATALOG, "d", "t"), renamed)
    make(elsewhere)
    assert client.allocate([second]) == {second: 1}
    here.poller.step()
    read(here, None)
    read(here, None, name="was_t")
    client.commit(first)
    here.poller.step()
    entry = here.cache.shared.tables.get(TableName(CATALOG, "d", "t"))
    assert entry is None or not entry.tag.is_valid(1), "transaction 2 is open"
    read(here, None)
    assert not here.cache.shared.tables[TableName(CATALOG, "d", "t")].tag.is_valid(1)
    read(here, None, name="was_t")
    assert here.cache.shared.tables[TableName(CATALOG, "d", "was_t")].tag.is_valid(1)
    client.commit(second)
    here.poller.step()
    read(here, None)
    assert here.cache.shared.tables[TableName(CATALOG, "d", "t")].tag.is_valid(1)


def test_a_commit_that_sets_a_parameter_is_seen_although_it_names_no_table(servers: MakeServer) -> None:
    here, elsewhere = servers(), servers()
    make(elsewhere, **{"_meta.offset": "1"})
    client = elsewhere.transactions
    for opened_before in (True, False):
        if opened_before:
            txn_id = client.open()
            here.poller.step()
        else:
            txn_id = client.open()
        assert read(here, None)[0].parameters["_meta.offset"] == ("1" if opened_before else "2")
        value = "2" if opened_before else "3"
        table_id = elsewhere.objects.reads.tables.get_table(TableName(CATALOG, "d", "t")).id
        client.commit(txn_id, keyValue=_key_value(table_id, "_meta.offset", value))
        assert read(here, None)[0].parameters["_meta.offset"] == value


@pytest.mark.parametrize(
    ("opened_with", "committed_with"),
    [
        ({"txn_type": TxnType.READ_ONLY}, {}),
        ({"replPolicy": "d.*"}, {"replPolicy": "d.*", "txn_type": TxnType.DEFAULT}),
    ],
    ids=["read-only", "of replication"],
)
def test_a_commit_of_which_nothing_else_is_told_tells_of_its_parameter(
    servers: MakeServer, opened_with: dict[str, object], committed_with: dict[str, object]
) -> None:
    """Hive logs neither of these commits, but applies their keys and values."""
    here, elsewhere = servers(), servers()
    table_id = make(elsewhere, **{"_meta.offset": "1"})
    assert read(here, None)[0].parameters["_meta.offset"] == "1"
    opened = OpenTxnRequest(num_txns=1, user="u", hostname="h", **opened_with)
    [txn_id] = elsewhere.transactions.store.open_txns(opened).txn_ids
    elsewhere.transactions.commit(txn_id, keyValue=_key_value(table_id, "_meta.offset", "2"), **committed_with)
    assert read(here, None)[0].parameters["_meta.offset"] == "2"


def _key_value(table_id: int, key: str, value: str) -> object:
    from hms_cache.thrift_gen.hive_metastore.ttypes import CommitTxnKeyValue

    return CommitTxnKeyValue(tableId=table_id, key=key, value=value)


# The tracker alone


def _header(event_id: int) -> EventHeader:
    return EventHeader(event_id, 0, "", CATALOG, "d", "t")


def test_the_tracker_remembers_a_bounded_number_of_transactions() -> None:
    tracker = TransactionTracker()
    tracker.apply(ev.TransactionsOpened(_header(1), range(1, REMEMBERED_TRANSACTIONS + 11)), {})
    allocated = ev.WriteIdsAllocated(_header(2), (TransactionWriteId(5, 1), TransactionWriteId(20, 2)))
    tracker.apply(allocated, {})
    commits = [ev.TransactionCommitted(_header(3), txn_id) for txn_id in (5, 20)]
    assert tracker.unresolved_commits(commits) == [5], "the oldest ones were forgotten"
    assert tracker.apply(commits[0], {}).void_all
    assert set(tracker.apply(commits[1], {}).raised) == {TableName(CATALOG, "d", "t")}
    assert not tracker.databases


@pytest.mark.parametrize("has_peers", [False, True])
def test_ids_between_the_first_and_the_last_of_a_call_may_be_of_others(has_peers: bool) -> None:
    """Hive logs the first and the last. A transaction between them that another call has opened may have got write ids
    before the first event that was seen: what it commits is looked up."""
    tracker = TransactionTracker(has_peers=has_peers)
    opened = ev.TransactionsOpened(_header(1), range(6, 9))
    commits = [ev.TransactionCommitted(_header(3), txn_id) for txn_id in (6, 7, 8)]
    requested = [7] if has_peers else []
    assert tracker.unresolved_commits([opened, *commits]) == requested
    tracker.apply(opened, {})
    assert tracker.unresolved_commits(commits) == requested
    of_another = {7: [(TableName(CATALOG, "d", "t"), 4)]}
    changes = [tracker.apply(commit, of_another if has_peers else {}) for commit in commits]
    assert [sorted(change.unknown) for change in changes] == [
        [],
        [TableName(CATALOG, "d", "t")] if has_peers else [],
        [],
    ]
    assert not any(change.void_all for change in changes)


def test_two_that_a_call_has_opened_are_known() -> None:
    tracker = TransactionTracker(has_peers=True)
    tracker.apply(ev.TransactionsOpened(_header(1), range(6, 8)), {})
    assert tracker.unresolved_commits([ev.TransactionCommitted(_header(3), txn_id) for txn_id in (6, 7)]) == []


def test_a_transaction_with_several_write_ids_raises_all_of_them() -> None:
    tracker = TransactionTracker()
    tracker.apply(ev.TransactionsOpened(_header(1), [1]), {})
    for write_id in (4, 6):
        tracker.apply(ev.WriteIdsAllocated(_header(2), (TransactionWriteId(1, write_id),)), {})
    raised = tracker.apply(ev.TransactionCommitted(_header(3), 1), {}).raised[TableName(CATALOG, "d", "t")]
    tag = raised(ValidWriteIdList.parse("d.t:6:4:4,5,6:"))
    assert tag.to_text() == "d.t:6:5:5:"


def test_a_transaction_that_reads_its_own_write_vouches_for_nobody_else(servers: MakeServer) -> None:
    """Its list treats its own write id as valid; the entry that its read loads does not have the write yet."""
    here, elsewhere = servers(TRUST), servers()
    table_id = make(elsewhere)
    client = elsewhere.transactions
    txn_id = client.open()
    write_id = client.allocate([txn_id])[txn_id]
    own = ValidWriteIdList.parse(list_of(elsewhere)).with_own(write_id).to_text()
    assert read(here, own, table_id)[0].parameters["version"] == "old"
    elsewhere.objects.writes.tables.alter_table(
        TableName(CATALOG, "d", "t"), changed_table(elsewhere.objects, "d", "t", version="new")
    )
    client.commit(txn_id)
    assert read(here, list_of(elsewhere), table_id)[0].parameters["version"] == "new"


def _clean_away(server: Server, txn_id: int) -> None:
    """What Hive's cleaner does to an aborted transaction once its files are deleted."""
    with server.database.writing() as connection:
        connection.execute(text(f'DELETE FROM "TXN_TO_WRITE_ID" WHERE "T2W_TXNID" = {txn_id}'))
        connection.execute(text(f'DELETE FROM "TXN_COMPONENTS" WHERE "TC_TXNID" = {txn_id}'))
        connection.execute(text(f'DELETE FROM "TXNS" WHERE "TXN_ID" = {txn_id}'))
        connection.commit()


def test_a_tag_with_a_write_id_that_was_cleaned_away_is_read_again(servers: MakeServer) -> None:
    clock = ManualClock()
    here = servers(clock=clock)
    make(here)
    client = here.transactions
    aborted = client.open()
    client.allocate([aborted], "t")
    client.abort(aborted)
    write(here, "new")
    assert [read(here, list_of(here))[1] for _ in range(2)] == [Reason.MISS, Reason.HIT]
    _clean_away(here, aborted)
    valid = list_of(here)
    assert ":1" not in valid.partition(":")[2], "no list names it any more"
    reasons = [read(here, valid)[1] for _ in range(HEAL_AFTER_READS + 2)]
    assert reasons == [Reason.STALE_WRITE_IDS] * HEAL_AFTER_READS + [Reason.MISS, Reason.HIT]


def test_lists_that_nothing_covers_do_not_load_a_table_again_and_again(servers: MakeServer) -> None:
    clock = ManualClock()
    here = servers(clock=clock)
    make(here)
    here.transactions.allocate([here.transactions.open()], "t")
    read(here, list_of(here))
    everything = ValidWriteIdList("d.t", 1).to_text()
    loads = here.cache.loader.loads
    for _ in range(10 * HEAL_AFTER_READS):
        assert read(here, everything)[1] is Reason.STALE_WRITE_IDS, "write id 1 is open"
    assert here.cache.loader.loads <= loads + 1
    clock.advance(HEAL_INTERVAL_S)
    for _ in range(10 * HEAL_AFTER_READS):
        read(here, everything)
    assert here.cache.loader.loads <= loads + 2


@pytest.mark.parametrize("table_id", [True, False])
def test_seeded_write_ids_are_not_taken_for_those_that_memory_has(servers: MakeServer, table_id: bool) -> None:
    """Seeding logs no event, as in Hive: until an event names the table, the database answers lists with seeded ids."""
    here, elsewhere = servers(), servers()
    known_id = make(here)
    asked_id = known_id if table_id else None
    before = list_of(here)
    read(here, before, asked_id)
    assert read(here, before, asked_id)[1] is Reason.HIT
    elsewhere.transactions.store.seed_write_id(SeedTableWriteIdsRequest(dbName="d", tableName="t", seedWriteId=10))
    seeded = list_of(here)
    assert seeded != before
    assert read(here, seeded, asked_id)[1] is Reason.STALE_WRITE_IDS
    elsewhere.transactions.store.seed_txn_id(SeedTxnIdRequest(seedTxnId=1000))
    assert read(here, seeded, asked_id)[1] is Reason.STALE_WRITE_IDS
    assert write(elsewhere, "new") == 11
    for valid in (list_of(here), seeded, before, None):
        found, _ = read(here, valid, asked_id)
        assert found.parameters["version"] == "new"
    assert read(here, list_of(here), asked_id)[1] is Reason.HIT
