"""The synchronized metastore cache, sentence by sentence: what a reader with a list sees through which server.

`A` and `B` are two servers of one database in `trust` mode: only a covered list decides (P2), and they apply events
only when the test says so.
"""

from __future__ import annotations

import copy

import pytest

from hms_cache.cache.reads.reasons import Reason
from hms_cache.client import Transaction
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddPartitionsRequest,
    GetPartitionNamesPsRequest,
    GetTableRequest,
    MetaException,
    NoSuchObjectException,
    Table,
)
from tests.python_client.conftest import (
    DATABASE,
    KEEP_STATISTICS,
    Metastore,
    StartMetastore,
    partition,
    statements,
    table,
    transactional,
)

Two = tuple[Metastore, Metastore]
HIT = str(Reason.HIT.value)


def open_write(on: Metastore, name: str) -> Transaction:
    """A transaction that has a write id of the table, and stays open."""
    txn = Transaction(on.client, [f"d.{name}"])
    txn.begin()
    txn.write_id(f"d.{name}")
    return txn


def write_ids_7_and_8_open(on: Metastore, name: str) -> dict[int, Transaction]:
    """Write ids 1 to 11 are allocated, all committed except 7 and 8: `[11:7,8]`."""
    taken = {}
    for write_id in range(1, 12):
        txn = open_write(on, name)
        assert txn.write_id(f"d.{name}") == write_id
        if write_id in (7, 8):
            taken[write_id] = txn
        else:
            txn.commit()
    return taken


def changed(original: Table, comment: str) -> Table:
    described = copy.deepcopy(original)
    described.parameters["note"] = comment
    return described


def read(on: Metastore, name: str, begun_on: Metastore | None = None) -> tuple[Table, list[str]]:
    """The table as read by a new transaction, and how its server answered."""
    with Transaction((begun_on or on).client, [f"d.{name}"]) as txn, on.answers() as answers:
        found = txn.get_table(f"d.{name}", through=on.client)
    return found, answers


def warm(on: Metastore, name: str) -> None:
    """Loads the table: a read without a list loads it, and then one with a list is a hit."""
    on.plain_table(name)
    on.plain_table(name)


def test_the_request_of_write_id_12_open_is_answered_by_a_tag_without_it(database_of_two: Two) -> None:
    """Requested [12:7,8,12], cached [11:7,8]: no transaction committed in between, memory answers."""
    a, b = database_of_two
    a.client.call("create_table", transactional("t"))
    write_ids_7_and_8_open(a, "t")
    warm(b, "t")
    open_write(a, "t")
    with Transaction(b.client, ["d.t"]) as txn:
        version = txn.version("d.t")
        assert (version.write_ids.high_watermark, version.write_ids.invalid) in [(12, (7, 8, 12)), (11, (7, 8))]
        with b.answers() as answers:
            assert txn.get_table("d.t").tableName == "t"
    assert answers == [HIT]


def test_a_request_without_write_id_8_is_answered_by_a_tag_that_has_it(database_of_two: Two) -> None:
    """Requested [12:7,12], cached [11:7,8]: 8 was committed since, so the database answers, and memory once it has seen
    the commit."""
    a, b = database_of_two
    a.client.call("create_table", transactional("t"))
    taken = write_ids_7_and_8_open(a, "t")
    warm(b, "t")
    open_write(a, "t")
    taken[8].commit()
    with Transaction(a.client, ["d.t"]) as txn:
        assert 8 not in txn.version("d.t").write_ids.invalid
        assert 7 in txn.version("d.t").write_ids.invalid
        with b.answers() as answers:
            txn.get_table("d.t", through=b.client)
        assert HIT not in answers
        b.sees()
        warm(b, "t")
        with b.answers() as answers:
            txn.get_table("d.t", through=b.client)
        assert answers == [HIT]


