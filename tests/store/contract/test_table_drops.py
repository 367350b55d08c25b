"""Contract of dropping and truncating tables."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, text

from hms_cache.config import Settings
from hms_cache.config.sections import EventSettings, WarehouseSettings
from hms_cache.metadata.object_names import DatabaseName, TableName, table_name
from hms_cache.store.contract.environment import ANY_WRITER, ExpectedParameter, Writer
from hms_cache.store.engine.work_units import run_write
from hms_cache.store.schema import PARTITION_KEY_VALS, PARTITIONS, SDS, TXN_COMPONENTS
from hms_cache.store.warehouse import local_files
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import (
    CATALOG,
    DATABASE,
    StoreUnderTest,
    as_received,
    environment,
    external,
    table,
)
from tests.store.contract.test_table_changes import ACCURATE, write_statistics

KEEPS_FILES = Writer(options=environment(truncateSkipDataDeletion="true"))


@contextmanager
def refused_deletions(monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[None]:
    """The file system does not delete files of this name."""
    delete = local_files.delete_in

    def refuse(directory: int, entry: str) -> None:
        if entry == name:
            raise PermissionError(errno.EACCES, "refused", entry)
        delete(directory, entry)

    with monkeypatch.context() as patched:
        patched.setattr(local_files, "delete_in", refuse)
        yield


def test_drop_leaves_nothing(catalog: StoreUnderTest) -> None:
    empty = catalog.counts()
    found = catalog.create_table(keys=[("dt", "string"), ("hr", "int")])
    catalog.add_partitions("t", ("1", "1"), ("1", "2"))
    write_statistics(catalog)
    key = ttypes.SQLPrimaryKey("d", "t", "id", 1, "pk", True, False, False, "hive")
    catalog.store.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(primaryKeys=[key]))
    catalog.drop("t")
    assert catalog.counts() == empty
    assert catalog.files() == ["d.db"]
    assert catalog.events()[-1] == ("DROP_TABLE", "d", "t")
    assert catalog.last_event().table() == as_received(found)


def test_drop_of_a_missing_table(catalog: StoreUnderTest) -> None:
    before = catalog.events()
    with pytest.raises(ttypes.NoSuchObjectException) as raised:
        catalog.drop("nope")
    assert raised.value.message == "hive.d.nope table not found"
    with pytest.raises(ttypes.NoSuchObjectException, match=r"database hive\.nope"):
        catalog.store.writes.tables.drop_table(TableName(CATALOG, "nope", "t"), delete_data=True)
    assert catalog.events() == before


@pytest.mark.parametrize(
    ("sent", "delete_data", "goes"),
    [
        (table(), True, True),
        (table(), False, False),
        (external(), True, False),
        (external(parameters={"external.table.purge": "true"}), True, True),
        (external(parameters={"external.table.purge": "true"}), False, False),
        (table(parameters={"EXTERNAL": "TRUE"}), True, False),
    ],
)
def test_whose_data_goes(catalog: StoreUnderTest, sent: ttypes.Table, delete_data: bool, goes: bool) -> None:
    catalog.store.writes.tables.create_table(sent)
    (catalog.directory / "d.db" / "t" / "f").write_bytes(b"1")
    catalog.drop(delete_data=delete_data)
    assert catalog.files() == (["d.db"] if goes else ["d.db", "d.db/t", "d.db/t/f"])


@pytest.mark.parametrize(
    ("sent", "goes"),
    [
        ({}, True),
        ({"tableType": "EXTERNAL_TABLE", "parameters": {"EXTERNAL": "TRUE"}}, False),
        (
            {"tableType": "EXTERNAL_TABLE", "parameters": {"EXTERNAL": "TRUE", "external.table.purge": "true"}},
            True,
        ),
    ],
)
@pytest.mark.parametrize("whole_database", [False, True])
def test_partitions_elsewhere_go_with_the_table_that_owns_its_data(
    catalog: StoreUnderTest, sent: dict[str, Any], goes: bool, whole_database: bool
) -> None:
    catalog.create_table(keys=[("dt", "string")], **sent)
    catalog.add_partitions("t", ("1",))
    catalog.add_partitions("t", ("2",), location=f"file:{catalog.directory}/outside%_/p")
    catalog.add_partitions("t", ("3",), location=f"file:{catalog.directory}")
    catalog.add_partitions("t", ("4",), location=f"file:{catalog.directory}/d.db/T/p")
    if whole_database:
        catalog.store.writes.databases.drop_database(DatabaseName(CATALOG, "d"), delete_data=True, cascade=True)
    else:
        catalog.drop()
    assert ("outside%_/p" in catalog.files()) is not goes
    assert "outside%_" in catalog.files(), "never what contains a partition"
    assert ("d.db/t/dt=1" in catalog.files()) is not goes
    assert ("d.db/T/p" in catalog.files()) is not goes


def test_a_parent_takes_its_foreign_keys_along(catalog: StoreUnderTest) -> None:
    catalog.create_table("parent")
    catalog.create_table("child")
    key = ttypes.SQLPrimaryKey("d", "parent", "id", 1, "pk", True, False, False, "hive")
    foreign = ttypes.SQLForeignKey("d", "parent", "id", "d", "child", "id", 1, 0, 0, "fk", "pk", True, False, False)
    catalog.store.writes.constraints.add_constraints(
        ttypes.SQLAllTableConstraints(primaryKeys=[key], foreignKeys=[foreign])
    )
    catalog.drop("parent")
    assert catalog.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", "child")).foreignKeys == []


def test_transaction_rows_go(catalog: StoreUnderTest) -> None:
    catalog.create_table(parameters={"transactional": "true"})
    row = {"TC_TXNID": 0, "TC_DATABASE": "d", "TC_TABLE": "t", "TC_OPERATION_TYPE": "i", "TC_WRITEID": 1}
    run_write(catalog.database, lambda transaction: transaction.connection.execute(insert(TXN_COMPONENTS), row))
    catalog.drop()
    assert catalog.rows(TXN_COMPONENTS.c.TC_TABLE) == []


def insert_partitions(catalog: StoreUnderTest, number: int) -> None:
    """Adds bare partition rows of table `t`, directly in the database."""
    table_id = catalog.get().id
    width = 5_000

    def write(transaction: Any) -> None:
        cd_id = transaction.connection.execute(SDS.select()).first().CD_ID
        for start in range(0, number, width):
            sd_ids = transaction.ids("MStorageDescriptor", min(width, number - start))
            part_ids = transaction.ids("MPartition", len(sd_ids))
            descriptor = {"IS_COMPRESSED": False, "IS_STOREDASSUBDIRECTORIES": False, "NUM_BUCKETS": 0, "CD_ID": cd_id}
            transaction.connection.execute(insert(SDS), [{"SD_ID": sd_id, **descriptor} for sd_id in sd_ids])
            rows = [
                {
                    "PART_ID": part_id,
                    "SD_ID": sd_id,
                    "TBL_ID": table_id,
                    "PART_NAME": f"dt={start + place}",
                    "CREATE_TIME": 0,
                    "LAST_ACCESS_TIME": 0,
                }
                for place, (part_id, sd_id) in enumerate(zip(part_ids, sd_ids, strict=True))
            ]
            transaction.connection.execute(insert(PARTITIONS), rows)
            values = [
                {"PART_ID": row["PART_ID"], "PART_KEY_VAL": row["PART_NAME"][3:], "INTEGER_IDX": 0} for row in rows
            ]
            transaction.connection.execute(insert(PARTITION_KEY_VALS), values)
        if catalog.database.dialect == "postgresql":
            # As autovacuum does once a table has grown: a connection that saw it empty keeps its plans until then.
            transaction.connection.execute(text('ANALYZE "SDS", "PARTITIONS", "PARTITION_KEY_VALS"'))

    run_write(catalog.database, write, ids={"MStorageDescriptor": number, "MPartition": number})


@pytest.mark.parametrize("store_kind", ["object"])
def test_many_partitions_go_in_one_transaction_and_few_statements(catalog: StoreUnderTest) -> None:
    empty = catalog.counts()
    catalog.create_table(keys=[("dt", "string")])
    insert_partitions(catalog, 12_000)
    with catalog.counting() as counted:
        catalog.drop()
    assert counted[0] <= 120, "three rounds"
    assert catalog.counts() == empty


@pytest.mark.parametrize("store_kind", ["object"])
def test_statement_counts(catalog: StoreUnderTest) -> None:
    catalog.create_table()
    with catalog.counting() as counted:
        catalog.drop()
    assert counted[0] <= 32


class TestTrash:
    @pytest.fixture
    def warehouse_settings(self, tmp_path: Path) -> WarehouseSettings:
        return WarehouseSettings(
            directory=f"file:{tmp_path}/warehouse", trash_interval_min=60, trash_directory=f"{tmp_path}/trash"
        )

    def test_dropped_data_is_moved_there(self, catalog: StoreUnderTest, tmp_path: Path) -> None:
        for _ in range(2):
            catalog.create_table()
            (catalog.directory / "d.db" / "t" / "f").write_bytes(b"1")
            catalog.drop()
        trashed = tmp_path / "trash" / "Current" / str(catalog.directory / "d.db" / "t").lstrip("/")
        assert (trashed / "f").read_bytes() == b"1"
        assert len(list(trashed.parent.iterdir())) == 2, "a second drop does not replace the first"
        assert catalog.files() == ["d.db"]

    @pytest.mark.parametrize("way", ["context", "table"])
    def test_purge_passes_it_by(self, catalog: StoreUnderTest, tmp_path: Path, way: str) -> None:
        catalog.create_table(parameters={"auto.purge": "true"} if way == "table" else {})
        catalog.drop(options=environment(**({"ifPurge": "TRUE"} if way == "context" else {})))
        assert not (tmp_path / "trash").exists()
        assert catalog.files() == ["d.db"]


class TestTruncate:
    def test_table(self, catalog: StoreUnderTest) -> None:
        statistics = {"numFiles": "2", "numRows": "5", "totalSize": "9", "COLUMN_STATS_ACCURATE": ACCURATE, "k": "v"}
        before = catalog.create_table(parameters=statistics)
        data = catalog.path(before.sd.location)
        (data / "f").write_bytes(b"1")
        (data / "sub").mkdir()
        (data / "sub" / "f").write_bytes(b"1")
        (data / "_hidden").write_bytes(b"1")
        catalog.store.writes.tables.truncate_table(table_name(CATALOG, "D", "T"))
        after = catalog.get()
        assert {key: after.parameters[key] for key in statistics} == {
            "numFiles": "0",
            "numRows": "0",
            "totalSize": "0",
            "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}',
            "k": "v",
        }
        assert catalog.files() == ["d.db", "d.db/t", "d.db/t/_hidden"]
        event = catalog.last_event()
        assert catalog.events()[-1] == ("ALTER_TABLE", "d", "t")
        assert (event.is_truncate, event.before(), event.after()) == (True, as_received(before), as_received(after))

    def test_named_partitions(self, catalog: StoreUnderTest) -> None:
        catalog.create_table(keys=[("dt", "string")])
        catalog.add_partitions("t", ("1",), ("2",), ("3",))
        partitions = catalog.partitions("t")
        for partition in partitions:
            partition.parameters |= {"numRows": "5", "COLUMN_STATS_ACCURATE": ACCURATE}
            (catalog.path(partition.sd.location) / "f").write_bytes(b"1")
        unchanged = environment(DO_NOT_UPDATE_STATS="true")
        catalog.store.writes.partitions.alter_partitions(
            TableName(CATALOG, DATABASE, "t"), partitions, writer=Writer(options=unchanged)
        )
        before = len(catalog.events())
        catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"), ["dt=3", "dt=1", "dt=nope"])
        after = catalog.partitions("t")
        assert [partition.parameters["numRows"] for partition in after] == ["0", "5", "0"]
        assert [partition.parameters.get("numFiles") for partition in after] == ["0", None, "0"]
        accurate = '{"BASIC_STATS":"true"}'
        claims = [partition.parameters["COLUMN_STATS_ACCURATE"] for partition in after]
        assert claims == [accurate, ACCURATE, accurate]
        assert [name for name in catalog.files() if name.endswith("/f")] == ["d.db/t/dt=2/f"]
        assert catalog.events()[before:] == [("ALTER_PARTITION", "d", "t")] * 2
        event = catalog.last_event()
        assert (event.is_truncate, event.partitions) == (True, (("3",),))
        assert event.after() == as_received(after[2])

    @pytest.mark.parametrize("is_around", [True, False])
    def test_a_partition_that_holds_the_others(self, catalog: StoreUnderTest, is_around: bool) -> None:
        """At the directory of its table, or around it, it is emptied with the others or not at all."""
        place = f"file:{catalog.directory}/place"
        catalog.create_table(location=f"{place}/t" if is_around else place, keys=[("dt", "string")])
        catalog.add_partitions("t", ("0",), location=f"{place}/")
        catalog.add_partitions("t", ("1",))
        (catalog.path(catalog.partitions("t")[1].sd.location) / "f").write_bytes(b"1")
        before = catalog.files(), catalog.events()
        for names in (["dt=0"], ["dt=nope", "dt=0"]):
            with pytest.raises(ttypes.MetaException, match=r"Cannot truncate partitions of .*others lie in"):
                catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"), names)
        assert (catalog.files(), catalog.events()) == before
        catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"), ["dt=0", "dt=1"])
        assert not any(name.endswith("/f") for name in catalog.files())

    @pytest.mark.parametrize("names", [[], ["dt=1"]])
    @pytest.mark.parametrize("keys", [[], [("hr", "int")]])
    def test_a_list_that_names_nothing_empties_nothing(
        self, catalog: StoreUnderTest, keys: list[tuple[str, str]], names: list[str]
    ) -> None:
        found = catalog.create_table(keys=keys)
        (catalog.directory / "d.db" / "t" / "f").write_bytes(b"1")
        before = catalog.events()
        catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"), names)
        assert "d.db/t/f" in catalog.files()
        assert (catalog.get(), catalog.events()) == (found, before)

    def test_all_partitions(self, catalog: StoreUnderTest) -> None:
        catalog.create_table(keys=[("dt", "string")])
        catalog.add_partitions("t", ("1",), ("2",))
        for partition in catalog.partitions("t"):
            (catalog.path(partition.sd.location) / "f").write_bytes(b"1")
        catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"))
        assert catalog.files() == ["d.db", "d.db/t", "d.db/t/dt=1", "d.db/t/dt=2"]

    def test_files_that_cannot_be_deleted_fail_the_call(
        self, catalog: StoreUnderTest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Their rows are still read; statistics would say that there are none."""
        before = catalog.create_table(parameters={"numRows": "5", "COLUMN_STATS_ACCURATE": ACCURATE})
        for name in ("f", "stuck"):
            (catalog.path(before.sd.location) / name).write_bytes(b"1")
        told = pytest.raises(ttypes.MetaException, match="counts as truncated, but not all files")
        with refused_deletions(monkeypatch, "stuck"), told:
            catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"))
        after = catalog.get()
        assert (after.parameters["numRows"], "COLUMN_STATS_ACCURATE" in after.parameters) == ("0", False)
        assert catalog.files() == ["d.db", "d.db/t", "d.db/t/stuck"]
        assert catalog.events()[-2:] == [("ALTER_TABLE", "d", "t")] * 2
        event = catalog.last_event()
        assert (event.is_truncate, event.after()) == (False, as_received(after))
        catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"))
        assert catalog.get().parameters["COLUMN_STATS_ACCURATE"] == '{"BASIC_STATS":"true"}'
        assert catalog.files() == ["d.db", "d.db/t"]

    @pytest.mark.parametrize("names", [None, ["dt=1", "dt=2"]])
    def test_partitions_whose_files_cannot_be_deleted(
        self, catalog: StoreUnderTest, monkeypatch: pytest.MonkeyPatch, names: list[str] | None
    ) -> None:
        """All of the others are emptied, and count as empty."""
        catalog.create_table(keys=[("dt", "string")])
        catalog.add_partitions("t", ("1",), ("2",))
        for partition, name in zip(catalog.partitions("t"), ("stuck", "f"), strict=True):
            (catalog.path(partition.sd.location) / name).write_bytes(b"1")
        told = pytest.raises(ttypes.MetaException, match=r"not all files at .*/dt=1 could be deleted; truncate it")
        with refused_deletions(monkeypatch, "stuck"), told:
            catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"), names)
        claims = [partition.parameters.get("COLUMN_STATS_ACCURATE") for partition in catalog.partitions("t")]
        assert claims == [None, '{"BASIC_STATS":"true"}']
        assert [name for name in catalog.files() if name.count("/") > 2] == ["d.db/t/dt=1/stuck"]
        event = catalog.last_event()
        assert (event.is_truncate, event.partitions) == (False, (("1",),))
        catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"), names)
        claims = [partition.parameters.get("COLUMN_STATS_ACCURATE") for partition in catalog.partitions("t")]
        assert claims == ['{"BASIC_STATS":"true"}'] * 2

    def test_external_tables_are_refused(self, catalog: StoreUnderTest) -> None:
        catalog.store.writes.tables.create_table(external())
        (catalog.directory / "d.db" / "t" / "f").write_bytes(b"1")
        with pytest.raises(ttypes.MetaException, match="Cannot truncate non-managed table"):
            catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"))
        assert "d.db/t/f" in catalog.files()

    def test_missing_table(self, catalog: StoreUnderTest) -> None:
        with pytest.raises(ttypes.NoSuchObjectException, match=r"hive\.d\.nope table not found"):
            catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "nope"))

    @pytest.mark.parametrize("purge", ["TRUE", "FALSE"])
    def test_an_iceberg_table_keeps_its_files(self, catalog: StoreUnderTest, purge: str) -> None:
        """Hive 4 has deleted the rows by a commit of the table's own format: the files belong to its snapshots."""
        statistics = {"numRows": "5", "numFiles": "1", "totalSize": "9", "COLUMN_STATS_ACCURATE": ACCURATE}
        parameters = {"table_type": "ICEBERG", "external.table.purge": purge, **statistics}
        catalog.store.writes.tables.create_table(external(parameters=parameters))
        for directory in ("data", "metadata"):
            (catalog.directory / "d.db" / "t" / directory).mkdir()
            (catalog.directory / "d.db" / "t" / directory / "f").write_bytes(b"1")
        before = catalog.files()
        catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"), writer=KEEPS_FILES)
        assert catalog.files() == before
        after = catalog.get().parameters
        assert (after["numRows"], after["numFiles"], after["COLUMN_STATS_ACCURATE"]) == (
            *("0", "0"),
            '{"BASIC_STATS":"true"}',
        )
        assert (catalog.events()[-1], catalog.last_event().is_truncate) == (("ALTER_TABLE", "d", "t"), True)

    def test_partitions_keep_their_files(self, catalog: StoreUnderTest) -> None:
        catalog.create_table(keys=[("dt", "string")])
        catalog.add_partitions("t", ("1",), ("2",))
        for partition in catalog.partitions("t"):
            (catalog.path(partition.sd.location) / "f").write_bytes(b"1")
        before = catalog.files()
        for names in (["dt=1"], None):
            catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"), names, writer=KEEPS_FILES)
        assert catalog.files() == before

    def test_a_transactional_table_keeps_its_files_behind_a_base(self, catalog: StoreUnderTest) -> None:
        catalog.create_table(parameters={"transactional": "true"})
        (catalog.directory / "d.db" / "t" / "delta_1").mkdir()
        before = catalog.files()
        with pytest.raises(ttypes.MetaException, match="no write id is given"):
            catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"), writer=KEEPS_FILES)
        assert catalog.files() == before
        writer = Writer(write_id=12, valid_write_ids="d.t:12:12:12:", options=KEEPS_FILES.options)
        catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"), writer=writer)
        base = "d.db/t/base_0000012"
        assert catalog.files() == sorted([*before, base, f"{base}/_metadata_acid"])
        assert catalog.get().writeId == 12

    @pytest.mark.parametrize("names", [None, ["dt=1"]])
    @pytest.mark.parametrize("keys", [[], [("dt", "string")]])
    @pytest.mark.parametrize("is_transactional", [False, True])
    def test_files_are_kept_only_on_request(
        self, catalog: StoreUnderTest, names: list[str] | None, keys: list[tuple[str, str]], is_transactional: bool
    ) -> None:
        # Hive's client makes the request unless `hive.acid.truncate.usebase` is false.
        catalog.create_table(keys=keys, parameters={"transactional": "true"} if is_transactional else {})
        place = "d.db/t/dt=1" if keys else "d.db/t"
        if keys:
            catalog.add_partitions("t", ("1",))
        (catalog.directory / place / "delta_1").mkdir()
        (catalog.directory / place / "delta_1" / "f").write_bytes(b"1")
        writer = Writer(write_id=12, valid_write_ids="d.t:12:12:12:") if is_transactional else ANY_WRITER
        catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"), names, writer=writer)
        kept = [] if keys or names is None else [f"{place}/delta_1", f"{place}/delta_1/f"]
        assert [name for name in catalog.files() if name.startswith(f"{place}/")] == kept


