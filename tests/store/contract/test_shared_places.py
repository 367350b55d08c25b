"""How much is read to determine whether others use a directory, and which tables are found by names alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from sqlalchemy import Connection, event, text

from hms_cache.config.sections import WarehouseSettings
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.environment import environment_options
from hms_cache.store.contract.partitions import AllPartitions, ByNames, ByValues
from hms_cache.store.schema import COMPACTION_QUEUE, DBS, SDS
from hms_cache.store.shared_locations import locations_in_use, own_locations
from hms_cache.store.transactions.queued_drops import from_counted_map, to_counted_map
from hms_cache.store.waiting_deletions import WaitingDeletion, _worth_reading
from hms_cache.store.warehouse import Location
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import CATALOG, DATABASE, StoreUnderTest, table

TABLES = 12
PARTITIONS = 1_500


@pytest.fixture(params=["object"])
def store_kind(request: pytest.FixtureRequest) -> str:
    """The cache does not affect files."""
    kind: str = request.param
    return kind


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.soak]),
        pytest.param("postgresql", marks=[pytest.mark.postgresql, pytest.mark.soak]),
    ]
)
def database_kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
def max_tables(request: pytest.FixtureRequest) -> int:
    return int(getattr(request, "param", 200_000))


@pytest.fixture
def max_partitions(request: pytest.FixtureRequest) -> int:
    return int(getattr(request, "param", 20_000))


@pytest.fixture
def warehouse_settings(tmp_path: Path, max_tables: int, max_partitions: int) -> WarehouseSettings:
    return WarehouseSettings(
        directory=f"file:{tmp_path}/warehouse",
        shared_location_max_tables=max_tables,
        shared_location_max_partitions=max_partitions,
    )


@contextmanager
def rows_read(connection: Connection, counted: list[int]) -> Iterator[None]:
    """The number of rows that the database says it has read; on SQLite, by its plans, -1 for a whole table SDS."""
    kind = connection.dialect.name

    def count() -> int:
        if kind == "postgresql":
            query = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables"
            return int(connection.execute(text(query)).scalar_one())
        rows = connection.execute(text("SHOW SESSION STATUS LIKE 'Handler_read%'")).all()
        return sum(int(value) for _, value in rows)

    statements: list[tuple[str, Any]] = []

    def executed(_connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        statements.append((statement, parameters))

    before = 0 if kind == "sqlite" else count()
    event.listen(connection, "before_cursor_execute", executed)
    try:
        yield
    finally:
        event.remove(connection, "before_cursor_execute", executed)
    if kind != "sqlite":
        counted.append(count() - before)
        return
    plans = [
        row.detail
        for statement, parameters in statements
        for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
    ]
    assert any("SDS" in plan for plan in plans)
    counted.append(-1 if any(plan.startswith("SCAN SDS") or 'SCAN "SDS' in plan for plan in plans) else TABLES)


def test_partitions_are_not_read(catalog: StoreUnderTest) -> None:
    t = catalog
    for number in range(TABLES):
        t.create_table(f"t{number}", keys=[("k", "string")])
    t.add_partitions("t0", *((str(number),) for number in range(PARTITIONS)))
    warehouse = t.context.warehouse
    if t.database.write_engine.dialect.name == "postgresql":
        with t.database.writing() as connection:
            connection.execute(text('ANALYZE "SDS"'))
            connection.commit()
    wanted = {
        warehouse.location("/elsewhere/x"): False,
        warehouse.location(f"{t.directory}/d.db/t3"): True,
        warehouse.location(f"{t.directory}/d.db/t3/deep"): True,
        warehouse.location(f"{t.directory}/d.db"): True,
    }
    counted: list[int] = []
    with t.database.loading() as connection, rows_read(connection, counted):
        found = locations_in_use(t.context, connection, wanted)
    assert found == {place for place, is_used in wanted.items() if is_used}
    assert 0 <= counted[0] < PARTITIONS / 5


@pytest.mark.parametrize(
    ("stored", "place"),
    [
        ("file:/srv/t", "file:/"),
        ("file:///srv/t", "file:/"),
        ("hdfs://namenode/", "hdfs://namenode/a"),
        ("hdfs://namenode/a", "hdfs://namenode/"),
        ("hdfs://namenode/a", "hdfs://NameNode/a/b"),
        ("hdfs://namenode/a/t", "hdfs://NameNode:8020/a"),
        ("hdfs://namenode:8020/a/t", "hdfs://namenode/a"),
        ("s3://bucket/a/t", "s3a://bucket/a"),
        ("s3n://bucket/a", "s3a://bucket/a/t"),
        ("s3a://bucket/a_b%c/t", "s3://bucket/a_b%c"),
        ("s3a://bucket", "s3://bucket/a"),
        ("s3a://bucket/a", "s3://bucket/"),
        ("s3n://key:a%2Fb@bucket/a/t", "s3a://bucket/a"),
        ("s3n://key:secret@bucket/a", "s3a://bucket/a"),
        ("s3a://bucket/a/t", "s3n://key:secret@bucket/a"),
        ("abfss://c@acct.dfs.core.windows.net/a/t", "wasbs://c@acct.blob.core.windows.net/a"),
        ("wasb://c@acct.blob.core.windows.net/a", "abfs://c@acct.dfs.core.windows.net/a"),
        ("gcs://bucket/a", "gs://bucket/a/b"),
    ],
)
def test_a_table_is_found_by_any_spelling(catalog: StoreUnderTest, stored: str, place: str) -> None:
    """Another metastore may have written it; it is compared with a root, or with another scheme of its store."""
    catalog.create_table("t")
    with catalog.database.writing() as connection:
        connection.execute(SDS.update().values(LOCATION=stored))
        connection.commit()
    wanted = [Location.parse(place), Location.parse("file:/elsewhere"), Location.parse("s3a://bucket2/a")]
    with catalog.database.loading() as connection:
        assert locations_in_use(catalog.context, connection, wanted) == {wanted[0]}


@pytest.mark.parametrize(
    ("other", "is_own"), [("s3a://bucket/other", True), ("s3a://bucket/same", False), ("s3://bucket/same", False)]
)
def test_databases_at_one_place_by_any_spelling(catalog: StoreUnderTest, other: str, is_own: bool) -> None:
    """By their names, a table of each is at the same directory."""
    for name, place in (("x", "s3a://bucket/same"), ("y", other)):
        catalog.create_database(name)
        catalog.store.writes.tables.create_table(table("t", dbName=name))
        with catalog.database.writing() as connection:
            connection.execute(
                DBS.update().where(DBS.c.NAME == name).values(DB_LOCATION_URI=place, DB_MANAGED_LOCATION_URI=place)
            )
            connection.commit()
    place = Location.parse("s3a://bucket/same/t")
    with catalog.database.loading() as connection:
        own = own_locations(catalog.context, connection, [(table("t", dbName="x"), place)])
    assert own == ({place} if is_own else set())


@pytest.mark.parametrize("kind", ["partition", "table"])
def test_a_table_at_the_root_deletes_nothing_of_others(catalog: StoreUnderTest, kind: str) -> None:
    """All tables are below it: a directory of its partitions is also theirs."""
    t = catalog
    t.create_table("victim")
    data = t.directory / "d.db" / "victim" / "data"
    data.write_text("1")
    t.create_table("top", keys=[("k", "string")], location=f"file:{t.directory}/top")
    top = t.get("top")
    top.sd.location = "file:/"
    t.store.writes.tables.alter_table(TableName(CATALOG, DATABASE, "top"), top)
    t.add_partitions("top", ("1",), location=f"file:{t.directory}/d.db")
    if kind == "partition":
        t.store.writes.partitions.drop_partitions(
            TableName(CATALOG, DATABASE, "top"), AllPartitions(), delete_data=True
        )
    else:
        t.drop("top")
    assert data.exists()


class TestOtherPartitions:
    """Of one table: one within the directory of another, one within those of several, and one outside of all."""

    @pytest.fixture
    def t(self, catalog: StoreUnderTest) -> StoreUnderTest:
        catalog.create_table("t", keys=[("k", "string"), ("l", "string")])
        catalog.add_partitions("t", ("1", "a"), ("1", "b"), ("7", "c"))
        for values, place in ((("2", "x"), "k=1/l=a"), (("3", "x"), "k=1"), (("4", "x"), "k=9/l=z")):
            catalog.add_partitions("t", values, location=f"file:{self.root(catalog) / place}")
        for place in ("k=1/l=a", "k=1/l=b", "k=7/l=c", "k=9/l=z"):
            (self.root(catalog) / place / "data").write_text("1")
        return catalog

    @staticmethod
    def root(t: StoreUnderTest) -> Path:
        return t.directory / "d.db" / "t"

    def data(self, t: StoreUnderTest) -> set[str]:
        return {str(path.parent.relative_to(self.root(t))) for path in self.root(t).rglob("data")}

    def drop(self, t: StoreUnderTest, *names: str, **more: Any) -> None:
        t.store.writes.partitions.drop_partitions(
            TableName(CATALOG, DATABASE, "t"), ByNames(names), **{"delete_data": True, **more}
        )

    def test_drop(self, t: StoreUnderTest, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING):
            self.drop(t, "k=2/l=x", "k=3/l=x", "k=4/l=x", "k=7/l=c")
        assert self.data(t) == {"k=1/l=a", "k=1/l=b"}
        assert "other objects lie there" in caplog.text
        self.drop(t, "k=1/l=a", "k=1/l=b")
        assert self.data(t) == set()

    def test_drop_of_all_that_lie_there(self, t: StoreUnderTest) -> None:
        self.drop(t, "k=1/l=a", "k=1/l=b", "k=2/l=x", "k=3/l=x")
        assert self.data(t) == {"k=7/l=c", "k=9/l=z"}

    def test_one_that_lies_elsewhere_itself(self, t: StoreUnderTest) -> None:
        """Its name alone determines no directory."""
        moved = next(each for each in t.partitions("t") if each.values == ["1", "a"])
        moved.sd.location = f"file:{t.directory}/elsewhere"
        t.store.writes.partitions.alter_partitions(TableName(CATALOG, DATABASE, "t"), [moved])
        self.drop(t, "k=2/l=x")
        assert self.data(t) == {"k=1/l=b", "k=7/l=c", "k=9/l=z"}

    def test_rename(self, t: StoreUnderTest) -> None:
        for old, new in (("2", "5"), ("4", "6")):
            found = next(each for each in t.partitions("t") if each.values == [old, "x"])
            found.values = [new, "x"]
            t.store.writes.partitions.rename_partition(TableName(CATALOG, DATABASE, "t"), [old, "x"], found)
        assert self.data(t) == {"k=1/l=a", "k=1/l=b", "k=7/l=c", "k=6/l=x"}
        places = {each.values[0]: each.sd.location.rpartition("/t/")[2] for each in t.partitions("t")}
        assert (places["5"], places["6"]) == ("k=1/l=a", "k=6/l=x")

    @pytest.mark.parametrize("name", ["k=2/l=x", "k=3/l=x"])
    def test_truncate(self, t: StoreUnderTest, name: str) -> None:
        def truncate(*names: str) -> None:
            t.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"), names)

        with pytest.raises(ttypes.MetaException, match=r"another one lies in .*k=1"):
            truncate(name)
        assert self.data(t) == {"k=1/l=a", "k=1/l=b", "k=7/l=c", "k=9/l=z"}
        truncate("k=2/l=x", "k=3/l=x", "k=1/l=a", "k=1/l=b", "k=4/l=x")
        assert self.data(t) == {"k=7/l=c"}

    def test_a_directory_that_is_named_as_no_partition_asks_nothing(self, t: StoreUnderTest) -> None:
        t.add_partitions("t", ("8", "x"), location=f"file:{self.root(t)}/2024/01")
        counted = []
        for name in ("k=7/l=c", "k=8/l=x"):
            with t.counting() as found:
                self.drop(t, name)
            counted += found
        assert counted[0] == counted[1]


class TestPartitionsPutIntoDirectoriesOfOthers:
    """The files in the directory of a partition also belong to another one located there."""

    GUESTS = ("t/p=1", "t/p=1/below", "//t/p=1/", "elsewhere", "elsewhere/below")

    @pytest.fixture(params=GUESTS)
    def t(self, catalog: StoreUnderTest, request: pytest.FixtureRequest) -> StoreUnderTest:
        """`p=1` in its directory, `p=2` at a location of its own; `p=9` at, or below, one of the two."""
        catalog.create_table("t", keys=[("p", "string")], parameters=self.parameters)
        catalog.add_partitions("t", ("1",), ("3",))
        catalog.add_partitions("t", ("2",), location=f"file:{catalog.directory}/d.db/elsewhere")
        place = f"file:{catalog.directory}/d.db/{request.param}"
        if request.param.startswith("//"):
            place = f"file://{catalog.directory}/d.db/{request.param[2:]}"
        catalog.add_partitions("t", ("9",), location=place)
        for each in ("t/p=1", "t/p=1/below", "t/p=3", "elsewhere", "elsewhere/below"):
            (catalog.directory / "d.db" / each).mkdir(exist_ok=True)
            (catalog.directory / "d.db" / each / "data").write_text("1")
        return catalog

    parameters: ClassVar[dict[str, str]] = {}

    @staticmethod
    def data(t: StoreUnderTest) -> set[str]:
        return {str(path.parent.relative_to(t.directory / "d.db")) for path in t.directory.rglob("data")}

    @pytest.fixture
    def place(self, request: pytest.FixtureRequest) -> str:
        text: str = request.node.callspec.params["t"]
        return text.strip("/")

    @staticmethod
    def names(place: str) -> tuple[str, str]:
        """The partition that owns the directory, and the other one."""
        return ("p=1", "p=2") if place.startswith("t/") else ("p=2", "p=1")

    def test_drop(self, t: StoreUnderTest, place: str, caplog: pytest.LogCaptureFixture) -> None:
        everything = self.data(t)
        owner, other = self.names(place)
        with caplog.at_level(logging.WARNING):
            self.drop(t, owner, "p=3")
        assert self.data(t) == everything - {"t/p=3"}
        assert "other objects lie there" in caplog.text
        self.drop(t, other)
        left = {each for each in everything if each.startswith(place.split("/below")[0])}
        assert self.data(t) == left

    def test_drop_together(self, t: StoreUnderTest, place: str) -> None:
        self.drop(t, "p=9", *self.names(place))
        assert self.data(t) == {"t/p=3"}

    @staticmethod
    def drop(t: StoreUnderTest, *names: str) -> None:
        t.store.writes.partitions.drop_partitions(TableName(CATALOG, DATABASE, "t"), ByNames(names), delete_data=True)

    def test_truncate(self, t: StoreUnderTest, place: str) -> None:
        everything = self.data(t)
        owner, other = self.names(place)
        with pytest.raises(ttypes.MetaException, match="another one lies in"):
            t.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"), (owner, "p=3"))
        assert self.data(t) == everything
        t.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"), (other, "p=3"))
        assert self.data(t) == {each for each in everything if each.startswith(place.split("/below")[0])}
        t.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"), (owner, "p=9"))
        assert self.data(t) == set()

    def test_rename(self, t: StoreUnderTest, place: str) -> None:
        everything = self.data(t)
        owner, _ = self.names(place)
        found = next(each for each in t.partitions("t") if each.values == [owner[2:]])
        before, found.values = found.sd.location, ["7"]
        t.store.writes.partitions.rename_partition(TableName(CATALOG, DATABASE, "t"), [owner[2:]], found)
        renamed = next(each for each in t.partitions("t") if each.values == ["7"])
        assert (renamed.sd.location, self.data(t)) == (before, everything)

    @pytest.mark.parametrize("max_partitions", [2, 3], indirect=True)
    def test_a_larger_table_is_not_looked_through(self, t: StoreUnderTest, place: str, max_partitions: int) -> None:
        """Three remain, one of which is within the directory of the dropped one."""
        everything = self.data(t)
        self.drop(t, self.names(place)[0])
        assert (self.data(t) == everything) == (max_partitions == 3)


class TestSoftDropsOfDirectoriesOfOthers:
    def test_they_are_not_queued(self, catalog: StoreUnderTest) -> None:
        t = catalog
        t.create_table("t", keys=[("p", "string")], parameters={"transactional": "true"})
        t.add_partitions("t", ("1",), ("2",))
        t.add_partitions("t", ("9",), location=f"file:{t.directory}/d.db/t/p=1")
        soft = environment_options(ttypes.EnvironmentContext({"txnId": "7", "writeId": "3"}))
        t.store.writes.partitions.drop_partitions(
            TableName(CATALOG, DATABASE, "t"), ByNames(("p=1", "p=2")), delete_data=False, options=soft
        )
        assert [row.CQ_PARTITION for row in t.rows(COMPACTION_QUEUE.c.CQ_PARTITION)] == ["p=2"]
        assert list((t.directory / "d.db" / "t" / "p=1").iterdir()) == [], "no base file hides the other one's data"
        with t.database.writing() as connection:
            connection.execute(COMPACTION_QUEUE.delete())
            connection.commit()


@contextmanager
def statements_of(t: StoreUnderTest, counted: list[int]) -> Iterator[None]:
    with t.counting() as found:
        yield
    counted.append(found[0])


def test_drops_of_a_database_elsewhere_do_not_search(catalog: StoreUnderTest, tmp_path: Path) -> None:
    """Its tables are located by their names: the number of statements and of tables does not depend on it."""
    t = catalog
    t.create_database("x", locationUri=f"file:{tmp_path}/x")
    t.create_database("y", locationUri=f"file:{tmp_path}/y")
    counted: list[int] = []
    searched: list[str] = []

    def executed(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "LIKE" in statement and "SDS" in statement and "PARTITIONS" not in statement:
            searched.append(statement)

    event.listen(t.database.write_engine, "before_cursor_execute", executed)
    try:
        for count in (2, 8):
            for number in range(count):
                t.store.writes.tables.create_table(table(f"t{number}", dbName="x"))
                t.store.writes.tables.create_table(table(f"t{number}", dbName="y"))
            with statements_of(t, counted):
                t.store.writes.tables.drop_table(TableName(CATALOG, "x", "t0"), delete_data=True)
            assert not (tmp_path / "x" / "t0").exists()
            assert (tmp_path / "y" / "t0").exists()
            assert searched == []
            for name in ("x", "y"):
                t.store.writes.databases.drop_database(DatabaseName(CATALOG, name), delete_data=True, cascade=True)
                t.create_database(name, locationUri=f"file:{tmp_path}/{name}")
            searched.clear()
    finally:
        event.remove(t.database.write_engine, "before_cursor_execute", executed)
    assert counted[0] == counted[1]


def test_a_database_with_tables_elsewhere_searches_once(catalog: StoreUnderTest) -> None:
    t = catalog
    counted: list[int] = []
    for count in (2, 9):
        t.create_database("x")
        for number in range(count):
            t.store.writes.tables.create_table(
                table(f"t{number}", dbName="x", location=f"file:{t.directory}/place{number}")
            )
        with statements_of(t, counted):
            t.store.writes.databases.drop_database(DatabaseName(CATALOG, "x"), delete_data=True, cascade=True)
        assert not list(t.directory.glob("place*"))
    assert abs(counted[0] - counted[1]) <= 3  # a block of ids


def test_tables_of_two_databases_at_one_place(catalog: StoreUnderTest, tmp_path: Path) -> None:
    """By their names, both are there: neither drop deletes the other's files while both exist."""
    t = catalog
    for name in ("x", "y"):
        t.create_database(name, locationUri=f"file:{t.directory}/same")
        t.store.writes.tables.create_table(table("t", dbName=name))
    t.create_database("below", locationUri=f"file:{t.directory}/same/u")
    t.store.writes.tables.create_table(table("u", dbName="x"))
    t.store.writes.tables.create_table(table("v", dbName="below"))
    (t.directory / "same" / "t" / "data").write_text("1")
    t.store.writes.tables.drop_table(TableName(CATALOG, "x", "t"), delete_data=True)
    assert (t.directory / "same" / "t" / "data").exists()
    t.store.writes.tables.drop_table(TableName(CATALOG, "x", "u"), delete_data=True)
    assert (t.directory / "same" / "u" / "v").exists(), "another database lies there"
    t.store.writes.tables.drop_table(TableName(CATALOG, "y", "t"), delete_data=True)
    assert not (t.directory / "same" / "t").exists()


