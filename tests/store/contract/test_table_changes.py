"""Contract of `alter_table`."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from hms_cache.config import Settings
from hms_cache.config.sections import CatalogSettings
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.environment import EnvironmentOptions, ExpectedParameter, Writer, environment_options
from hms_cache.store.contract.partitions import PartitionQuery
from hms_cache.store.engine.work_units import run_write
from hms_cache.store.rows.parameters import COUNTED_FILES
from hms_cache.store.schema import COLUMNS_V2, NEXT_WRITE_ID, PART_COL_STATS, PARTITIONS, SDS, TAB_COL_STATS, TBLS
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import (
    CATALOG,
    DATABASE,
    StoreUnderTest,
    as_received,
    columns,
    environment,
    external,
    table,
)

ACCURATE = '{"BASIC_STATS":"true","COLUMN_STATS":{"id":"true","v":"true"}}'


def changed(found: ttypes.Table, **fields: Any) -> ttypes.Table:
    """A copy with other fields."""
    copied = copy.deepcopy(found)
    for name, value in fields.items():
        setattr(copied, name, value)
    return copied


def set_location(catalog: StoreUnderTest, value: str, location: str) -> None:
    """Of the partition with this value, written directly to the database."""
    name = PARTITIONS.c.PART_NAME == f"dt={value}"
    of_it = SDS.c.SD_ID.in_(select(PARTITIONS.c.SD_ID).where(name))
    run_write(
        catalog.database,
        lambda transaction: transaction.connection.execute(update(SDS).where(of_it).values(LOCATION=location)),
    )


def write_statistics(catalog: StoreUnderTest, name: str = "t") -> None:
    """Column statistics of `id` and `v` for the table and all its partitions, written directly to the database."""

    def write(transaction: Any) -> None:
        connection = transaction.connection
        table_id = connection.execute(select(TBLS.c.TBL_ID).where(TBLS.c.TBL_NAME == name)).scalar_one()
        parts = connection.execute(select(PARTITIONS.c.PART_ID, PARTITIONS.c.PART_NAME)).all()
        common = {"CAT_NAME": "hive", "DB_NAME": "d", "TABLE_NAME": name, "NUM_NULLS": 0, "LAST_ANALYZED": 1}
        for column, kind in (("id", "bigint"), ("v", "string")):
            row = {**common, "COLUMN_NAME": column, "COLUMN_TYPE": kind, "ENGINE": "hive"}
            statistics_id = transaction.id("MTableColumnStatistics")
            connection.execute(insert(TAB_COL_STATS).values({**row, "CS_ID": statistics_id, "TBL_ID": table_id}))
            for part_id, part_name in parts:
                statistics_id = transaction.id("MPartitionColumnStatistics")
                values = {**row, "CS_ID": statistics_id, "PART_ID": part_id, "PARTITION_NAME": part_name}
                connection.execute(insert(PART_COL_STATS).values(values))

    run_write(catalog.database, write)


def statistics_names(catalog: StoreUnderTest) -> list[tuple[str, str, str]]:
    """(database, table, column) of all column statistics."""
    rows = []
    for of in (TAB_COL_STATS.c, PART_COL_STATS.c):
        rows.extend(catalog.rows(of.DB_NAME, of.TABLE_NAME, of.COLUMN_NAME))
    return sorted({tuple(row) for row in rows})


class TestProperties:
    def test_replaces_everything_but_time_and_id(self, catalog: StoreUnderTest) -> None:
        before = catalog.create_table(parameters={"a": "1", "b": "2"})
        new = changed(
            before,
            createTime=5,
            id=999,
            owner="n",
            ownerType=ttypes.PrincipalType.ROLE,
            retention=7,
            lastAccessTime=8,
            viewOriginalText="x",
            viewExpandedText="y",
            parameters={"b": "3", "c": "ä", "transient_lastDdlTime": "9"},
        )
        new.sd.numBuckets, new.sd.bucketCols, new.sd.sortCols = 2, ["v"], [ttypes.Order("id", 1)]
        new.sd.inputFormat, new.sd.compressed = "in", True
        new.sd.parameters = {"p": "q"}
        new.sd.serdeInfo = ttypes.SerDeInfo(name="s", serializationLib="lib", parameters={"x": "y"})
        new.sd.skewedInfo = ttypes.SkewedInfo(["v"], [["1"], ["2"]], {("1",): "file:/s"})
        catalog.alter("t", new, environment_context=environment(DO_NOT_UPDATE_STATS="true"))
        after = catalog.get()
        assert after == changed(new, createTime=before.createTime, id=before.id)
        event = catalog.last_event()
        assert (event.before(), event.after()) == (as_received(before), as_received(after))
        assert (event.is_truncate, event.write_id) == (False, -1)
        # And back again.
        catalog.alter("t", before, environment_context=environment(DO_NOT_UPDATE_STATS="true"))
        assert catalog.get() == before
        assert catalog.counts()["SKEWED_STRING_LIST"] == 0

    def test_external_parameter_changes_the_type(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table()
        catalog.alter("t", changed(found, parameters={"EXTERNAL": "TRUE"}))
        assert catalog.get().tableType == "EXTERNAL_TABLE"

    @pytest.mark.parametrize("location", [None, ""])
    def test_no_location_sent_is_no_change_of_it(self, catalog: StoreUnderTest, location: str | None) -> None:
        """Whatever the kind of the table, with or without keys, renamed or not.

        For a table without keys whose files are to be counted, it is refused (`test_new_tables_without_a_part`).
        """
        kinds = {
            "managed": table,
            "external": external,
            "iceberg": lambda name, **fields: external(name, parameters={"table_type": "ICEBERG"}, **fields),
        }
        for kind, make in kinds.items():
            for keys in ([], [("dt", "string")]):
                name = f"{kind}{len(keys)}"
                catalog.store.writes.tables.create_table(make(name, keys=keys))
                before = catalog.get(name)
                new = changed(before, parameters={**before.parameters, "k": "v"})
                new.sd.location = location
                catalog.alter(name, new, environment(DO_NOT_UPDATE_STATS="true"))
                after = catalog.get(name)
                assert (after.sd.location, after.parameters["k"]) == (before.sd.location, "v")
                assert catalog.last_event().after().sd.location == before.sd.location
                catalog.alter(name, changed(new, tableName=f"{name}_2"))
                moved = f"{before.sd.location}_2" if kind == "managed" else before.sd.location
                assert catalog.get(f"{name}_2").sd.location == moved
                assert catalog.path(moved).is_dir()

    @pytest.mark.parametrize("kind", [None, ""])
    def test_a_table_with_an_empty_text_is_no_view(self, catalog: StoreUnderTest, kind: str | None) -> None:
        """Thrift clients in Go write all fields that are not optional: unset ones are empty."""
        empty = {"tableType": kind, "viewOriginalText": "", "viewExpandedText": ""}
        catalog.store.writes.tables.create_table(table("managed", **empty))
        catalog.store.writes.tables.create_table(table("external", parameters={"EXTERNAL": "TRUE"}, **empty))
        catalog.store.writes.tables.create_table(table("view", **{**empty, "viewOriginalText": "select 1"}))
        kinds = {"managed": "MANAGED_TABLE", "external": "EXTERNAL_TABLE", "view": "VIRTUAL_VIEW"}
        assert {name: catalog.get(name).tableType for name in kinds} == kinds
        for name in ("managed", "external"):
            catalog.alter(name, changed(catalog.get(name), **empty))
        assert {name: catalog.get(name).tableType for name in kinds} == kinds

    def test_ddl_time_is_set_when_absent(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table(parameters={"transient_lastDdlTime": "1"})
        catalog.alter(
            "t",
            changed(found, parameters={"k": "v"}),
            environment_context=environment_options(ttypes.EnvironmentContext()),
        )
        assert catalog.get().parameters["transient_lastDdlTime"] == "1700000000"

    def test_unpartitioned_tables_are_measured_again(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table(parameters={"COLUMN_STATS_ACCURATE": ACCURATE})
        (catalog.path(found.sd.location) / "f").write_bytes(b"123")
        catalog.alter("t", found, environment_context=environment(DO_NOT_UPDATE_STATS="true"))
        assert catalog.get().parameters == found.parameters
        catalog.alter("t", found)
        parameters = catalog.get().parameters
        assert (parameters["numFiles"], parameters["totalSize"]) == ("1", "3")
        assert "COLUMN_STATS_ACCURATE" not in parameters
        catalog.alter("t", found, environment_context=environment(STATS_GENERATED="TASK"))
        assert catalog.get().parameters["COLUMN_STATS_ACCURATE"] == ACCURATE

    @pytest.mark.parametrize("is_partition", [False, True])
    @pytest.mark.parametrize(("rows", "more", "is_believed"), [("7", "", False), ("5", "", True), ("7", "4", True)])
    def test_rows_that_the_statistics_job_has_counted_already_are_not_exact_twice(
        self, catalog: StoreUnderTest, is_partition: bool, rows: str, more: str, is_believed: bool
    ) -> None:
        """The job had counted the files of an INSERT that had not reported its rows yet. The INSERT adds its rows to
        the number that it reads, and reports the files that it finds, including `more` that are written meanwhile."""
        note = "1:3:17:d:5:reading:0"
        exact = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
        figures = {"numFiles": "1", "totalSize": "3", "numFilesErasureCoded": "0"}
        counted = {**exact, **figures, "numRows": "5", COUNTED_FILES: note}
        made = catalog.create_table(keys=[("p", "string")] if is_partition else [])
        if is_partition:
            catalog.add_partitions("t", ("1",), parameters=counted)
            [made] = catalog.partitions("t")
        place = catalog.path(made.sd.location)
        place.mkdir(exist_ok=True)
        (place / "f").write_bytes(b"123")
        if not is_partition:
            made.parameters = counted
            catalog.alter("t", made, environment_context=environment(DO_NOT_UPDATE_STATS="true"))
        if more:
            (place / "g").write_text(more)
            figures = {"numFiles": "2", "totalSize": "4", "numFilesErasureCoded": "0"}
        made.parameters = {**counted, **figures, "numRows": rows}
        task = environment(STATS_GENERATED="TASK")
        if is_partition:
            catalog.store.writes.partitions.alter_partitions(
                TableName(CATALOG, DATABASE, "t"), [made], writer=Writer(options=task)
            )
            [found] = catalog.partitions("t")
        else:
            catalog.alter("t", made, environment_context=task)
            found = catalog.get()
        assert found.parameters["numRows"] == rows
        assert ("COLUMN_STATS_ACCURATE" in found.parameters) == is_believed
        assert found.parameters.get(COUNTED_FILES) == (note if is_believed else None)

    @pytest.mark.parametrize(("rows", "is_believed"), [("7", False), ("5", True)])
    def test_rows_added_to_the_count_of_the_statistics_job_are_not_exact_where_no_files_are_listed(
        self, catalog: StoreUnderTest, rows: str, is_believed: bool
    ) -> None:
        """So does an INSERT of Trino, which keeps the claim that it finds, and forbids counting the files."""
        keep = environment(DO_NOT_UPDATE_STATS="true")
        made = catalog.create_table()
        exact = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
        made.parameters = {**exact, "numRows": "5", "numFiles": "1", "totalSize": "3"}
        made.parameters[COUNTED_FILES] = "1:3:17:d:5:reading:0"
        catalog.alter("t", made, environment_context=keep)
        assert catalog.get().parameters.items() >= made.parameters.items(), "the job itself is believed"
        made.parameters |= {"numRows": rows, "numFiles": "2", "totalSize": "4"}
        catalog.alter("t", made, environment_context=keep)
        found = catalog.get().parameters
        assert (found["numRows"], "COLUMN_STATS_ACCURATE" in found, COUNTED_FILES in found) == (
            rows,
            is_believed,
            is_believed,
        )

    @pytest.mark.parametrize(
        ("keys", "context", "stays"),
        [
            ([], {"DO_NOT_UPDATE_STATS": "true"}, True),
            ([], {"DO_NOT_UPDATE_STATS": "false"}, False),
            ([], {}, False),
            ([("dt", "string")], {}, True),
        ],
        ids=["forbidden twice", "forbidden by the table", "no context", "partitioned"],
    )
    def test_the_word_not_to_measure_stays_where_hive_would_not_look(
        self, catalog: StoreUnderTest, keys: list[tuple[str, str]], context: dict[str, str], stays: bool
    ) -> None:
        """Iceberg's commits send it in the table and in the context, and read it again."""
        found = catalog.create_table(keys=keys)
        (catalog.path(found.sd.location) / "f").write_bytes(b"123")
        sent = changed(found, parameters={**found.parameters, "DO_NOT_UPDATE_STATS": "true"})
        catalog.alter("t", sent, environment_context=environment(**context))
        parameters = catalog.get().parameters
        assert parameters.get("DO_NOT_UPDATE_STATS") == ("true" if stays else None)
        assert "numFiles" not in parameters

    def test_spark_statistics_survive(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table(keys=[("dt", "string")])
        new = changed(found, parameters={**found.parameters, "spark.sql.statistics.totalSize": "5"})
        catalog.alter("t", new, environment_context=environment_options(ttypes.EnvironmentContext()))
        assert catalog.get().parameters == new.parameters


class TestRefused:
    @pytest.mark.parametrize(
        ("fields", "text"),
        [
            ({"tableName": "ä"}, "ä is not a valid object name"),
            ({"tableName": ""}, " is not a valid object name"),
            ({"tableName": " "}, " is not a valid object name"),
            ({"tableName": "other"}, "new table d.other already exists"),
            ({"dbName": "nope"}, "Object database hive.nope does not exist"),
            ({"catName": "c"}, "Tables cannot be moved between catalogs, old cataloghive, new catalog c"),
            ({"partitionKeys": columns(("x", "int"))}, "partition keys can not be changed."),
            ({"partitionKeys": []}, "partition keys can not be changed."),
        ],
    )
    def test_new_tables(self, catalog: StoreUnderTest, fields: dict[str, Any], text: str) -> None:
        found = catalog.create_table(keys=[("dt", "string")])
        catalog.create_table("other")
        before = catalog.counts(), catalog.events(), catalog.files()
        with pytest.raises(ttypes.InvalidOperationException) as raised:
            catalog.alter("t", changed(found, **fields))
        assert text in raised.value.message
        assert (catalog.counts(), catalog.events(), catalog.files()) == before

    @pytest.mark.parametrize("missing", ["sd", "dbName", "tableName", "cols", "location", "serdeInfo", "type"])
    def test_new_tables_without_a_part(self, catalog: StoreUnderTest, missing: str) -> None:
        new = as_received(catalog.create_table())
        holders = {"cols": new.sd, "location": new.sd, "serdeInfo": new.sd, "type": new.sd.cols[0]}
        setattr(holders.get(missing, new), missing, None)
        before = catalog.events()
        with pytest.raises(ttypes.MetaException, match=r"The new table .*has (no|a column without)"):
            catalog.alter("t", new)
        assert catalog.events() == before

    @pytest.mark.parametrize(
        ("cols", "text"),
        [
            ([("id", "int"), ("v", "string")], "in their respective positions :\nid"),
            ([("v", "string"), ("id", "bigint")], "in their respective positions :\nid"),
            ([("id", "array<int>"), ("v", "struct<a:int>")], "in their respective positions :\nid,v"),
            ([("id", "what")], "Invalid column type: what"),
        ],
    )
    def test_columns(self, catalog: StoreUnderTest, cols: list[tuple[str, str]], text: str) -> None:
        found = catalog.create_table()
        found.sd.cols = columns(*cols)
        with pytest.raises(ttypes.InvalidOperationException) as raised:
            catalog.alter("t", found)
        assert text in raised.value.message

    def test_bucket_columns(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table()
        found.sd.bucketCols = ["nope"]
        with pytest.raises(ttypes.InvalidOperationException, match=r"Bucket columns - \[nope\] doesn't match"):
            catalog.alter("t", found)

    def test_missing_table(self, catalog: StoreUnderTest) -> None:
        with pytest.raises(ttypes.InvalidOperationException, match=r"hive\.d\.nope table not found"):
            catalog.alter("nope", table("nope"))


class TestTypeChangesAllowed:
    @pytest.fixture
    def store_settings(self) -> Settings:
        return Settings(catalog=CatalogSettings(disallow_incompatible_column_type_changes=False))

    def test_setting(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table()
        found.sd.cols = columns(("id", "int"))
        catalog.alter("t", found)
        assert catalog.get().sd.cols == columns(("id", "int"))


class TestExpectedParameter:
    """Lock-free commits of Iceberg (HIVE-26882)."""

    KEY = "metadata_location"

    def context(self, value: str) -> EnvironmentOptions:
        return environment(DO_NOT_UPDATE_STATS="true", expected_parameter_key=self.KEY, expected_parameter_value=value)

    def test_holds(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table(parameters={self.KEY: "one"})
        new = changed(found, parameters={**found.parameters, self.KEY: "two"})
        catalog.alter("t", new, environment_context=self.context("one"))
        assert catalog.get().parameters[self.KEY] == "two"

    def test_does_not_hold(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table(parameters={self.KEY: "one"})
        before = catalog.events()
        with pytest.raises(ttypes.MetaException) as raised:
            catalog.alter("t", found, environment_context=self.context("zero"))
        text = "The table has been modified. The parameter value for key 'metadata_location' is 'one'. "
        assert raised.value.message == text + "The expected was value was 'zero'"
        assert catalog.events() == before

    def test_as_an_argument_and_absent_values(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table()
        new = changed(found, parameters={**found.parameters, self.KEY: "one"})
        catalog.alter("t", new, expected_parameter=ExpectedParameter(self.KEY, None))
        with pytest.raises(ttypes.MetaException, match="The parameter value for key 'metadata_location' is 'one'"):
            catalog.alter("t", new, expected_parameter=ExpectedParameter(self.KEY, None))
        with pytest.raises(ttypes.MetaException, match="New value for expected key other is not set"):
            catalog.alter("t", new, expected_parameter=ExpectedParameter("other", "x"))
        new.parameters["other"] = "y"
        with pytest.raises(ttypes.MetaException, match="The parameter value for key 'other' is 'null'"):
            catalog.alter("t", new, expected_parameter=ExpectedParameter("other", "x"))

    def test_key_without_value_is_no_expectation(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table()
        catalog.alter("t", found, environment_context=environment(expected_parameter_key=self.KEY))


class TestRename:
    def test_moves_the_directory_of_a_managed_table(self, catalog: StoreUnderTest) -> None:
        before = catalog.create_table(keys=[("dt", "string")])
        outside = f"file:{catalog.directory}/outside"
        catalog.add_partitions("t", ("1",), ("2",))
        catalog.add_partitions("t", ("3",), location=outside)
        (catalog.path(before.sd.location) / "dt=1" / "f").write_bytes(b"1")
        catalog.alter("t", changed(before, tableName="New"))
        after = catalog.get("new")
        root = f"file:{catalog.directory}/d.db/new"
        assert (after.id, after.sd.location) == (before.id, root)
        locations = [partition.sd.location for partition in catalog.partitions("new")]
        assert locations == [f"{root}/dt=1", f"{root}/dt=2", outside]
        assert {partition.tableName for partition in catalog.partitions("new")} == {"new"}
        assert (catalog.path(root) / "dt=1" / "f").read_bytes() == b"1"
        assert not catalog.path(before.sd.location).exists()
        assert catalog.events()[-1] == ("ALTER_TABLE", "d", "new")
        event = catalog.last_event()
        assert (event.before().tableName, event.after().tableName) == ("t", "new")
        with pytest.raises(ttypes.NoSuchObjectException):
            catalog.get("t")

    def test_partitions_in_similar_directories_stay(self, catalog: StoreUnderTest) -> None:
        """Case matters, and no character matches others."""
        before = catalog.create_table("t_1", keys=[("dt", "string")])
        root = str(before.sd.location)
        similar = [f"{root.removesuffix('t_1')}{name}/p" for name in ("T_1", "tx1", "t_11", "t_1.x")]
        for number, location in enumerate(similar):
            catalog.add_partitions("t_1", (str(number),), location=location)
        catalog.add_partitions("t_1", ("inside",), location=f"{root}/P")
        catalog.alter("t_1", changed(before, tableName="new"))
        moved = f"{root.removesuffix('t_1')}new/P"
        assert [partition.sd.location for partition in catalog.partitions("new")] == [*similar, moved]

    @pytest.mark.parametrize("database", ["d", "e"])
    def test_partitions_at_the_directory_of_the_table_follow(self, catalog: StoreUnderTest, database: str) -> None:
        """Whatever its spelling: their files move with it."""
        catalog.create_database("e")
        before = catalog.create_table(keys=[("dt", "string")])
        root = str(before.sd.location)
        with_authority = root.replace("file:/", "file:///")
        for number, location in enumerate((root, f"{root}/", with_authority, f"{root}/x", f"{with_authority}/x")):
            catalog.add_partitions("t", (str(number),), location=location)
            set_location(catalog, str(number), location)  # as another metastore may have stored it
        catalog.alter("t", changed(before, tableName="u", dbName=database))
        moved = catalog.get("u", database).sd.location
        query = PartitionQuery(TableName(CATALOG, database, "u"))
        found = [each.sd.location for each in catalog.store.reads.partitions.get_partitions(query).partitions]
        assert [location.rstrip("/") for location in found] == [moved, moved, moved, f"{moved}/x", f"{moved}/x"]

    @pytest.mark.parametrize(
        ("root", "others", "elsewhere"),
        [
            ("s3a://b/t", ("s3://b/t", "s3n://b/t"), "s3://c/t"),
            ("s3://b/t", ("s3a://b/t",), "gs://b/t"),
            ("abfss://c@a.dfs.core.windows.net/t", ("wasb://c@a.blob.core.windows.net/t",), "abfss://c@x.dfs.net/t"),
        ],
    )
    def test_partitions_under_another_scheme_of_the_store_follow(
        self, catalog: StoreUnderTest, root: str, others: tuple[str, ...], elsewhere: str
    ) -> None:
        """They name the objects that are moved, and still name them afterwards."""
        before = catalog.create_table(location=root, keys=[("dt", "string")])
        places = [f"{root}/1", *(f"{other}/2" for other in others), *others]
        stays = [f"{elsewhere}/3", f"{others[0]}2/4"]
        for number, location in enumerate((*places, *stays)):
            catalog.add_partitions("t", (str(number),), location=location)
        goal = changed(before)
        goal.sd.location = root.replace("/t", "/new")
        catalog.alter("t", goal, environment(REPL_DATA_LOCATION_CHANGED="true"))
        found = [partition.sd.location for partition in catalog.partitions("t")]
        assert found == [*(place.replace("/t", "/new") for place in places), *stays]

    def test_into_another_database(self, catalog: StoreUnderTest) -> None:
        catalog.create_database("e")
        found = catalog.create_table()
        catalog.alter("t", changed(found, dbName="E"))
        assert catalog.get("t", "e").sd.location == f"file:{catalog.directory}/e.db/t"
        assert catalog.files() == ["d.db", "e.db", "e.db/t"]

    def test_leaves_data_that_is_not_at_its_default_place(self, catalog: StoreUnderTest) -> None:
        place = f"file:{catalog.directory}/place"
        managed = catalog.create_table("m", location=place)
        catalog.store.writes.tables.create_table(external("e"))
        view = catalog.create_table("v", tableType="VIRTUAL_VIEW")
        theirs = catalog.get("e")
        for found in (managed, theirs, view):
            name = found.tableName
            catalog.alter(name, changed(found, tableName=f"{name}2"))
            assert catalog.get(f"{name}2").sd.location == found.sd.location
        assert catalog.files() == ["d.db", "d.db/e", "place"]

    def test_a_new_location_is_taken_without_a_move(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table()
        found.sd.location = f"file:{catalog.directory}/elsewhere"
        catalog.alter("t", changed(found, tableName="u"))
        assert catalog.get("u").sd.location == f"file:{catalog.directory}/elsewhere"
        assert catalog.files() == ["d.db", "d.db/t"]

    @pytest.mark.parametrize("make", [table, external])
    @pytest.mark.parametrize("is_renamed", [True, False])
    def test_a_new_location_takes_the_claims_of_statistics_with_it(
        self, catalog: StoreUnderTest, make: Any, is_renamed: bool
    ) -> None:
        """The table has other files from then on, whatever else an alter changes."""
        catalog.store.writes.tables.create_table(make())
        found = catalog.get()
        found.parameters |= {"numRows": "5", "numFiles": "7", "totalSize": "9", "COLUMN_STATS_ACCURATE": ACCURATE}
        catalog.alter("t", found, environment(DO_NOT_UPDATE_STATS="true"))
        place = catalog.directory / "place"
        place.mkdir()
        (place / "f").write_bytes(b"123")
        found.sd.location = f"file:{place}"
        catalog.alter("t", changed(found, tableName="u" if is_renamed else "t"))
        after = catalog.get("u" if is_renamed else "t").parameters
        assert (after["numFiles"], after["totalSize"], after.get("COLUMN_STATS_ACCURATE")) == ("1", "3", None)

    def test_an_occupied_place_refuses(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table()
        (catalog.directory / "d.db" / "u").mkdir()
        with pytest.raises(
            ttypes.InvalidOperationException, match=r"New location for this table hive\.d\.u already exists"
        ):
            catalog.alter("t", changed(found, tableName="u"))
        assert catalog.get() == found

    def test_a_missing_directory_does_not(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table()
        catalog.path(found.sd.location).rmdir()
        catalog.alter("t", changed(found, tableName="u"))
        assert catalog.get("u").sd.location == f"file:{catalog.directory}/d.db/u"

    def test_statistics_and_constraints_follow(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table(keys=[("dt", "string")])
        catalog.add_partitions("t", ("1",))
        write_statistics(catalog)
        key = ttypes.SQLPrimaryKey("d", "t", "id", 1, "pk", True, False, False, "hive")
        catalog.store.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(primaryKeys=[key]))
        catalog.create_database("e")
        catalog.alter("t", changed(found, tableName="u", dbName="e"))
        assert statistics_names(catalog) == [("e", "u", "id"), ("e", "u", "v")]
        [moved] = catalog.store.reads.constraints.get_table_constraints(TableName(CATALOG, "e", "u")).primaryKeys
        assert (moved.table_db, moved.table_name, moved.pk_name) == ("e", "u", "pk")

    def test_transaction_tables_follow(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table(parameters={"transactional": "true"})
        values = {"NWI_DATABASE": "d", "NWI_TABLE": "t", "NWI_NEXT": 5}
        run_write(catalog.database, lambda transaction: transaction.connection.execute(insert(NEXT_WRITE_ID), values))
        catalog.alter("t", changed(found, tableName="u"))
        assert [tuple(row) for row in catalog.rows(NEXT_WRITE_ID.c.NWI_TABLE, NEXT_WRITE_ID.c.NWI_NEXT)] == [("u", 5)]
        catalog.drop("u")
        assert catalog.rows(NEXT_WRITE_ID.c.NWI_TABLE) == []

    def test_two_names_that_differ_in_case_are_one(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table()
        catalog.alter("t", changed(found, tableName="T"))
        assert catalog.get().sd.location == found.sd.location


class TestColumns:
    def add_column(self, found: ttypes.Table) -> ttypes.Table:
        return self.with_columns(found, *[(c.name, c.type) for c in found.sd.cols], ("extra", "double"))

    def with_columns(self, found: ttypes.Table, *pairs: tuple[str, str]) -> ttypes.Table:
        new = copy.deepcopy(found)
        new.sd.cols = columns(*pairs)
        return new

    def test_added_without_cascade(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table(keys=[("dt", "string")])
        catalog.add_partitions("t", ("1",))
        write_statistics(catalog)
        catalog.alter("t", self.add_column(found))
        assert [column.name for column in catalog.get().sd.cols] == ["id", "v", "extra"]
        [partition] = catalog.partitions("t")
        assert partition.sd.cols == found.sd.cols
        assert statistics_names(catalog) == [("d", "t", "id"), ("d", "t", "v")]

    def test_added_with_cascade(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table(keys=[("dt", "string")])
        catalog.add_partitions("t", ("1",), ("2",))
        catalog.alter("t", self.add_column(found), environment(CASCADE="true"))
        for partition in catalog.partitions("t"):
            assert [column.name for column in partition.sd.cols] == ["id", "v", "extra"]
        assert catalog.counts()["CDS"] == 1, "one column descriptor for all, none left over"

    def test_unpartitioned_tables_leave_no_old_columns(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table()
        for _ in range(3):
            found = self.add_column(found) if len(found.sd.cols) == 2 else self.with_columns(found, ("id", "bigint"))
            catalog.alter("t", found)
            assert catalog.counts()["CDS"] == 1
        assert len(catalog.rows(COLUMNS_V2.c.CD_ID)) == len(found.sd.cols)

    def test_removed_columns_lose_their_statistics(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table(parameters={"COLUMN_STATS_ACCURATE": ACCURATE})
        write_statistics(catalog)
        new = self.with_columns(found, ("id", "bigint"))
        catalog.alter("t", new, environment_context=environment(DO_NOT_UPDATE_STATS="true"))
        assert statistics_names(catalog) == [("d", "t", "id")]
        expected = '{"BASIC_STATS":"true","COLUMN_STATS":{"id":"true"}}'
        assert catalog.get().parameters["COLUMN_STATS_ACCURATE"] == expected

    def test_changed_types_lose_their_statistics(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table()
        write_statistics(catalog)
        catalog.alter("t", self.with_columns(found, ("id", "decimal(10,2)"), ("v", "string")))
        assert statistics_names(catalog) == [("d", "t", "v")]

    @pytest.mark.parametrize("name", ["t", "u"])
    @pytest.mark.parametrize("cascade", [False, True])
    def test_partitions_lose_statistics_of_removed_columns(
        self, catalog: StoreUnderTest, cascade: bool, name: str
    ) -> None:
        """With a new name in the same alter, too."""
        found = catalog.create_table(keys=[("dt", "string")])
        catalog.add_partitions("t", ("1",), ("2",))
        write_statistics(catalog)
        partitions = catalog.partitions("t")
        partitions[0].parameters["COLUMN_STATS_ACCURATE"] = ACCURATE
        unchanged = environment(DO_NOT_UPDATE_STATS="true")
        catalog.store.writes.partitions.alter_partitions(
            TableName(CATALOG, "d", "t"), partitions, writer=Writer(options=unchanged)
        )
        new = changed(self.with_columns(found, ("id", "bigint")), tableName=name)
        catalog.alter("t", new, EnvironmentOptions(cascades=cascade))
        assert statistics_names(catalog) == [("d", name, "id")]
        after = catalog.partitions(name)
        expected = '{"BASIC_STATS":"true","COLUMN_STATS":{"id":"true"}}'
        assert after[0].parameters["COLUMN_STATS_ACCURATE"] == expected
        assert [len(partition.sd.cols) for partition in after] == ([1, 1] if cascade else [2, 2])

    def test_constraints_keep_to_their_columns(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table(cols=columns(("a", "int"), ("b", "int"), ("c", "int")))

        def not_null(column: str) -> ttypes.SQLNotNullConstraint:
            return ttypes.SQLNotNullConstraint("hive", "d", "t", column, f"nn_{column}", True, True, True)

        wanted = [not_null(column) for column in ("a", "b", "c")]
        catalog.store.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(notNullConstraints=wanted))
        catalog.alter("t", self.with_columns(found, ("c", "int"), ("new", "int"), ("a", "int")))
        kept = catalog.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", "t")).notNullConstraints
        assert kept == [wanted[0], wanted[2]]

    def test_comments_and_key_types_may_change(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table(keys=[("dt", "string"), ("hr", "int")])
        new = copy.deepcopy(found)
        new.sd.cols[0].comment = "about"
        new.partitionKeys[1] = ttypes.FieldSchema("HR", "bigint", "hour")
        catalog.alter("t", new)
        after = catalog.get()
        assert after.sd.cols[0].comment == "about"
        assert after.partitionKeys[1] == ttypes.FieldSchema("hr", "bigint", "hour")

    def test_views_take_any_columns(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table(tableType="VIRTUAL_VIEW")
        catalog.alter("t", self.with_columns(found, ("x", "array<int>")))
        assert catalog.get().sd.cols == columns(("x", "array<int>"))


class TestWriteIds:
    """Transactional tables: the write id is that of the statistics."""

    LIST = "d.t:9:9223372036854775807::"

    def create(self, catalog: StoreUnderTest) -> ttypes.Table:
        parameters = {"transactional": "true", "COLUMN_STATS_ACCURATE": ACCURATE}
        return catalog.create_table(writeId=5, parameters=parameters)

    def test_moves_with_a_list(self, catalog: StoreUnderTest) -> None:
        found = self.create(catalog)
        options = {"environment_context": environment(DO_NOT_UPDATE_STATS="true")}
        catalog.alter("t", found, write_id=8, valid_write_ids=self.LIST, **options)
        assert (catalog.get().writeId, catalog.last_event().write_id) == (8, 8)
        assert catalog.get().parameters["COLUMN_STATS_ACCURATE"] == ACCURATE

    def test_stays_without_a_list(self, catalog: StoreUnderTest) -> None:
        found = self.create(catalog)
        catalog.alter("t", found, write_id=8, environment_context=environment(DO_NOT_UPDATE_STATS="true"))
        assert catalog.get().writeId == 5

    def test_concurrent_statistics_are_not_accurate(self, catalog: StoreUnderTest) -> None:
        found = self.create(catalog)
        unchanged = environment(DO_NOT_UPDATE_STATS="true")
        catalog.alter("t", found, write_id=8, valid_write_ids="d.t:9:5:5:", environment_context=unchanged)
        assert "COLUMN_STATS_ACCURATE" not in catalog.get().parameters

    def test_accuracy_cannot_be_claimed_outside_a_transaction(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table(writeId=5, parameters={"transactional": "true"})
        new = changed(found, parameters={**found.parameters, "COLUMN_STATS_ACCURATE": ACCURATE})
        with pytest.raises(
            ttypes.MetaException, match=r"Cannot change stats state for a transactional table d\.t without"
        ):
            catalog.alter("t", new, environment_context=environment(DO_NOT_UPDATE_STATS="true"))

    def test_conversion_takes_back_claims(self, catalog: StoreUnderTest) -> None:
        found = catalog.create_table(parameters={"COLUMN_STATS_ACCURATE": ACCURATE})
        new = table(parameters={"transactional": "true"}, location=found.sd.location)
        catalog.alter("t", new, environment_context=environment(DO_NOT_UPDATE_STATS="true"))
        after = catalog.get().parameters
        assert "COLUMN_STATS_ACCURATE" not in after
        assert (after["transactional"], after["transactional_properties"]) == ("true", "default")
        rows = catalog.rows(NEXT_WRITE_ID.c.NWI_TABLE, NEXT_WRITE_ID.c.NWI_NEXT)
        assert [tuple(row) for row in rows] == [("t", 10_000_001)]


@pytest.mark.parametrize("store_kind", ["object"])
def test_statement_counts(catalog: StoreUnderTest) -> None:
    counted = []
    for name, number in (("few", 1), ("many", 40)):
        found = catalog.create_table(name, keys=[("dt", "string")])
        catalog.add_partitions(name, *[(str(value),) for value in range(number)])
        for new in (changed(found, parameters={"k": "v"}), changed(found, tableName=f"{name}2")):
            with catalog.counting() as count:
                catalog.alter(name, new)
            counted.append(count[0])
    for few, many in zip(counted[:2], counted[2:], strict=True):
        assert many == few, "the number of partitions does not matter"
    assert max(counted) <= 24


def test_partition_descriptors_stay_their_own(catalog: StoreUnderTest) -> None:
    found = catalog.create_table(keys=[("dt", "string")])
    catalog.add_partitions("t", ("1",))
    new = copy.deepcopy(found)
    new.sd.inputFormat = "other"
    catalog.alter("t", new)
    [partition] = catalog.partitions("t")
    assert partition.sd.inputFormat == found.sd.inputFormat
    assert len(catalog.rows(SDS.c.SD_ID)) == 2