class TestTruncateInOneEvent:
    @pytest.fixture
    def store_settings(self) -> Settings:
        return Settings(events=EventSettings(single_alter_partitions_event=True))

    def test_partitions(self, catalog: StoreUnderTest) -> None:
        catalog.create_table(keys=[("dt", "string")])
        catalog.add_partitions("t", ("1",), ("2",))
        catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"))
        assert catalog.events()[-1] == ("ALTER_PARTITIONS", "d", "t")
        assert catalog.last_event().partitions == (("1",), ("2",))


class TestMaterializedViews:
    def create(self, catalog: StoreUnderTest) -> ttypes.Table:
        catalog.create_table("a")
        catalog.create_table("b")
        metadata = ttypes.CreationMetadata(
            catName="hive", dbName="d", tblName="mv", tablesUsed={"d.a", "hive.d.b"}, validTxnList="5:5::"
        )
        return catalog.create_table("mv", tableType="MATERIALIZED_VIEW", creationMetadata=metadata, rewriteEnabled=True)

    def test_creation_metadata(self, catalog: StoreUnderTest) -> None:
        found = self.create(catalog)
        metadata = found.creationMetadata
        assert metadata.tablesUsed == {"d.a", "d.b"}
        assert (metadata.validTxnList, metadata.materializationTime) == ("5:5::", 0)
        assert [source.table for source in metadata.sourceTables] == [catalog.get("a"), catalog.get("b")]
        assert catalog.store.reads.tables.get_tables(DatabaseName(CATALOG, "d"), ["mv"]) == [found]
        assert catalog.store.reads.tables.get_materialized_view_names(CATALOG) == [("d", "mv")]
        assert catalog.store.reads.tables.get_materialized_view_names(CATALOG, "default") == []
        with catalog.counting() as counted:
            catalog.get("mv")
        assert counted[0] <= 6

    def test_many_sources_take_no_more_statements(self, catalog: StoreUnderTest) -> None:
        """They are read in the transaction that creates the view, under its locks."""
        names = [f"d.s{number}" for number in range(22)]
        for name in names:
            catalog.create_table(name.partition(".")[2])
        taken = []
        for view, some in (("few", names[:2]), ("many", names)):
            metadata = ttypes.CreationMetadata("hive", "d", view, tablesUsed=set(some), validTxnList="5:5::")
            with catalog.counting() as counted:
                catalog.create_table(view, tableType="MATERIALIZED_VIEW", creationMetadata=metadata)
            taken.append(counted[0])
            assert catalog.get(view).creationMetadata.tablesUsed == set(some)
        assert taken[1] <= taken[0] + 5  # of the following read, which may be a load; twenty are more
        metadata = ttypes.CreationMetadata("hive", "d", "none", tablesUsed={"d.s1", "d.absent", "d.s2"})
        with pytest.raises(ttypes.MetaException, match=r"hive\.d\.absent table not found"):
            catalog.create_table("none", tableType="MATERIALIZED_VIEW", creationMetadata=metadata)

    def test_used_tables_cannot_be_dropped(self, catalog: StoreUnderTest) -> None:
        self.create(catalog)
        with pytest.raises(ttypes.MetaException, match=r"it is used in the following materialized views \[d\.mv\]"):
            catalog.drop("a")
        catalog.drop("mv")
        catalog.drop("a")
        assert catalog.counts()["MV_CREATION_METADATA"] == 0

    def test_update_of_creation_metadata(self, catalog: StoreUnderTest) -> None:
        self.create(catalog)
        source = ttypes.SourceTable(table("b"), 1, 2, 3)
        new = ttypes.CreationMetadata(
            "hive", "d", "mv", tablesUsed=set(), validTxnList="9:9::", materializationTime=7, sourceTables=[source]
        )
        catalog.store.writes.tables.update_creation_metadata(TableName(CATALOG, "d", "mv"), new)
        metadata = catalog.get("mv").creationMetadata
        assert (metadata.tablesUsed, metadata.validTxnList, metadata.materializationTime) == ({"d.b"}, "9:9::", 7)
        [stored] = metadata.sourceTables
        assert (stored.insertedCount, stored.updatedCount, stored.deletedCount) == (1, 2, 3)
        assert catalog.events()[-1] == ("ALTER_TABLE", "d", "mv")
        with pytest.raises(ttypes.MetaException):
            catalog.store.writes.tables.update_creation_metadata(TableName(CATALOG, "d", "a"), new)

    def test_alter_and_rename(self, catalog: StoreUnderTest) -> None:
        found = self.create(catalog)
        found.rewriteEnabled = False
        catalog.alter("mv", found)
        assert catalog.store.reads.tables.get_materialized_view_names(CATALOG) == []
        found.tableName = "mv2"
        catalog.alter("mv", found, expected_parameter=ExpectedParameter("absent", None))
        assert catalog.get("mv2").creationMetadata.tblName == "mv2"