@pytest.mark.parametrize("place", ["part", "sub/deep/part", ""])
def test_partitions_of_external_tables_keep_the_directory_of_their_database(
    catalog: StoreUnderTest, tmp_path: Path, place: str
) -> None:
    """Their table is elsewhere. What the database owns is deleted anyway."""
    t = catalog
    external = {"tableType": "EXTERNAL_TABLE", "parameters": {"EXTERNAL": "TRUE"}}
    t.create_table("e", keys=[("k", "string")], location=f"file:{tmp_path}/elsewhere", **external)
    t.create_table("u", keys=[("k", "string")], location=f"file:{tmp_path}/elsewhere2", **external)
    t.create_table("owned")
    database = t.directory / "d.db"
    t.add_partitions("e", ("1",))
    t.add_partitions("e", ("2",), location=f"file:{database / place}")
    (database / place).mkdir(parents=True, exist_ok=True)
    for directory in (database / place, database / "owned"):
        (directory / "data").write_text("1")
    t.store.writes.databases.drop_database(DatabaseName(CATALOG, DATABASE), delete_data=True, cascade=True)
    assert (database / place / "data").exists()
    assert not (database / "owned").exists()
    t.create_database()


def test_a_table_around_another_database(catalog: StoreUnderTest) -> None:
    """By its name, a table of `x` surrounds the directory of `inner`: drops of its tables leave the files of
    `inner`."""
    t = catalog
    t.create_database("x", locationUri=f"file:{t.directory}/outer")
    t.store.writes.tables.create_table(table("u", dbName="x"))
    t.create_database("inner", locationUri=f"file:{t.directory}/outer/u/sub")
    t.store.writes.tables.create_table(table("w", dbName="inner"))
    (t.directory / "outer" / "u" / "sub" / "w" / "data").write_text("1")
    t.store.writes.tables.drop_table(TableName(CATALOG, "inner", "w"), delete_data=True)
    assert (t.directory / "outer" / "u" / "sub" / "w" / "data").exists()
    t.store.writes.tables.drop_table(TableName(CATALOG, "x", "u"), delete_data=False)
    t.store.writes.tables.create_table(table("w", dbName="inner"))
    t.store.writes.tables.drop_table(TableName(CATALOG, "inner", "w"), delete_data=True)
    assert not (t.directory / "outer" / "u" / "sub" / "w").exists()


