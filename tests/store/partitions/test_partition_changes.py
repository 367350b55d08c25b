"""Partitions are altered, renamed, exchanged and marked."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest
from sqlalchemy import insert

from hms_cache.config import Settings
from hms_cache.config.sections.events import EventSettings
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.environment import NO_OPTIONS, EnvironmentOptions, Writer, environment_options
from hms_cache.store.contract.partitions import ByValues, PartitionQuery
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.events.notification_log import EventCleaner
from hms_cache.store.partitions import alterations
from hms_cache.store.schema import (
    BUCKETING_COLS,
    CDS,
    COMPACTION_QUEUE,
    NOTIFICATION_LOG,
    PART_COL_STATS,
    PARTITION_KEY_VALS,
    PARTITIONS,
    SERDE_PARAMS,
    SKEWED_STRING_LIST,
)
from hms_cache.store.warehouse.locations import Location
from hms_cache.store.warehouse.move_records import MoveRecord, record_name
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    EnvironmentContext,
    FieldSchema,
    InvalidOperationException,
    InvalidPartitionException,
    MetaException,
    Order,
    Partition,
    SkewedInfo,
    UnknownTableException,
)
from tests.manual_clock import ManualClock
from tests.store.partitions.catalog import PartitionCatalog, descriptor, partition

T = ("hive", "d", "t")
U = ("hive", "d", "u")
KEEP_STATISTICS = environment_options(EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"}))


@pytest.fixture
def filled(catalog: PartitionCatalog) -> PartitionCatalog:
    catalog.create_table()
    catalog.writes.add_partitions(
        TableName(*T),
        [partition("a", "0", parameters={"k": "1", "gone": "x"}), partition("a", "1"), partition("b", "0")],
    )
    return catalog


def read(catalog: PartitionCatalog, *values: str) -> Partition:
    return catalog.reads.get_partition(TableName(*T), values)


def add_column_statistics(catalog: PartitionCatalog, name: str, columns: dict[str, str]) -> None:
    """Writes rows of statistics with these columns and types directly."""
    part_id = {row.PART_NAME: row.PART_ID for row in catalog.rows(PARTITIONS)}[name]

    def add(transaction: WriteTransaction) -> None:
        for column, type_ in columns.items():
            transaction.connection.execute(
                insert(PART_COL_STATS).values(
                    CS_ID=transaction.id("MPartitionColumnStatistics"),
                    CAT_NAME="hive",
                    DB_NAME="d",
                    TABLE_NAME="t",
                    PARTITION_NAME=name,
                    COLUMN_NAME=column,
                    COLUMN_TYPE=type_,
                    PART_ID=part_id,
                    NUM_NULLS=0,
                    LAST_ANALYZED=1,
                    ENGINE="hive",
                )
            )

    run_write(catalog.database, add)


def test_an_alter_replaces_everything(filled: PartitionCatalog) -> None:
    changed = read(filled, "a", "0")
    changed.parameters = {"k": "2", "new": "y", "transient_lastDdlTime": "77"}
    changed.lastAccessTime = 5
    changed.sd = descriptor(
        "file:/elsewhere/a",
        columns=[("id", "bigint"), ("v", "string"), ("more", "int")],
        inputFormat="in",
        numBuckets=3,
        bucketCols=["id"],
        sortCols=[Order("id", 0)],
        parameters={"p": "q"},
        skewedInfo=SkewedInfo(["id"], [["1"]], {("1",): "file:/x"}),
    )
    changed.sd.serdeInfo.parameters = {"field.delim": ","}
    changed.sd.serdeInfo.name = "named"
    filled.writes.alter_partitions(TableName(*T), [changed], writer=Writer(options=KEEP_STATISTICS))
    found = read(filled, "a", "0")
    assert found == changed
    untouched = read(filled, "a", "1")
    assert untouched.sd.inputFormat != "in"
    assert filled.events() == [("ADD_PARTITION", "t"), ("ALTER_PARTITION", "t")]
    back = read(filled, "a", "0")
    back.sd = descriptor("file:/elsewhere/b")
    back.parameters = {"transient_lastDdlTime": "78"}
    filled.writes.alter_partitions(TableName(*T), [back], writer=Writer(options=KEEP_STATISTICS))
    assert read(filled, "a", "0").sd == back.sd
    assert (len(filled.rows(CDS)), filled.rows(BUCKETING_COLS), filled.rows(SKEWED_STRING_LIST)) == (1, [], [])
    assert {row.PARAM_KEY for row in filled.rows(SERDE_PARAMS)} == {"serialization.format"}


def test_many_keys_of_parameters_go_at_once(filled: PartitionCatalog) -> None:
    changed = read(filled, "a", "0")
    many = {f"k{number:02d}": str(number) for number in range(50)}
    changed.parameters = {**many, "transient_lastDdlTime": "1"}
    filled.writes.alter_partitions(TableName(*T), [changed], writer=Writer(options=KEEP_STATISTICS))
    assert read(filled, "a", "0").parameters == changed.parameters
    changed.parameters = {"k01": "1", "k02": "other", "transient_lastDdlTime": "1"}
    filled.writes.alter_partitions(TableName(*T), [changed], writer=Writer(options=KEEP_STATISTICS))
    assert read(filled, "a", "0").parameters == changed.parameters


def test_alters_are_all_or_none(filled: PartitionCatalog) -> None:
    first = read(filled, "a", "0")
    first.parameters = {"k": "changed"}
    with pytest.raises(InvalidOperationException, match="new parts size 2 not matching with old parts size 1"):
        filled.writes.alter_partitions(TableName(*T), [first, partition("absent", "0")])
    assert read(filled, "a", "0").parameters["k"] == "1"
    with pytest.raises(InvalidOperationException, match="Unable to alter partition because table"):
        filled.writes.alter_partitions(TableName("hive", "d", "no"), [partition("a", "0", tableName="no")])
    with pytest.raises(MetaException, match="Partition does not set storageDescriptor or serdeInfo"):
        filled.writes.alter_partitions(TableName(*T), [partition("a", "0", sd=None)])
    assert len(filled.events()) == 1


def test_defaults_of_an_alter(filled: PartitionCatalog) -> None:
    stored = read(filled, "a", "0")
    sent = partition("a", "0", sd=descriptor(None, columns=[]), parameters={"transient_lastDdlTime": "0"})
    filled.writes.alter_partitions(TableName(*T), [sent], writer=Writer(options=KEEP_STATISTICS))
    found = read(filled, "a", "0")
    assert found.sd.location == stored.sd.location, "no location sent is no change of it"
    assert [column.name for column in found.sd.cols] == ["id", "v"], "no columns sent are the table's"
    assert int(found.parameters["transient_lastDdlTime"]) > 0


@pytest.mark.parametrize(
    ("properties", "sent", "expected"),
    [
        ({}, {}, {"numFiles": "1", "totalSize": "3", "numFilesErasureCoded": "0"}),
        ({"DO_NOT_UPDATE_STATS": "true"}, {}, {}),
        ({}, {"numFiles": "8", "totalSize": "8"}, {"numFiles": "1", "totalSize": "3", "numFilesErasureCoded": "0"}),
        (
            {"STATS_GENERATED": "TASK"},
            {"numFiles": "8", "totalSize": "8"},
            {
                "numFiles": "1",
                "totalSize": "3",
                "numFilesErasureCoded": "0",
                "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}',
            },
        ),
    ],
)
def test_basic_statistics_are_counted_anew(
    sqlite_catalog: PartitionCatalog, properties: dict[str, str], sent: dict[str, str], expected: dict[str, str]
) -> None:
    sqlite_catalog.create_table()
    sqlite_catalog.writes.add_partitions(TableName(*T), [partition("a", "0")])
    Path(sqlite_catalog.root, "d.db/t/dt=a/hr=0/file").write_bytes(b"123")
    changed = read(sqlite_catalog, "a", "0")
    changed.parameters = dict(sent)
    sqlite_catalog.writes.alter_partitions(
        TableName(*T), [changed], writer=Writer(options=environment_options(EnvironmentContext(properties)))
    )
    found = read(sqlite_catalog, "a", "0").parameters
    assert {key: value for key, value in found.items() if key != "transient_lastDdlTime"} == expected


def test_figures_that_did_not_change_stand(sqlite_catalog: PartitionCatalog) -> None:
    sqlite_catalog.create_table()
    counts = {"numFiles": "8", "totalSize": "8", "numFilesErasureCoded": "0"}
    figures = {**counts, "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
    sqlite_catalog.writes.add_partitions(TableName(*T), [partition("a", "0", parameters=figures)])
    sqlite_catalog.writes.alter_partitions(TableName(*T), [read(sqlite_catalog, "a", "0")])
    found = read(sqlite_catalog, "a", "0").parameters
    assert {key: found[key] for key in figures} == figures


def test_statistics_of_changed_columns_go(filled: PartitionCatalog) -> None:
    add_column_statistics(filled, "dt=a/hr=0", {"id": "bigint", "v": "string"})
    add_column_statistics(filled, "dt=a/hr=1", {"id": "bigint", "v": "string"})
    changed = read(filled, "a", "0")
    changed.parameters["COLUMN_STATS_ACCURATE"] = '{"BASIC_STATS":"true","COLUMN_STATS":{"id":"true","v":"true"}}'
    changed.sd.cols = [FieldSchema("id", "bigint"), FieldSchema("v", "int")]
    filled.writes.alter_partitions(TableName(*T), [changed], writer=Writer(options=KEEP_STATISTICS))
    left = sorted((row.PARTITION_NAME, row.COLUMN_NAME) for row in filled.rows(PART_COL_STATS))
    assert left == [("dt=a/hr=0", "id"), ("dt=a/hr=1", "id"), ("dt=a/hr=1", "v")]
    found = read(filled, "a", "0").parameters["COLUMN_STATS_ACCURATE"]
    assert found == '{"BASIC_STATS":"true","COLUMN_STATS":{"id":"true"}}'


def test_a_rename_moves_everything(filled: PartitionCatalog) -> None:
    add_column_statistics(filled, "dt=a/hr=0", {"id": "bigint"})
    Path(filled.root, "d.db/t/dt=a/hr=0/data").write_text("rows")
    old = read(filled, "a", "0")
    old.values = ["c=d", "9"]
    filled.writes.rename_partition(TableName(*T), ["a", "0"], old)
    found = read(filled, "c=d", "9")
    assert found.sd.location == f"file:{filled.root}/d.db/t/dt=c%3Dd/hr=9"
    assert Path(filled.root, "d.db/t/dt=c%3Dd/hr=9/data").read_text() == "rows"
    assert not Path(filled.root, "d.db/t/dt=a/hr=0").exists()
    assert filled.reads.get_partition_names(PartitionQuery(TableName(*T))) == [
        "dt=a/hr=1",
        "dt=b/hr=0",
        "dt=c%3Dd/hr=9",
    ]
    assert [row.PARTITION_NAME for row in filled.rows(PART_COL_STATS)] == ["dt=c%3Dd/hr=9"]
    assert sorted(row.PART_KEY_VAL for row in filled.rows(PARTITION_KEY_VALS)) == ["0", "1", "9", "a", "b", "c=d"]
    [message] = [row.MESSAGE for row in filled.rows(NOTIFICATION_LOG) if row.EVENT_TYPE == "ALTER_PARTITION"]
    assert '"keyValues":{"dt":"a","hr":"0"}' in message


COPIED = environment_options(EnvironmentContext({"renamePartitionMakeCopy": "true", "txnId": "9"}))
SEES_ALL = "d.t:7:9223372036854775807::"


@pytest.fixture
def written(sqlite_catalog: PartitionCatalog) -> PartitionCatalog:
    """A transactional table with a partition that has files."""
    sqlite_catalog.create_table(parameters={"transactional": "true"})
    sqlite_catalog.writes.add_partitions(TableName(*T), [partition("a", "0")], writer=Writer(write_id=3))
    delta = Path(sqlite_catalog.root, "d.db/t/dt=a/hr=0/delta_0000003_0000003")
    delta.mkdir()
    (delta / "bucket_00000").write_text("rows")
    (delta / "elsewhere").symlink_to("/etc")
    return sqlite_catalog


def visible(catalog: PartitionCatalog) -> set[str]:
    """All files of the table, including hidden ones."""
    root = Path(catalog.root, "d.db/t")
    return {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir() or path.is_symlink()}


OF_OLD = {"dt=a/hr=0/delta_0000003_0000003/bucket_00000", "dt=a/hr=0/delta_0000003_0000003/elsewhere"}
OF_NEW = {name.replace("dt=a", "dt=c") for name in OF_OLD}


def rename(catalog: PartitionCatalog, context: EnvironmentOptions, write_id: int | None = 7) -> None:
    new = read(catalog, "a", "0")
    new.values, new.writeId = ["c", "0"], write_id
    catalog.writes.rename_partition(
        TableName(*T), ["a", "0"], new, writer=Writer(write_id=write_id, valid_write_ids=SEES_ALL, options=context)
    )


def test_a_rename_can_leave_the_old_files_to_those_who_read_them(written: PartitionCatalog) -> None:
    rename(written, COPIED)
    found = read(written, "c", "0")
    assert (found.sd.location, found.writeId) == (f"file:{written.root}/d.db/t/dt=c/hr=0", 7)
    assert visible(written) == OF_OLD | OF_NEW | {"dt=a/hr=0/base_0000007/_metadata_acid"}
    assert Path(written.root, "d.db/t/dt=c/hr=0/delta_0000003_0000003/bucket_00000").read_text() == "rows"
    assert Path(written.root, "d.db/t/dt=c/hr=0/delta_0000003_0000003/elsewhere").is_symlink()
    [entry] = written.rows(COMPACTION_QUEUE)
    assert (entry.CQ_PARTITION, entry.CQ_STATE, entry.CQ_HIGHEST_WRITE_ID, entry.CQ_TXN_ID) == ("dt=a/hr=0", "r", 7, 9)
    assert f"file:{written.root}/d.db/t/dt=a/hr=0" in entry.CQ_TBLPROPERTIES


@pytest.mark.parametrize(
    ("context", "write_id"),
    [
        (NO_OPTIONS, 7),
        (environment_options(EnvironmentContext({"renamePartitionMakeCopy": "false", "txnId": "9"})), 7),
        (COPIED, None),
    ],
)
def test_other_renames_move(written: PartitionCatalog, context: EnvironmentOptions, write_id: int | None) -> None:
    rename(written, context, write_id)
    assert visible(written) == OF_NEW


def test_a_copy_is_undone(written: PartitionCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    before = visible(written)
    monkeypatch.setattr(alterations, "_store_name", Mock(side_effect=MetaException("the database is away")))
    with pytest.raises(MetaException, match="away"):
        rename(written, COPIED)
    assert visible(written) == before
    assert not Path(written.root, "d.db/t/dt=c/hr=0").exists()
    assert not Path(written.root, "d.db/t/dt=a/hr=0/base_0000007").exists()
    assert not written.rows(COMPACTION_QUEUE)


def test_what_an_interrupted_rename_hid_is_not_hidden_in_the_copy(written: PartitionCatalog) -> None:
    left = Path(written.root, "d.db/t/dt=a/hr=0/base_0000007/_metadata_acid")
    left.parent.mkdir()
    left.write_text('{"thisFileVersion":"0","dataFormat":"dropped"}')
    truncated = Path(written.root, "d.db/t/dt=a/hr=0/base_0000002/_metadata_acid")
    truncated.parent.mkdir()
    truncated.write_text('{"thisFileVersion":"0","dataFormat":"truncated"}')
    rename(written, COPIED)
    assert visible(written) - OF_OLD - OF_NEW == {
        "dt=a/hr=0/base_0000007/_metadata_acid",
        "dt=a/hr=0/base_0000002/_metadata_acid",
        "dt=c/hr=0/base_0000002/_metadata_acid",
    }


def test_a_copy_is_not_made_over_something(written: PartitionCatalog) -> None:
    Path(written.root, "d.db/t/dt=c/hr=0").mkdir(parents=True)
    with pytest.raises(InvalidOperationException, match="already exists"):
        rename(written, COPIED)
    assert visible(written) == OF_OLD
    assert Path(written.root, "d.db/t/dt=c/hr=0").is_dir()


@pytest.mark.parametrize("is_added", [False, True])
@pytest.mark.parametrize("context", [NO_OPTIONS, COPIED])
def test_a_rename_finds_what_another_one_has_moved_that_ended_without_its_commit(
    written: PartitionCatalog, context: EnvironmentOptions, is_added: bool
) -> None:
    """For example, a server ended when it had moved dt=a/hr=0 to dt=a/hr=1. If a partition has been added since then,
    the files belong to it."""
    root = Path(written.root, "d.db/t/dt=a")
    old, there, goal = (root / f"hr={hour}" for hour in range(3))
    record = MoveRecord(f"file:{old}", f"file:{there}", old.stat().st_ino)
    file = root / record_name(Location("file", "", str(there)))
    file.write_bytes(record.encode())
    old.rename(there)
    if is_added:
        written.writes.add_partitions(TableName(*T), [partition("a", "1")])
    writer = Writer(write_id=7, valid_write_ids=SEES_ALL, options=context)
    written.writes.rename_partition(TableName(*T), ["a", "0"], partition("a", "2"), writer=writer)
    assert [place.exists() for place in (old, there, goal)] == [False, is_added, not is_added]
    assert file.exists() is is_added
    assert ((there if is_added else goal) / "delta_0000003_0000003/bucket_00000").read_text() == "rows"


def test_refused_renames(filled: PartitionCatalog) -> None:
    with pytest.raises(InvalidOperationException, match="old partition does not exist"):
        filled.writes.rename_partition(TableName(*T), ["x", "0"], partition("y", "0"))
    with pytest.raises(InvalidOperationException, match=r"Partition already exists:d\.t\.\[b, 0\]"):
        filled.writes.rename_partition(TableName(*T), ["a", "0"], partition("b", "0"))
    Path(filled.root, "d.db/t/dt=c/hr=0").mkdir(parents=True)
    with pytest.raises(InvalidOperationException, match="already exists"):
        filled.writes.rename_partition(TableName(*T), ["a", "0"], partition("c", "0"))
    assert Path(filled.root, "d.db/t/dt=a/hr=0").is_dir()
    assert len(filled.events()) == 1


def test_partitions_of_external_tables_stay_where_they_are(sqlite_catalog: PartitionCatalog) -> None:
    sqlite_catalog.create_table(table_type="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"})
    sqlite_catalog.writes.add_partitions(TableName(*T), [partition("a", "0")])
    before = read(sqlite_catalog, "a", "0").sd.location
    sqlite_catalog.writes.rename_partition(TableName(*T), ["a", "0"], partition("b", "0"))
    assert read(sqlite_catalog, "b", "0").sd.location == before
    assert Path(sqlite_catalog.root, "d.db/t/dt=a/hr=0").is_dir()


def test_write_ids_of_transactional_tables(sqlite_catalog: PartitionCatalog) -> None:
    sqlite_catalog.create_table(parameters={"transactional": "true"})
    accurate = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}', "numFiles": "1", "totalSize": "1"}
    accurate["numFilesErasureCoded"] = "0"
    sqlite_catalog.writes.add_partitions(
        TableName(*T), [partition("a", "0", parameters=accurate)], writer=Writer(write_id=3)
    )
    assert read(sqlite_catalog, "a", "0").writeId == 3
    sqlite_catalog.writes.alter_partitions(TableName(*T), [read(sqlite_catalog, "a", "0")], writer=Writer(write_id=4))
    assert read(sqlite_catalog, "a", "0").writeId == 3, "without a snapshot the old write id stays"
    sees_all = "d.t:4:9223372036854775807::"
    sqlite_catalog.writes.alter_partitions(
        TableName(*T), [read(sqlite_catalog, "a", "0")], writer=Writer(write_id=4, valid_write_ids=sees_all)
    )
    found = read(sqlite_catalog, "a", "0")
    assert (found.writeId, "COLUMN_STATS_ACCURATE" in found.parameters) == (4, True)
    misses_it = "d.t:5:4:4:"
    sqlite_catalog.writes.alter_partitions(
        TableName(*T), [read(sqlite_catalog, "a", "0")], writer=Writer(write_id=5, valid_write_ids=misses_it)
    )
    found = read(sqlite_catalog, "a", "0")
    assert (found.writeId, "COLUMN_STATS_ACCURATE" in found.parameters) == (5, False)


KEPT = EnvironmentOptions(keeps_partition_statistics=True)


@pytest.mark.parametrize(("write_id", "write_ids"), [(None, None), (4, None), (None, SEES_ALL)])
def test_statistics_are_not_claimed_outside_a_transaction(
    sqlite_catalog: PartitionCatalog, write_id: int | None, write_ids: str | None
) -> None:
    sqlite_catalog.create_table(parameters={"transactional": "true"})
    sqlite_catalog.writes.add_partitions(TableName(*T), [partition("a", "0")], writer=Writer(write_id=3))
    claiming = read(sqlite_catalog, "a", "0")
    before = dict(claiming.parameters)
    claiming.parameters["COLUMN_STATS_ACCURATE"] = '{"BASIC_STATS":"true"}'
    claiming.writeId = None
    with pytest.raises(MetaException, match=r"Cannot change stats state for a transactional table d\.t without"):
        sqlite_catalog.writes.alter_partitions(TableName(*T), [claiming], writer=Writer(write_id, write_ids, KEPT))
    assert read(sqlite_catalog, "a", "0").parameters == before
    sqlite_catalog.writes.alter_partitions(TableName(*T), [claiming], writer=Writer(4, SEES_ALL, KEPT))
    assert "COLUMN_STATS_ACCURATE" in read(sqlite_catalog, "a", "0").parameters


def test_an_exchange_moves_partitions(filled: PartitionCatalog) -> None:
    filled.create_table("u")
    Path(filled.root, "d.db/t/dt=a/hr=0/data").write_text("rows")
    moved = filled.writes.exchange_partitions({"dt": "a"}, TableName(*T), TableName(*U))
    assert [one.values for one in moved] == [["a", "0"], ["a", "1"]]
    assert filled.reads.get_partition_names(PartitionQuery(TableName(*T))) == ["dt=b/hr=0"]
    found = filled.reads.get_partitions(PartitionQuery(TableName(*U))).partitions
    assert [one.values for one in found] == [["a", "0"], ["a", "1"]]
    assert found[0].sd.location == f"file:{filled.root}/d.db/u/dt=a/hr=0"
    assert found[0].parameters["k"] == "1"
    assert Path(filled.root, "d.db/u/dt=a/hr=0/data").read_text() == "rows"
    assert not Path(filled.root, "d.db/t/dt=a").exists()
    assert filled.events()[1:] == [("ADD_PARTITION", "u"), ("DROP_PARTITION", "t")]


def test_refused_exchanges(filled: PartitionCatalog) -> None:
    filled.create_table("u", columns=[("other", "int")])
    with pytest.raises(MetaException, match="The tables have different schemas"):
        filled.writes.exchange_partitions({"dt": "a"}, TableName(*T), TableName(*U))
    with pytest.raises(MetaException, match=r"No partition is found with the values \{dt=x\} for the table t"):
        filled.writes.exchange_partitions({"dt": "x"}, TableName(*T), TableName(*U))
    with pytest.raises(MetaException, match=r"The destination table hive\.d\.no not found"):
        filled.writes.exchange_partitions({"dt": "a"}, TableName(*T), TableName("hive", "d", "no"))
    with pytest.raises(MetaException, match="You cannot move a partition across catalogs"):
        filled.writes.exchange_partitions({"dt": "a"}, TableName(*T), TableName("other", "d", "u"))
    filled.create_table("w")
    filled.writes.add_partitions(TableName("hive", "d", "w"), [partition("a", "1", table="w")])
    with pytest.raises(MetaException, match="The partition dt=a/hr=1 already exists in the table w"):
        filled.writes.exchange_partitions({"dt": "a"}, TableName(*T), TableName("hive", "d", "w"))
    assert len(filled.reads.get_partition_names(PartitionQuery(TableName(*T)))) == 3


def test_files_that_are_left_alone_stay_in_sight(sqlite_database: Database, tmp_path: Path) -> None:
    """The location also remains when a table is renamed: the files are not moved."""
    catalog = PartitionCatalog(sqlite_database, tmp_path, files="leave")
    catalog.create_table()
    catalog.create_table("u")
    catalog.writes.add_partitions(TableName(*T), [partition("a", "0"), partition("b", "0")])
    catalog.writes.rename_partition(TableName(*T), ["a", "0"], partition("c", "0"))
    assert read(catalog, "c", "0").sd.location == f"file:{tmp_path}/d.db/t/dt=a/hr=0"
    catalog.writes.exchange_partitions({"dt": "b"}, TableName(*T), TableName(*U))
    moved = catalog.reads.get_partition(TableName(*U), ["b", "0"])
    assert moved.sd.location == f"file:{tmp_path}/d.db/t/dt=b/hr=0"


def test_markers(filled: PartitionCatalog) -> None:
    values = {"dt": "a", "hr": "0"}
    assert not filled.reads.is_partition_marked_for_event(TableName(*T), values, 1)
    filled.writes.mark_partition_for_event(TableName(*T), values, 1)
    assert filled.reads.is_partition_marked_for_event(TableName(*T), values, 1)
    assert not filled.reads.is_partition_marked_for_event(TableName(*T), {"dt": "a", "hr": "1"}, 1)
    with pytest.raises(UnknownTableException):
        filled.writes.mark_partition_for_event(TableName("hive", "d", "no"), values, 1)
    with pytest.raises(InvalidPartitionException, match="doesn't match with number of supplied"):
        filled.writes.mark_partition_for_event(TableName(*T), {"dt": "a"}, 1)
    with pytest.raises(InvalidPartitionException, match="No partition value found for partition column: hr"):
        filled.reads.is_partition_marked_for_event(TableName(*T), {"dt": "a", "x": "1"}, 1)


def test_markers_whose_time_is_over_count_no_more(sqlite_database: Database, tmp_path: Path) -> None:
    """As with `metastore.event.expiry.duration` of Hive, whose tests of 3.1 wait for it."""
    clock = ManualClock()
    settings = Settings(events=EventSettings(marker_retention_s=60))
    catalog = PartitionCatalog(sqlite_database, tmp_path, settings, clock=clock)
    catalog.create_table()
    name, values = TableName(*T), {"dt": "a", "hr": "0"}
    catalog.writes.mark_partition_for_event(name, values, 1)
    clock.advance(59)
    assert catalog.reads.is_partition_marked_for_event(name, values, 1)
    clock.advance(2)
    assert not catalog.reads.is_partition_marked_for_event(name, values, 1)
    catalog.writes.mark_partition_for_event(name, values, 1)
    cleaner = EventCleaner(sqlite_database, clock)
    assert cleaner.clean_markers(60) == 1
    assert cleaner.clean_markers(60) == 0
    assert catalog.reads.is_partition_marked_for_event(name, values, 1)


def test_dropping_takes_grants_and_statistics_along(filled: PartitionCatalog) -> None:
    add_column_statistics(filled, "dt=a/hr=0", {"id": "bigint"})
    filled.writes.drop_partitions(TableName(*T), ByValues(("a", "0")), delete_data=False)
    assert filled.rows(PART_COL_STATS) == []


@pytest.mark.parametrize("is_there", [True, False], ids=["old directory", "none"])
def test_an_exchange_leaves_partitions_at_places_of_their_own(filled: PartitionCatalog, is_there: bool) -> None:
    """Only the directory of the leading keys moves: a partition located elsewhere would lose its files."""
    filled.create_table("u")
    elsewhere = Path(filled.root, "elsewhere")
    elsewhere.mkdir()
    (elsewhere / "data").write_text("rows")
    moved = read(filled, "a", "1")
    moved.sd.location = f"file:{elsewhere}"
    filled.writes.alter_partitions(TableName(*T), [moved])
    if not is_there:
        Path(filled.root, "d.db/t/dt=a/hr=1").rmdir()
    with pytest.raises(MetaException, match=r"the partition dt=a/hr=1 lies at file:.*/elsewhere"):
        filled.writes.exchange_partitions({"dt": "a"}, TableName(*T), TableName(*U))
    with pytest.raises(MetaException, match="Unable to move data"):
        filled.writes.exchange_partitions({"dt": "a", "hr": "1"}, TableName(*T), TableName(*U))
    assert read(filled, "a", "1").sd.location == f"file:{elsewhere}"
    filled.writes.exchange_partitions({"dt": "a", "hr": "0"}, TableName(*T), TableName(*U))