def test_the_seven_steps_of_an_alter_over_two_servers(database_of_two: Two) -> None:
    a, b = database_of_two
    a.client.call("create_table", transactional("t"))
    write_ids_7_and_8_open(a, "t")
    warm(b, "t")  # 1: the tag is [11:7,8]
    before, answers = read(b, "t")
    assert (before.parameters.get("note"), answers) == (None, [HIT])

    writer = open_write(a, "t")
    b.sees()
    writer.alter_table("d.t", changed(before, "new"), environment=KEEP_STATISTICS)  # 2
    b.sees()  # 4: the alteration is applied, its commit is not yet
    # If the writer is open to the reader, the database answers; answers for others must not have been cached meanwhile.
    writer.commit()  # 3
    with Transaction(a.client, ["d.t"]) as txn:
        with b.answers() as answers:
            assert txn.get_table("d.t", through=b.client).parameters["note"] == "new"  # 5
        assert HIT not in answers
        b.sees()  # 6
        warm(b, "t")
        with b.answers() as answers:
            assert txn.get_table("d.t", through=b.client).parameters["note"] == "new"  # 7
        assert answers == [HIT]


def test_a_list_query_of_partitions_follows_the_same_rule(database_of_two: Two) -> None:
    a, b = database_of_two
    described = transactional("t", keys=("p",))
    a.client.call("create_table", described)

    def names(txn: Transaction) -> list[str]:
        request = GetPartitionNamesPsRequest(dbName="d", tblName="t", partValues=[""])
        return list(txn.read("get_partition_names_ps_req", "d.t", request, through=b.client).names)

    def add(value: str) -> None:
        with Transaction(a.client, ["d.t"]) as txn:
            request = AddPartitionsRequest(
                dbName="d", tblName="t", parts=[partition(described, value)], ifNotExists=False, needResult=False
            )
            txn.write("add_partitions_req", "d.t", request)

    add("1")
    warm(b, "t")
    with Transaction(a.client, ["d.t"]) as txn:
        assert names(txn) == ["p=1"]
    add("2")
    with Transaction(a.client, ["d.t"]) as txn:
        with b.answers() as answers:
            assert names(txn) == ["p=1", "p=2"]
        assert HIT not in answers


def test_the_next_read_of_a_writer_is_the_databases(database_of_two: Two) -> None:
    """Read your own writes: the own write id is marked committed by the client, no tag has it (P4)."""
    a, b = database_of_two
    a.client.call("create_table", transactional("t"))
    warm(b, "t")
    with Transaction(a.client, ["d.t"]) as txn:
        original = txn.get_table("d.t")
        txn.alter_table("d.t", changed(original, "mine"), environment=KEEP_STATISTICS)
        own = txn.version("d.t")
        assert own.own_write_id is not None and own.write_ids.is_valid(own.own_write_id)
        for server in (a, b):
            with server.answers() as answers:
                assert txn.get_table("d.t", through=server.client).parameters["note"] == "mine"
            assert HIT not in answers


def test_two_writes_of_a_transaction_go_to_two_servers(database_of_two: Two) -> None:
    """Whole transactions (P5): no reader to whom the writer is committed sees the first write without the second."""
    a, b = database_of_two
    a.client.call("create_table", transactional("t"))
    warm(a, "t")
    warm(b, "t")
    with Transaction(a.client, ["d.t"]) as txn:
        first = changed(txn.get_table("d.t"), "first")
        txn.alter_table("d.t", first, environment=KEEP_STATISTICS, through=a.client)
        a.sees()
        b.sees()
        warm(a, "t")
        second = changed(first, "second")
        txn.alter_table("d.t", second, environment=KEEP_STATISTICS, through=b.client)
    for server in (a, b):
        found, answers = read(server, "t")
        assert found.parameters["note"] == "second"
        server.sees()
        warm(server, "t")
        found, answers = read(server, "t")
        assert (found.parameters["note"], answers) == ("second", [HIT])


def test_a_table_under_a_dropped_tables_name_has_another_id(database_of_two: Two) -> None:
    """Dropped and created again elsewhere: B still has the old one in memory, whose list would be covered; the id
    differs."""
    a, b = database_of_two
    a.client.call("create_table", transactional("t"))
    warm(b, "t")
    old_id = b.plain_table("t").id
    a.client.call("drop_table", "d", "t", False)
    again = transactional("t")
    again.parameters["note"] = "again"
    a.client.call("create_table", again)
    with Transaction(a.client, ["d.t"]) as txn:
        assert txn.version("d.t").table_id not in (None, old_id)
        with b.answers() as answers:
            assert txn.get_table("d.t", through=b.client).parameters["note"] == "again"
        assert HIT not in answers