@pytest.mark.parametrize("max_tables", [3], indirect=True)
def test_more_tables_than_are_compared(catalog: StoreUnderTest, caplog: pytest.LogCaptureFixture) -> None:
    t = catalog
    t.create_table("elsewhere", location=f"file:{t.directory}/place")
    for number in range(3):
        t.create_table(f"t{number}")
    t.drop("elsewhere")
    assert not (t.directory / "place").exists(), "three tables are compared"
    t.create_table("elsewhere", location=f"file:{t.directory}/place")
    t.create_table("t3")
    with caplog.at_level(logging.WARNING):
        t.drop("elsewhere")
    assert (t.directory / "place").is_dir()
    assert "warehouse.shared_location_max_tables" in caplog.text
    t.create_table("elsewhere", location=f"file:{t.directory}/place")
    with pytest.raises(ttypes.MetaException, match="other objects"):
        t.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "elsewhere"))
    t.drop("t3")
    assert not (t.directory / "d.db" / "t3").exists(), "names tell"


def test_a_soft_drop_orders_no_deletion_elsewhere(catalog: StoreUnderTest, tmp_path: Path) -> None:
    """A cleaner deletes what is in the queue without checks: no other table's files, none outside, and with a partition
    none of its table are queued."""
    t = catalog
    t.create_table("victim", keys=[("k", "string")])
    (t.directory / "d.db" / "victim" / "k=1").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "data").write_text("1")
    places = {
        "own": None,
        "shared": f"file:{t.directory}/d.db/victim",
        "outside": f"file:{tmp_path}/outside",
    }
    acid = {"transactional": "true"}
    soft = environment_options(ttypes.EnvironmentContext({"txnId": "7", "writeId": "3"}))
    for name, place in places.items():
        t.create_table(name, parameters=acid, location=place)
        t.drop(name, delete_data=False, options=soft)
    assert {row.CQ_TABLE for row in t.rows(COMPACTION_QUEUE.c.CQ_TABLE)} == {"own"}
    t.create_table("p", parameters=acid, keys=[("k", "string")])
    t.add_partitions("p", ("1",))
    t.add_partitions("p", ("2",), location=f"file:{t.directory}/d.db/victim/k=1")
    t.add_partitions("p", ("3",), location=f"file:{tmp_path}/outside")
    t.add_partitions("p", ("4",), location=f"file:{t.directory}/d.db/p")
    t.add_partitions("p", ("5",), location=f"file:{t.directory}/d.db")
    t.store.writes.partitions.drop_partitions(
        TableName(CATALOG, DATABASE, "p"), AllPartitions(), delete_data=False, options=soft
    )
    queued = {row.CQ_PARTITION for row in t.rows(COMPACTION_QUEUE.c.CQ_PARTITION)}
    assert queued == {None, "k=1"}
    assert list((t.directory / "d.db" / "victim" / "k=1").iterdir()) == [], "no base file hides another table's data"
    assert sorted(path.name for path in (t.directory / "d.db" / "p").iterdir()) == ["k=1"], "nor the other partitions'"
    assert (t.directory / "d.db" / "p" / "k=1" / "base_0000003").is_dir()
    with t.database.writing() as connection:
        connection.execute(COMPACTION_QUEUE.delete())
        connection.commit()