class TestInsertEvents:
    def test_of_a_table(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table()
        data = ttypes.InsertEventRequestData(replace=True, filesAdded=["file:/a", "file:/b"])
        [event_id] = catalog.store.writes.tables.fire_insert_events(table_name(CATALOG, "D", "T"), [(None, data)])
        event = catalog.last_event()
        assert (event.event_id, event.is_replace, event.files) == (event_id, True, ("file:/a###", "file:/b###"))
        assert event.table() == as_received(found)
        assert catalog.events()[-1] == ("INSERT", "d", "t")

    def test_of_a_partition(self, catalog: StoreUnderTest) -> None:
        catalog.create_table(keys=[("dt", "string")])
        catalog.add_partitions("t", ("1",))
        data = ttypes.InsertEventRequestData(filesAdded=["f"])
        catalog.store.writes.tables.fire_insert_events(TableName(CATALOG, "d", "t"), [(["1"], data)])
        assert catalog.last_event().partition().values == ["1"]
        with pytest.raises(ttypes.NoSuchObjectException):
            catalog.store.writes.tables.fire_insert_events(TableName(CATALOG, "d", "t"), [(["2"], data)])
        with pytest.raises(ttypes.NoSuchObjectException):
            catalog.store.writes.tables.fire_insert_events(TableName(CATALOG, "d", "nope"), [(None, data)])


class TestReloadEvents:
    @pytest.mark.parametrize("is_refresh", [True, False])
    def test_of_a_table_and_of_a_partition(self, catalog: StoreUnderTest, is_refresh: bool) -> None:
        found = catalog.create_table(keys=[("dt", "string")])
        catalog.add_partitions("t", ("1",))
        [event_id] = catalog.store.writes.tables.fire_reload_events(
            table_name(CATALOG, "D", "T"), [None], is_refresh=is_refresh
        )
        event = catalog.last_event()
        assert (event.event_id, event.is_refresh, event.partition()) == (event_id, is_refresh, None)
        assert catalog.events()[-1] == ("RELOAD", "d", "t")
        assert catalog.get("t") == found
        [event_id] = catalog.store.writes.tables.fire_reload_events(
            TableName(CATALOG, "d", "t"), [["1"]], is_refresh=is_refresh
        )
        event = catalog.last_event()
        assert (event.event_id, event.is_refresh, event.partition().values) == (event_id, is_refresh, ["1"])

    def test_of_what_is_not_there(self, catalog: StoreUnderTest) -> None:
        catalog.create_table(keys=[("dt", "string")])
        for name, values in (("t", ["2"]), ("nope", None)):
            with pytest.raises(ttypes.NoSuchObjectException):
                catalog.store.writes.tables.fire_reload_events(TableName(CATALOG, "d", name), [values], is_refresh=True)
        assert catalog.events()[-1] == ("CREATE_TABLE", "d", "t")
