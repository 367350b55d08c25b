"""The statistics from which a reader may answer a query: only those of committed writers in its snapshot."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, text

from hms_cache.client import Transaction
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddPartitionsRequest,
    AggrStats,
    AlterPartitionsRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    LongColumnStatsData,
    Partition,
    PartitionsStatsRequest,
    RenamePartitionRequest,
    SetPartitionsStatsRequest,
    Table,
    TableStatsRequest,
)
from hms_cache.txn import ValidWriteIdList
from tests.python_client.conftest import DATABASE, KEEP_STATISTICS, Metastore, StartMetastore, partition, transactional

ACCURATE = '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}'


@pytest.fixture(params=["check", "trust"])
def server(request: pytest.FixtureRequest, start_metastore: StartMetastore) -> Metastore:
    started = start_metastore(**{"cache.write_id_reads": request.param})
    started.client.call("create_database", DATABASE)
    return started


def statistics(name: str, partition_name: str | None = None) -> ColumnStatistics:
    values = LongColumnStatsData(lowValue=1, highValue=9, numNulls=0, numDVs=3)
    return ColumnStatistics(
        statsDesc=ColumnStatisticsDesc(
            isTblLevel=partition_name is None, dbName="d", tableName=name, partName=partition_name, catName="hive"
        ),
        statsObj=[ColumnStatisticsObj(colName="a", colType="int", statsData=ColumnStatisticsData(longStats=values))],
        engine="hive",
    )


def write_statistics(txn: Transaction, name: str, rows: int) -> None:
    """What Hive sends at the end of an INSERT: the table with its new counts, then the columns'."""
    described = txn.get_table(f"d.{name}")
    described.parameters = {**described.parameters, "numRows": str(rows), "COLUMN_STATS_ACCURATE": ACCURATE}
    txn.alter_table(f"d.{name}", described, environment=KEEP_STATISTICS)
    request = SetPartitionsStatsRequest(colStats=[statistics(name)], needMerge=False, engine="hive")
    txn.write("set_aggr_stats_for", f"d.{name}", request)


def is_answered(txn: Transaction, name: str) -> list[bool]:
    """By `get_table_req` and `get_table_statistics_req`; the claims in the first must agree with the second."""
    found = txn.get_table(f"d.{name}")
    assert ("COLUMN_STATS_ACCURATE" in found.parameters) is bool(found.isStatsCompliant)
    request = TableStatsRequest(dbName="d", tblName=name, colNames=["a"], engine="hive")
    columns = txn.read("get_table_statistics_req", f"d.{name}", request)
    return [bool(found.isStatsCompliant), len(columns.tableStats) == 1]


def stored_write_id(server: Metastore, table: str = "TBLS") -> int:
    engine = create_engine(server.service._settings.database.url)
    try:
        with engine.connect() as connection:
            return int(connection.execute(text(f"SELECT MAX(WRITE_ID) FROM {table}")).scalar_one())
    finally:
        engine.dispose()


def test_statistics_of_a_committed_writer_are_valid_to_later_readers_only(server: Metastore) -> None:
    server.client.call("create_table", transactional("t"))
    early = Transaction(server.client, ["d.t"])
    early.begin()
    with Transaction(server.client, ["d.t"]) as writer:
        write_statistics(writer, "t", 3)
        assert is_answered(writer, "t") == [True, True]
        assert stored_write_id(server) == writer.write_id("d.t")
    for _ in range(2):  # from the database, then from memory
        with Transaction(server.client, ["d.t"]) as late:
            assert is_answered(late, "t") == [True, True]
        assert is_answered(early, "t") == [False, False]
    early.commit()