def test_what_was_dropped_softly_waits_where_its_table_was_moved_to(catalog: StoreUnderTest) -> None:
    """The cleaner got the previous location, and that of the partition's table under its new name: there was no such
    partition, so it deleted what a new table of the old name had put there."""
    t = catalog
    acid = {"transactional": "true"}
    soft = environment_options(ttypes.EnvironmentContext({"txnId": "7", "writeId": "3"}))
    t.create_table("p", parameters=acid, keys=[("k", "string")])
    for value, place in (("1", None), ("2", f"file:{t.directory}/d.db/elsewhere"), ("3", None)):
        t.add_partitions("p", (value,), location=place)
    for value in ("1", "2"):
        t.store.writes.partitions.drop_partitions(
            TableName(CATALOG, DATABASE, "p"), ByValues((value,)), delete_data=False, options=soft
        )
    renamed = t.store.reads.tables.get_table(TableName(CATALOG, DATABASE, "p"))
    renamed.tableName = "q"
    t.store.writes.tables.alter_table(TableName(CATALOG, DATABASE, "p"), renamed)
    queue = COMPACTION_QUEUE.c
    waiting = {
        row.CQ_PARTITION: (row.CQ_TABLE, from_counted_map(row.CQ_TBLPROPERTIES))
        for row in t.rows(queue.CQ_TABLE, queue.CQ_PARTITION, queue.CQ_TBLPROPERTIES)
    }
    root = f"file:{t.directory}/d.db"
    assert waiting == {
        "k=1": ("q", {"location": f"{root}/q/k=1", "ifPurge": "false"}),
        "k=2": ("q", {"location": f"{root}/elsewhere", "ifPurge": "false"}),
    }
    assert (t.directory / "d.db" / "q" / "k=1").is_dir()
    with t.database.writing() as connection:
        connection.execute(COMPACTION_QUEUE.delete())
        connection.commit()