def test_a_renamed_tables_name_is_free_for_another(database_of_two: Two) -> None:
    a, b = database_of_two
    a.client.call("create_table", transactional("t"))
    a.client.call("create_table", transactional("u"))
    warm(b, "t")
    warm(b, "u")
    t_id, u_id = (a.plain_table(name).id for name in ("t", "u"))
    for old, new in (("t", "v"), ("u", "t")):
        with Transaction(a.client, [f"d.{old}"]) as txn:
            renamed = txn.get_table(f"d.{old}")
            renamed.tableName = new
            txn.alter_table(f"d.{old}", renamed, environment=KEEP_STATISTICS)
    with Transaction(a.client, ["d.t", "d.v", "d.u"]) as txn:
        assert (txn.version("d.t").table_id, txn.version("d.v").table_id) == (u_id, t_id)
        assert txn.version("d.u").table_id is None
        assert txn.get_table("d.t", through=b.client).id == u_id
        assert txn.get_table("d.v", through=b.client).id == t_id
        with pytest.raises(NoSuchObjectException):
            a.client.call("get_table_req", GetTableRequest(dbName="d", tblName="u"))


def test_a_load_at_start_has_a_tag_of_its_own(start_metastore: StartMetastore) -> None:
    """Bootstrap: no query brings a list; what was loaded early answers later queries."""
    a = start_metastore()
    a.client.call("create_database", DATABASE)
    a.client.call("create_table", transactional("t"))
    write_ids_7_and_8_open(a, "t")
    b = start_metastore(**{"cache.write_id_reads": "trust"})
    b.sees()
    b.plain_table("t")
    found, answers = read(b, "t")
    assert (found.tableName, answers) == ("t", [HIT])


def test_an_external_table_has_no_write_ids_and_is_as_new_as_asked_for(start_metastore: StartMetastore) -> None:
    """`max_staleness = inf` is the eventual model: it changes when the events are applied, not before."""
    a = start_metastore()
    b = start_metastore(**{"cache.max_staleness_ms": "inf"})
    a.client.call("create_database", DATABASE)
    a.client.call("create_table", table("e", kind="EXTERNAL_TABLE", EXTERNAL="TRUE"))
    b.sees()
    warm(b, "e")
    with Transaction(a.client, ["d.e"]) as txn:
        assert txn.version("d.e").write_ids.high_watermark == 0
        original = txn.get_table("d.e")
    a.client.call("alter_table", "d", "e", changed(original, "new"))
    found, answers = read(b, "e", begun_on=a)
    assert (found.parameters.get("note"), answers) == (None, [HIT])
    b.sees()
    assert read(b, "e", begun_on=a)[0].parameters["note"] == "new"


def test_a_managed_table_without_a_list_is_refused_when_so_set(start_metastore: StartMetastore) -> None:
    server = start_metastore(**{"cache.reads_without_write_ids": "reject"})
    server.client.call("create_database", DATABASE)
    server.client.call("create_table", transactional("t"))
    server.client.call("create_table", table("e", kind="EXTERNAL_TABLE", EXTERNAL="TRUE"))
    with pytest.raises(MetaException, match=r"hive\.d\.t was read without a ValidWriteIdList"):
        server.client.call("get_table_req", GetTableRequest(dbName="d", tblName="t"))
    assert read(server, "t")[0].tableName == "t"
    assert server.plain_table("e").tableName == "e"


def test_a_covered_read_in_trust_mode_costs_no_statement(database_of_two: Two) -> None:
    a, b = database_of_two
    described = transactional("t", keys=("p",))
    described.parameters["COLUMN_STATS_ACCURATE"] = '{"BASIC_STATS":"true"}'
    a.client.call("create_table", described)
    with Transaction(a.client, ["d.t"]) as txn:
        request = AddPartitionsRequest(
            dbName="d", tblName="t", parts=[partition(described, "1")], ifNotExists=False, needResult=False
        )
        txn.write("add_partitions_req", "d.t", request)
    names = GetPartitionNamesPsRequest(dbName="d", tblName="t", partValues=[""])
    warm(b, "t")
    with Transaction(b.client, ["d.t"]) as txn:
        first = txn.get_table("d.t")
        b.sees()
        txn.read("get_partition_names_ps_req", "d.t", names)
        txn.read("get_partition_names_ps_req", "d.t", names)
        with b.answers() as answers, statements() as sent:
            again = txn.get_table("d.t")
            found = txn.read("get_partition_names_ps_req", "d.t", names).names
    assert (again, found) == (first, ["p=1"])
    assert sent == []
    assert answers == [HIT, HIT]