def test_statistics_of_an_aborted_writer_are_valid_to_nobody(server: Metastore) -> None:
    """Also for a list that omits the aborted write id, as Hive's writers send it."""
    server.client.call("create_table", transactional("t"))
    writer = Transaction(server.client, ["d.t"])
    writer.begin()
    write_statistics(writer, "t", 3)
    writer.abort()
    for _ in range(2):
        with Transaction(server.client, ["d.t"]) as reader:
            assert is_answered(reader, "t") == [False, False]
            forgetful(reader, "d.t", 1)
            assert is_answered(reader, "t") == [False, False]


def forgetful(txn: Transaction, table: str, high_watermark: int) -> None:
    """Replaces its list by one without aborted ids."""
    version = txn.version(table)
    wrong = ValidWriteIdList.of(table, high_watermark)
    txn._versions[table] = type(version)(wrong, version.table_id, version.own_write_id)


def test_a_writer_whose_list_forgets_the_aborted_one_does_not_revive_its_statistics(server: Metastore) -> None:
    """The move at the end of an INSERT keeps the stored parameters, under its own write id."""
    server.client.call("create_table", transactional("t"))
    lost = Transaction(server.client, ["d.t"])
    lost.begin()
    write_statistics(lost, "t", 3)
    as_written = server.plain_table("t")
    lost.abort()
    with Transaction(server.client, ["d.t"]) as writer:
        own = writer.write_id("d.t")
        forgetful(writer, "d.t", own)
        assert "COLUMN_STATS_ACCURATE" in as_written.parameters
        writer.alter_table("d.t", as_written, environment=KEEP_STATISTICS)
    assert stored_write_id(server) == own
    with Transaction(server.client, ["d.t"]) as reader:
        assert is_answered(reader, "t") == [False, False]


@pytest.mark.parametrize("merges", [False, True], ids=["replaced", "merged"])
def test_new_statistics_of_columns_do_not_vouch_for_what_an_aborted_writer_left(
    merges: bool, server: Metastore
) -> None:
    """ANALYZE writes columns and no counts; those left by an aborted INSERT would be valid under its write id."""
    server.client.call("create_table", transactional("t"))
    lost = Transaction(server.client, ["d.t"])
    lost.begin()
    write_statistics(lost, "t", 3)
    lost.abort()
    with Transaction(server.client, ["d.t"]) as writer:
        forgetful(writer, "d.t", writer.write_id("d.t"))
        request = SetPartitionsStatsRequest(colStats=[statistics("t")], needMerge=merges, engine="hive")
        writer.write("set_aggr_stats_for", "d.t", request)
        own = writer.write_id("d.t")
    assert stored_write_id(server) == own
    assert "COLUMN_STATS_ACCURATE" not in server.plain_table("t").parameters
    with Transaction(server.client, ["d.t"]) as reader:
        assert is_answered(reader, "t") == [False, False]


def insert_row(txn: Transaction, server: Metastore, name: str, *, moves_with: str | None = None) -> None:
    """An INSERT of one row as Hive 4.0.1 sends it: its reads between its writes have no list.

    `moves_with`: the list of its first write, which omits an aborted write id.
    """
    found = server.plain_table(name)
    right = txn.version(f"d.{name}")
    if moves_with is not None:
        txn._versions[f"d.{name}"] = type(right)(ValidWriteIdList.parse(moves_with), right.table_id, right.own_write_id)
    txn.alter_table(f"d.{name}", found, environment=KEEP_STATISTICS)
    txn._versions[f"d.{name}"] = right
    found = server.plain_table(name)
    if "COLUMN_STATS_ACCURATE" in found.parameters:
        # Accurate counts are added to; others remain what they are: wrong, and not claimed as accurate.
        found.parameters["numRows"] = str(int(found.parameters.get("numRows", "0")) + 1)
    txn.alter_table(f"d.{name}", found, environment=KEEP_STATISTICS)
    request = SetPartitionsStatsRequest(colStats=[statistics(name)], needMerge=True, engine="hive")
    txn.write("set_aggr_stats_for", f"d.{name}", request)