def test_what_is_put_where_a_cleaner_will_delete_takes_the_entry_out_of_the_queue(catalog: StoreUnderTest) -> None:
    """On all databases: entries are found by their texts, and locked."""
    t = catalog
    acid = {"transactional": "true"}
    soft = environment_options(ttypes.EnvironmentContext({"txnId": "7", "writeId": "3"}))
    root = f"file:{t.directory}/d.db"
    t.create_table("p", parameters=acid, keys=[("k", "string")])
    for value in ("1", "2", "3"):
        t.add_partitions("p", (value,))
        t.store.writes.partitions.drop_partitions(
            TableName(CATALOG, DATABASE, "p"), ByValues((value,)), delete_data=False, options=soft
        )
    t.create_table("u", parameters=acid)
    t.drop("u", delete_data=False, options=soft)
    t.add_partitions("p", ("1",))
    t.add_partitions("p", ("4",), location=f"{root}/p/k=2")
    t.create_table("v", location=f"file://{t.directory}/d.db/u/below")
    assert [row.CQ_PARTITION for row in t.rows(COMPACTION_QUEUE.c.CQ_PARTITION)] == ["k=1", "k=3"]
    with t.database.writing() as connection:
        connection.execute(COMPACTION_QUEUE.update().values(CQ_CLEANER_START=1))
        connection.commit()
    for value, place in (("1b", f"{root}/p/k=1"), ("3", None)):
        with pytest.raises(ttypes.MetaException, match="A cleaner has begun"):
            t.add_partitions("p", (value,), location=place)
    with t.database.writing() as connection:
        connection.execute(COMPACTION_QUEUE.delete())
        connection.commit()


@pytest.mark.parametrize(
    ("waiting", "place"),
    [
        ("file:/w/d.db/t", "file:/w/d.db/t"),
        ("file:///w/d.db/t//", "file:/w/d.db/t/p=1"),
        ("file:/", "file:/w"),
        ("file:/w/./d.db/x/../t", "file:/w/d.db/t/p=1"),
        ("hdfs://nn/w/t", "hdfs://NN:8020/w/t/2024"),
        ("s3a://bucket", "s3://bucket/t"),
        ("s3n://key:secret@bucket/", "s3a://bucket/t"),
        ("s3a://Bucket/T", "s3a://bucket/T/p=1"),
        ("file:/w/\U0001f600", "file:/w/\U0001f600/p=1"),
    ],
)
@pytest.mark.parametrize("more", [{}, {"ifPurge": "true"}, {"a": "8:location1:x"}])
def test_no_entry_is_passed_over_that_names_a_directory_around(waiting: str, place: str, more: dict[str, str]) -> None:
    entry = WaitingDeletion(1, "d", "t", None, to_counted_map({**more, "location": waiting}))
    before = WaitingDeletion(1, "d", "t", None, to_counted_map({"location": waiting, **more}))
    assert Location.parse(waiting).spellings[0] in {
        Location.parse(place).spellings[0],
        *Location.parse(place).spellings[0].ancestors,
    }
    assert list(_worth_reading([entry, before], [Location.parse(place).spellings[0]])) == [entry, before]


def test_entries_of_other_directories_are_not_read() -> None:
    entries = [
        WaitingDeletion(number, "d", "t", f"p={number}", to_counted_map({"location": f"file:/w/d.db/t/p={number}"}))
        for number in range(100)
    ]
    place = Location.parse("file:/w/d.db/t/p=7")
    read = list(_worth_reading(entries, [place]))
    assert entries[7] in read and len(read) == 11, "what follows may be the next length, or the rest of a name"