def test_count_is_never_answered_from_statistics_that_hold_an_aborted_insert(server: Metastore) -> None:
    """Two rows are committed, one between them is aborted. Hive 4.0.1 answers `count(*)` with 3."""
    described = transactional("u")
    described.parameters.update(numRows="0", COLUMN_STATS_ACCURATE=ACCURATE)
    server.client.call("create_table", described)
    with Transaction(server.client, ["d.u"]) as first:
        first.write_id("d.u")
        insert_row(first, server, "u")
    with Transaction(server.client, ["d.u"]) as reader:
        found = reader.get_table("d.u")
        assert (found.isStatsCompliant, found.parameters["numRows"]) == (True, "1")
    lost = Transaction(server.client, ["d.u"])
    lost.begin()
    lost.write_id("d.u")
    insert_row(lost, server, "u")
    lost.abort()
    with Transaction(server.client, ["d.u"]) as last:
        own = last.write_id("d.u")
        insert_row(last, server, "u", moves_with=f"d.u:{own}:9223372036854775807::")
    for _ in range(2):
        with Transaction(server.client, ["d.u"]) as reader:
            found = reader.get_table("d.u")
            assert not found.isStatsCompliant or found.parameters["numRows"] == "2"
            assert ("COLUMN_STATS_ACCURATE" in found.parameters) is bool(found.isStatsCompliant)
            assert is_answered(reader, "u")[1] is bool(found.isStatsCompliant)


def with_partition(server: Metastore) -> Table:
    described = transactional("t", keys=("p",))
    server.client.call("create_table", described)
    with Transaction(server.client, ["d.t"]) as txn:
        request = AddPartitionsRequest(
            dbName="d", tblName="t", parts=[partition(described, "1")], ifNotExists=False, needResult=False
        )
        txn.write("add_partitions_req", "d.t", request)
    return described


def write_partition_statistics(txn: Transaction) -> None:
    found = txn.get_partitions_by_names("d.t", ["p=1"])
    found[0].parameters = {**found[0].parameters, "numRows": "3", "COLUMN_STATS_ACCURATE": ACCURATE}
    alter = AlterPartitionsRequest(
        catName="hive", dbName="d", tableName="t", partitions=found, environmentContext=KEEP_STATISTICS
    )
    txn.write("alter_partitions_req", "d.t", alter)
    request = SetPartitionsStatsRequest(colStats=[statistics("t", "p=1")], needMerge=False, engine="hive")
    txn.write("set_aggr_stats_for", "d.t", request)


def partitions_answered(txn: Transaction) -> list[bool]:
    """By names, as a specification, by columns, and by their aggregate."""
    by_name: list[Partition] = txn.get_partitions_by_names("d.t", ["p=1"])
    assert ("COLUMN_STATS_ACCURATE" in by_name[0].parameters) is bool(by_name[0].isStatsCompliant)
    by_columns = txn.read(
        "get_partitions_statistics_req",
        "d.t",
        PartitionsStatsRequest(dbName="d", tblName="t", colNames=["a"], partNames=["p=1"], engine="hive"),
    )
    aggregate: AggrStats = txn.read(
        "get_aggr_stats_for",
        "d.t",
        PartitionsStatsRequest(dbName="d", tblName="t", colNames=["a"], partNames=["p=1"], engine="hive"),
    )
    return [bool(by_name[0].isStatsCompliant), list(by_columns.partStats) == ["p=1"], aggregate.partsFound == 1]


def test_statistics_of_partitions_follow_the_same_rule(server: Metastore) -> None:
    with_partition(server)
    early = Transaction(server.client, ["d.t"])
    early.begin()
    with Transaction(server.client, ["d.t"]) as writer:
        write_partition_statistics(writer)
        assert partitions_answered(writer) == [True, True, True]
        assert stored_write_id(server, "PARTITIONS") == writer.write_id("d.t")
    with Transaction(server.client, ["d.t"]) as late:
        assert partitions_answered(late) == [True, True, True]
    assert partitions_answered(early) == [False, False, False]
    early.commit()


def test_an_aborted_writers_statistics_of_partitions_are_valid_to_nobody(server: Metastore) -> None:
    with_partition(server)
    lost = Transaction(server.client, ["d.t"])
    lost.begin()
    write_partition_statistics(lost)
    lost.abort()
    with Transaction(server.client, ["d.t"]) as reader:
        assert partitions_answered(reader) == [False, False, False]
        forgetful(reader, "d.t", 2)
        assert partitions_answered(reader) == [False, False, False]


@pytest.mark.parametrize("is_partitioned", [False, True], ids=["table", "partition"])
def test_after_an_aborted_writer_the_second_analysis_is_valid(is_partitioned: bool, server: Metastore) -> None:
    """The first one cannot be told from an INSERT, which adds to figures that it has read, and removes the claims."""
    if is_partitioned:
        with_partition(server)
    else:
        server.client.call("create_table", transactional("t"))

    def analyze(txn: Transaction) -> None:
        if is_partitioned:
            write_partition_statistics(txn)
        else:
            write_statistics(txn, "t", 3)

    def answered(txn: Transaction) -> set[bool]:
        return set(partitions_answered(txn) if is_partitioned else is_answered(txn, "t"))

    lost = Transaction(server.client, ["d.t"])
    lost.begin()
    analyze(lost)
    lost.abort()
    for expected in (False, True):
        with Transaction(server.client, ["d.t"]) as writer:
            analyze(writer)
        with Transaction(server.client, ["d.t"]) as reader:
            assert answered(reader) == {expected}


@pytest.mark.parametrize("merges", [False, True], ids=["replaced", "merged"])
def test_new_statistics_of_a_partitions_columns_do_not_vouch_for_an_aborted_writer(
    merges: bool, server: Metastore
) -> None:
    with_partition(server)
    lost = Transaction(server.client, ["d.t"])
    lost.begin()
    write_partition_statistics(lost)
    lost.abort()
    with Transaction(server.client, ["d.t"]) as writer:
        forgetful(writer, "d.t", writer.write_id("d.t"))
        request = SetPartitionsStatsRequest(colStats=[statistics("t", "p=1")], needMerge=merges, engine="hive")
        writer.write("set_aggr_stats_for", "d.t", request)
        own = writer.write_id("d.t")
    assert stored_write_id(server, "PARTITIONS") == own
    with Transaction(server.client, ["d.t"]) as reader:
        assert partitions_answered(reader) == [False, False, False]


def test_a_renamed_partition_keeps_what_transactions_wrote_to_it(server: Metastore) -> None:
    """And a dropped one removes them: both in the transaction that changes the partition."""
    described = with_partition(server)
    engine = create_engine(server.service._settings.database.url)
    with engine.begin() as connection:
        for value in ("1", "2"):
            connection.execute(
                text(
                    "INSERT INTO COMPLETED_TXN_COMPONENTS (CTC_TXNID, CTC_DATABASE, CTC_TABLE, CTC_PARTITION, "
                    "CTC_WRITEID, CTC_UPDATE_DELETE) VALUES (1, 'd', 't', :name, 1, 'N')"
                ),
                {"name": f"p={value}"},
            )

    def known() -> list[str]:
        with engine.connect() as connection:
            rows = connection.execute(text("SELECT CTC_PARTITION FROM COMPLETED_TXN_COMPONENTS ORDER BY 1"))
            return [str(row[0]) for row in rows if row[0] is not None]

    with Transaction(server.client, ["d.t"]) as txn:
        request = RenamePartitionRequest(
            catName="hive", dbName="d", tableName="t", partVals=["1"], newPart=partition(described, "3")
        )
        txn.write("rename_partition_req", "d.t", request)
    assert known() == ["p=2", "p=3"]
    server.client.call("drop_partition", "d", "t", ["3"], False)
    assert known() == ["p=2"]
    engine.dispose()
