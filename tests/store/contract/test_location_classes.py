"""The table in docs/security.md, *Locations*: the effect of each operation in each class of location, a test per cell.

Classes: *allowed* (in the warehouse), *declared* (a database was there before the rules), *outside*, *link* (in the
warehouse, but a symbolic link leads out), *remote* (outside, on a file system that is never opened), and *unknown* (a
scheme that is not allowed). Files are checked on the disk.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import update

from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.environment import NO_OPTIONS, EnvironmentOptions, Writer
from hms_cache.store.contract.partitions import AllPartitions
from hms_cache.store.databases.database_store import insert_database
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.replication_marks import mark_incompatible
from hms_cache.store.rows.database_rows import LOCATION_LEFT_ALONE, MANAGED_LOCATION_LEFT_ALONE
from hms_cache.store.schema import DATABASE_PARAMS, DBS
from hms_cache.store.warehouse import file_systems
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import CATALOG, DATABASE, StoreUnderTest, table

CLASSES = ("allowed", "declared", "outside", "link", "remote", "unknown")
TOUCHED = ("allowed", "declared")
"""Where this server works on files."""

REGISTERED = ("allowed", "declared", "outside", "link", "remote")
"""Where objects may be registered."""

EXTERNAL = {"tableType": "EXTERNAL_TABLE", "parameters": {"EXTERNAL": "TRUE"}}
PURGED = {"tableType": "EXTERNAL_TABLE", "parameters": {"EXTERNAL": "TRUE", "external.table.purge": "TRUE"}}


CLAIM = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
ROWS = {"numRows": "7"}
FIGURES = {"numFiles": "4", "numFilesErasureCoded": "0", "totalSize": "99"}
COUNTED = {"numFiles": "1", "numFilesErasureCoded": "0", "totalSize": "5"}
"""What `Places.fill` makes."""
NONE = {"numFiles": "0", "numFilesErasureCoded": "0", "totalSize": "0"}
OF_A_TASK = EnvironmentOptions(statistics_from="TASK")


FIGURES_OF_HIVE_2 = {"numFiles": "4", "totalSize": "99"}


def unchanged_parts(kind: str, figures: dict[str, str]) -> dict[str, str]:
    """A client's claims about a new object with files: all of them, as if from a listing."""
    return {**CLAIM, **ROWS, **FIGURES} if figures == FIGURES else {**ROWS, **(COUNTED if kind in TOUCHED else figures)}


def statistics(parameters: dict[str, str]) -> dict[str, str]:
    """What parameters claim about the files."""
    return {key: value for key, value in parameters.items() if key in (*CLAIM, *ROWS, *FIGURES)}


class Places:
    """A directory of each class with a file in it, and its state afterwards."""

    def __init__(self, under_test: StoreUnderTest, scratch: Path) -> None:
        self.under_test = under_test
        self._scratch = scratch
        (scratch / "declared").mkdir()
        (scratch / "outside").mkdir()
        (under_test.directory / "link").symlink_to(scratch / "outside", target_is_directory=True)
        under_test.create_database(DATABASE)
        under_test.create_database("declaring")
        location = f"file:{scratch}/declared"

        def move(transaction: object) -> None:
            connection = transaction.connection  # type: ignore[attr-defined]
            connection.execute(update(DBS).where(DBS.c.NAME == "declaring").values(DB_LOCATION_URI=location))

        run_write(under_test.database, move)

    def location(self, kind: str, name: str = "x") -> str:
        return {
            "allowed": f"file:{self.under_test.directory}/{name}",
            "declared": f"file:{self._scratch}/declared/{name}",
            "outside": f"file:{self._scratch}/outside/{name}",
            "link": f"file:{self.under_test.directory}/link/{name}",
            "remote": f"hdfs://namenode:8020/{name}",
            "unknown": f"ftp://127.0.0.1:1/{name}",
        }[kind]

    def path(self, kind: str, name: str = "x") -> Path | None:
        location = self.location(kind, name)
        return Path(location.removeprefix("file:")) if location.startswith("file:") else None

    def fill(self, kind: str, name: str = "x") -> None:
        path = self.path(kind, name)
        if path is not None:
            path.mkdir(parents=True)
            (path / "data").write_bytes(b"12345")

    def has_data(self, kind: str, name: str = "x") -> bool | None:
        """Whether the file exists; None where there are no files."""
        path = self.path(kind, name)
        return None if path is None else (path / "data").exists()


@pytest.fixture(params=["object"])
def store_kind(request: pytest.FixtureRequest) -> str:
    """The cache does not affect files."""
    kind: str = request.param
    return kind


@pytest.fixture
def places(under_test: StoreUnderTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    def opened(self: object, location: object) -> None:
        pytest.fail(f"{location} is opened")

    monkeypatch.setattr(file_systems.FileSystems, "open", opened)
    return Places(under_test, tmp_path)


def refused_unless(condition: bool, work: Callable[[], object], message: str) -> bool:
    """Does the work. Returns whether it was done. It must be, or be refused with this message, as the condition
    says."""
    if condition:
        work()
        return True
    with pytest.raises(ttypes.MetaException, match=message):
        work()
    return False


SCHEME = 'No FileSystem for scheme "ftp": warehouse.allowed_schemes'


@pytest.mark.parametrize("kind", CLASSES)
class TestTables:
    def test_create(self, places: Places, kind: str) -> None:
        t = places.under_test
        for name, fields in (("managed", {}), ("external", EXTERNAL)):
            done = refused_unless(
                kind in REGISTERED,
                partial(t.create_table, name, location=places.location(kind, name), **fields),
                SCHEME,
            )
            path = places.path(kind, name)
            if done and path is not None:
                assert path.is_dir() == (kind in TOUCHED or kind in MADE)
                assert t.get(name).sd.location == places.location(kind, name)

    def test_statistics_of_create(self, places: Places, kind: str) -> None:
        if kind not in REGISTERED:
            return
        places.fill(kind)
        made = places.under_test.create_table("t", location=places.location(kind), **EXTERNAL)
        assert made.parameters.get("numFiles") == ("1" if kind in TOUCHED else None)

    @pytest.mark.parametrize("figures", [FIGURES, FIGURES_OF_HIVE_2], ids=["all", "some"])
    def test_claims_of_create(self, places: Places, kind: str, figures: dict[str, str]) -> None:
        if kind not in REGISTERED:
            return
        places.fill(kind)
        parameters = {"EXTERNAL": "TRUE", **CLAIM, **ROWS, **figures}
        location = places.location(kind)
        made = places.under_test.create_table("t", location=location, parameters=parameters, tableType="EXTERNAL_TABLE")
        assert statistics(made.parameters) == unchanged_parts(kind, figures)

    def test_alter(self, places: Places, kind: str) -> None:
        t = places.under_test
        places.fill(kind)
        new = t.create_table("t", **EXTERNAL)
        new.sd.location = places.location(kind)
        new.parameters = {"EXTERNAL": "TRUE"}
        if refused_unless(kind in REGISTERED, lambda: t.alter("t", new), SCHEME):
            assert t.get("t").sd.location == places.location(kind)
            assert t.get("t").parameters.get("numFiles") == ("1" if kind in TOUCHED else None)

    def test_alter_takes_back_what_was_claimed_of_other_files(self, places: Places, kind: str) -> None:
        if kind not in REGISTERED:
            return
        t = places.under_test
        places.fill(kind)
        parameters = {"EXTERNAL": "TRUE", **CLAIM, **ROWS, **FIGURES}
        new = t.create_table("t", parameters=parameters, tableType="EXTERNAL_TABLE")
        assert statistics(new.parameters) == {**CLAIM, **ROWS, **FIGURES}
        new.sd.location = places.location(kind)
        t.alter("t", new)
        assert statistics(t.get("t").parameters) == {**ROWS, **(COUNTED if kind in TOUCHED else {})}

    def test_a_task_may_claim_what_it_has_counted(self, places: Places, kind: str) -> None:
        if kind not in REGISTERED:
            return
        t = places.under_test
        places.fill(kind)
        new = t.create_table("t", location=places.location(kind), **EXTERNAL)
        new.parameters = {**new.parameters, **ROWS, **FIGURES}
        t.alter("t", new, OF_A_TASK)
        assert statistics(t.get("t").parameters) == {**CLAIM, **ROWS, **(COUNTED if kind in TOUCHED else FIGURES)}

    @pytest.mark.parametrize("fields", [{}, PURGED], ids=["managed", "purged"])
    def test_drop(self, places: Places, kind: str, fields: dict[str, object], caplog: pytest.LogCaptureFixture) -> None:
        if kind not in REGISTERED:
            return
        t = places.under_test
        places.fill(kind)
        t.create_table("t", location=places.location(kind), **fields)
        with caplog.at_level(logging.WARNING):
            t.drop("t")
        assert t.store.reads.tables.get_table_names(DatabaseName(CATALOG, DATABASE)) == []
        assert t.events()[-1] == ("DROP_TABLE", DATABASE, "t")
        assert places.has_data(kind) in (None, kind not in TOUCHED)
        says_so = f"table hive.{DATABASE}.t is dropped: the files at {places.location(kind)} stay" in caplog.text
        assert says_so == (kind not in TOUCHED)

    def test_truncate(self, places: Places, kind: str) -> None:
        if kind not in REGISTERED:
            return
        t = places.under_test
        places.fill(kind)
        t.create_table("t", location=places.location(kind))
        before = t.events()
        done = refused_unless(
            kind in TOUCHED,
            lambda: t.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t")),
            "Cannot truncate hive.d.t",
        )
        assert places.has_data(kind) in (None, not done)
        assert (t.events() == before) == (not done)

    def test_rename(self, places: Places, kind: str) -> None:
        """A table at its default location in a database that was there before the rules."""
        if kind not in REGISTERED:
            return
        t = places.under_test
        root = str(Path(places.location(kind, "t")).parent) if kind != "remote" else "hdfs://namenode:8020"
        places.fill(kind, "t")
        t.create_table("t", location=places.location(kind, "t"))
        self._move_database(places, root)
        new = t.get("t")
        new.tableName = "u"
        t.alter("t", new)
        moved = kind in (*TOUCHED, "outside")  # the database's location makes the outside directory a declared one
        assert t.get("u").sd.location == places.location(kind, "u" if moved else "t")
        assert places.has_data(kind, "u" if moved else "t") in (None, True)

    def _move_database(self, places: Places, location: str) -> None:
        def move(transaction: object) -> None:
            connection = transaction.connection  # type: ignore[attr-defined]
            connection.execute(update(DBS).where(DBS.c.NAME == DATABASE).values(DB_LOCATION_URI=location))

        run_write(places.under_test.database, move)


@pytest.mark.parametrize("kind", REGISTERED)
@pytest.mark.parametrize("exists", [False, True], ids=["absent", "empty"])
def test_a_place_at_which_nothing_is_yet_has_no_files(places: Places, kind: str, exists: bool) -> None:
    """As far as this server may check it: Hive checks everywhere, and says so after SET LOCATION."""
    t = places.under_test
    path = places.path(kind)
    if exists and path is not None:
        path.mkdir(parents=True)
    # A link of others may lead anywhere, and other hosts are not accessed.
    expected = NONE if kind in (*TOUCHED, "outside") else {}
    moved = t.create_table("t", parameters={"EXTERNAL": "TRUE", **CLAIM, **FIGURES}, tableType="EXTERNAL_TABLE")
    moved.sd.location = places.location(kind)
    t.alter("t", moved)
    assert statistics(t.get("t").parameters) == expected
    t.create_table("p", keys=[("k", "string")], **EXTERNAL)
    t.add_partitions("p", ("1",))
    [partition] = t.partitions("p")
    partition.sd.location = places.location(kind)
    t.store.writes.partitions.alter_partitions(TableName(CATALOG, DATABASE, "p"), [partition])
    assert statistics(t.partitions("p")[0].parameters) == expected


@pytest.mark.parametrize("kind", CLASSES)
class TestPartitions:
    def test_add_and_drop(self, places: Places, kind: str) -> None:
        t = places.under_test
        t.create_table("p", keys=[("k", "string")])
        places.fill(kind)
        if not refused_unless(
            kind in REGISTERED, lambda: t.add_partitions("p", ("1",), location=places.location(kind)), SCHEME
        ):
            return
        [added] = t.partitions("p")
        assert added.sd.location == places.location(kind)
        assert added.parameters.get("numFiles") == ("1" if kind in TOUCHED else None)
        t.store.writes.partitions.drop_partitions(TableName(CATALOG, DATABASE, "p"), AllPartitions(), delete_data=True)
        assert t.partitions("p") == []
        assert places.has_data(kind) in (None, kind not in TOUCHED)

    @pytest.mark.parametrize("figures", [FIGURES, FIGURES_OF_HIVE_2], ids=["all", "some"])
    def test_claims_of_add(self, places: Places, kind: str, figures: dict[str, str]) -> None:
        """Spark's client claims that a partition with files has no rows, and Hive would answer `count(*)` from that."""
        if kind not in REGISTERED:
            return
        t = places.under_test
        t.create_table("p", keys=[("k", "string")])
        places.fill(kind)
        t.add_partitions("p", ("1",), location=places.location(kind), parameters={**CLAIM, **ROWS, **figures})
        assert statistics(t.partitions("p")[0].parameters) == unchanged_parts(kind, figures)

    def test_default_place(self, places: Places, kind: str) -> None:
        if kind not in REGISTERED:
            return
        t = places.under_test
        t.create_table("p", keys=[("k", "string")], location=places.location(kind), **EXTERNAL)
        t.add_partitions("p", ("1",))
        assert t.partitions("p")[0].sd.location == f"{places.location(kind)}/k=1"
        path = places.path(kind)
        assert path is None or (path / "k=1").is_dir() == (kind in TOUCHED or kind in MADE)

    def test_alter(self, places: Places, kind: str) -> None:
        t = places.under_test
        t.create_table("p", keys=[("k", "string")], **EXTERNAL)
        t.add_partitions("p", ("1",))
        places.fill(kind)
        [new] = t.partitions("p")
        new.sd.location = places.location(kind)
        if refused_unless(
            kind in REGISTERED,
            lambda: t.store.writes.partitions.alter_partitions(TableName(CATALOG, DATABASE, "p"), [new]),
            SCHEME,
        ):
            assert t.partitions("p")[0].sd.location == places.location(kind)

    @pytest.mark.parametrize("options", [NO_OPTIONS, OF_A_TASK], ids=["client", "task"])
    def test_alter_takes_back_what_was_claimed_of_other_files(
        self, places: Places, kind: str, options: EnvironmentOptions
    ) -> None:
        if kind not in REGISTERED:
            return
        t = places.under_test
        t.create_table("p", keys=[("k", "string")], **EXTERNAL)
        t.add_partitions("p", ("1",))
        places.fill(kind)
        [new] = t.partitions("p")
        alter = partial(t.store.writes.partitions.alter_partitions, TableName(CATALOG, DATABASE, "p"), [new])
        new.parameters = {**CLAIM, **ROWS, **FIGURES}
        alter(writer=Writer(options=EnvironmentOptions(keeps_partition_statistics=True)))
        assert statistics(t.partitions("p")[0].parameters) == {**CLAIM, **ROWS, **FIGURES}
        new.sd.location = places.location(kind)
        alter(writer=Writer(options=options))
        kept = {**CLAIM, **FIGURES} if options is OF_A_TASK else {}
        counted = COUNTED if kind in TOUCHED else {}
        assert statistics(t.partitions("p")[0].parameters) == {**ROWS, **kept, **counted}

    def test_rename(self, places: Places, kind: str) -> None:
        if kind not in REGISTERED or kind == "remote":  # on two file systems, which Hive refuses, too
            return
        t = places.under_test
        t.create_table("p", keys=[("k", "string")])
        places.fill(kind)
        t.add_partitions("p", ("1",), location=places.location(kind))
        [new] = t.partitions("p")
        new.values = ["2"]
        t.store.writes.partitions.rename_partition(TableName(CATALOG, DATABASE, "p"), ["1"], new)
        [found] = t.partitions("p")
        if kind in TOUCHED:
            assert (t.directory / "d.db" / "p" / "k=2" / "data").exists()
        else:
            assert found.sd.location == places.location(kind)
            assert places.has_data(kind)

    def test_truncate(self, places: Places, kind: str) -> None:
        if kind not in REGISTERED:
            return
        t = places.under_test
        t.create_table("p", keys=[("k", "string")])
        places.fill(kind)
        t.add_partitions("p", ("1",), location=places.location(kind))
        done = refused_unless(
            kind in TOUCHED,
            lambda: t.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "p")),
            "Cannot truncate hive.d.p",
        )
        assert places.has_data(kind) in (None, not done)

    def test_exchange(self, places: Places, kind: str) -> None:
        if kind not in REGISTERED:
            return
        t = places.under_test
        for name, location in (("s", places.location(kind)), ("p", None)):
            t.create_table(name, keys=[("k", "string")], location=location)
        path = places.path(kind)
        if path is not None:
            (path / "k=1").mkdir(parents=True, exist_ok=True)
            (path / "k=1" / "data").write_bytes(b"1")
        t.add_partitions("s", ("1",))
        done = refused_unless(
            kind in TOUCHED,
            lambda: t.store.writes.partitions.exchange_partitions(
                {"k": "1"}, TableName(CATALOG, DATABASE, "s"), TableName(CATALOG, DATABASE, "p")
            ),
            "Unable to move data",
        )
        assert path is None or (path / "k=1" / "data").exists() == (not done)
        assert len(t.partitions("s")) == (0 if done else 1)


MADE = ("allowed", "declared", "outside")
"""Where the directory of a database is made if nothing is there."""

UNMADE = ("outside", "link", "remote")
"""Where a database may be put without any work on its files, if something is there; of an outside link always."""


def marks(t: StoreUnderTest) -> set[tuple[str, str]]:
    """What the database stores about locations that are left alone."""
    names = {row.DB_ID: row.NAME for row in t.rows(DBS.c.DB_ID, DBS.c.NAME)}
    rows = t.rows(DATABASE_PARAMS.c.DB_ID, DATABASE_PARAMS.c.PARAM_KEY)
    return {(names[row.DB_ID], row.PARAM_KEY) for row in rows if "left_alone" in row.PARAM_KEY.lower()}


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("field", ["locationUri", "managedLocationUri"])
class TestDatabasesAndCatalogs:
    """A database at a directory that is missing, empty or filled; managed tables below it, and drops of both."""

    @pytest.mark.parametrize("state", ["absent", "empty"])
    def test_create_and_drop_database(self, places: Places, kind: str, field: str, state: str) -> None:
        t = places.under_test
        path = places.path(kind)
        if state == "empty" and path is not None:
            path.mkdir(parents=True)
        if not refused_unless(
            kind in REGISTERED, partial(t.create_database, "x", **{field: places.location(kind)}), SCHEME
        ):
            return
        assert getattr(t.store.reads.databases.get_database(DatabaseName(CATALOG, "x")), field) == places.location(kind)
        t.store.writes.tables.create_table(table("t", dbName="x", location=f"{places.location(kind)}/t"))
        assert path is None or (path / "t").is_dir() == (kind in MADE)
        if path is not None and kind in MADE:
            (path / "t" / "data").write_bytes(b"1")
        t.store.writes.tables.drop_table(TableName(CATALOG, "x", "t"), delete_data=True)
        assert path is None or not (path / "t").exists()
        t.store.writes.databases.drop_database(DatabaseName(CATALOG, "x"), delete_data=True, cascade=False)
        assert path is None or path.exists() == (kind == "link" and state == "empty")

    def test_create_and_drop_database_where_something_is(
        self, places: Places, kind: str, field: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        t = places.under_test
        places.fill(kind)
        with caplog.at_level(logging.WARNING):
            if not refused_unless(
                kind in REGISTERED, partial(t.create_database, "x", **{field: places.location(kind)}), SCHEME
            ):
                return
        assert (f"Database x is put at {places.location(kind)}, which is outside" in caplog.text) == (kind in UNMADE)
        t.store.writes.tables.create_table(table("t", dbName="x", location=places.location(kind)))
        assert t.get("t", "x").parameters.get("numFiles") == ("1" if kind in TOUCHED else None)
        t.store.writes.tables.create_table(table("u", dbName="x", location=f"{places.location(kind)}/u"))
        path = places.path(kind)
        assert path is None or (path / "u").is_dir() == (kind in TOUCHED or kind in MADE)
        t.store.writes.databases.drop_database(DatabaseName(CATALOG, "x"), delete_data=True, cascade=True)
        assert places.has_data(kind) in (None, kind not in TOUCHED)

    @pytest.mark.parametrize("state", ["absent", "filled"])
    def test_alter_database(self, places: Places, kind: str, field: str, state: str) -> None:
        t = places.under_test
        if state == "filled":
            places.fill(kind)
        new = ttypes.Database(name=DATABASE, parameters={"own": "1"}, **{field: places.location(kind)})
        done = refused_unless(
            kind in REGISTERED,
            lambda: t.store.writes.databases.alter_database(DatabaseName(CATALOG, DATABASE), new),
            SCHEME,
        )
        stored = t.store.reads.databases.get_database(DatabaseName(CATALOG, DATABASE))
        assert (getattr(stored, field) == places.location(kind)) == done
        if not done:
            return
        is_made = kind in TOUCHED or (kind in MADE and state == "absent")
        assert stored.parameters == {"own": "1"}
        assert (marks(t) != set()) == (not is_made)
        path = places.path(kind)
        # As in Hive, the directory is created with the first table in it.
        assert path is None or path.is_dir() == (state == "filled")
        t.store.writes.databases.drop_database(DatabaseName(CATALOG, DATABASE), delete_data=True, cascade=False)
        assert path is None or path.exists() == (state == "filled" and kind not in TOUCHED)

    def test_catalogs(self, places: Places, kind: str, field: str) -> None:
        if field == "managedLocationUri":
            return  # catalogs have none
        t = places.under_test
        for number, fill in enumerate((False, True)):
            name = f"c{number}"
            if fill:
                places.fill(kind, name)
            new = ttypes.Catalog(name=name, locationUri=places.location(kind, name))
            if not refused_unless(kind in REGISTERED, partial(t.store.writes.catalogs.create_catalog, new), SCHEME):
                continue
            path = places.path(kind, name)
            assert path is None or path.is_dir() == (fill or kind in MADE)
            t.create_database("inner", catalogName=name)
            assert path is None or (path / "inner.db").is_dir() == (kind in MADE)
            t.store.writes.databases.drop_database(DatabaseName(name, "inner"), delete_data=True, cascade=False)
            t.store.writes.catalogs.drop_catalog(name)
            assert path is None or path.is_dir() == fill
        t.store.writes.catalogs.create_catalog(ttypes.Catalog(name="c", locationUri=places.location("allowed", "c")))
        moved = ttypes.Catalog(name="c", locationUri=places.location(kind, "moved"))
        refused_unless(kind in REGISTERED, lambda: t.store.writes.catalogs.alter_catalog("c", moved), SCHEME)
        path = places.path(kind, "moved")
        assert path is None or not path.exists()


class TestMarks:
    """The server's note about a database that it leaves alone is protected."""

    def test_a_client_neither_sees_nor_sets_nor_removes_it(self, places: Places) -> None:
        t = places.under_test
        places.fill("outside")
        keys = (LOCATION_LEFT_ALONE, MANAGED_LOCATION_LEFT_ALONE, f"{LOCATION_LEFT_ALONE.upper()} ")
        sent = dict.fromkeys(keys, "file:/x")
        t.create_database("x", locationUri=places.location("outside"), parameters={**sent, "own": "1"})
        assert marks(t) == {("x", LOCATION_LEFT_ALONE)}
        found = t.store.reads.databases.get_database(DatabaseName(CATALOG, "x"))
        assert found.parameters == {"own": "1"}
        for parameters in ({}, sent, {"own": "2"}):
            found.parameters = dict(parameters)
            t.store.writes.databases.alter_database(DatabaseName(CATALOG, "x"), found)
            assert marks(t) == {("x", LOCATION_LEFT_ALONE)}
        assert "left_alone" not in "".join(str(row.message) for row in t.notifications())
        t.store.writes.databases.drop_database(DatabaseName(CATALOG, "x"), delete_data=True, cascade=True)
        assert places.has_data("outside")

    def test_it_goes_with_the_location(self, places: Places) -> None:
        t = places.under_test
        places.fill("outside", "filled")
        t.create_database("x", locationUri=places.location("outside", "filled"))
        for name, expected in (("new", set()), ("filled", {("x", LOCATION_LEFT_ALONE)}), ("other", set())):
            found = ttypes.Database(name="x", locationUri=places.location("outside", name), parameters={})
            t.store.writes.databases.alter_database(DatabaseName(CATALOG, "x"), found)
            assert marks(t) == expected
        t.store.writes.databases.drop_database(DatabaseName(CATALOG, "x"), delete_data=True, cascade=True)
        assert places.has_data("outside", "filled")

    def test_a_replication_mark_keeps_it(self, places: Places) -> None:
        t = places.under_test
        places.fill("outside")
        t.create_database("x", locationUri=places.location("outside"))
        run_write(t.database, lambda transaction: mark_incompatible(transaction, t.context.messages, ["x"]))
        assert marks(t) == {("x", LOCATION_LEFT_ALONE)}
        assert t.store.reads.databases.get_database(DatabaseName(CATALOG, "x")).parameters == {
            "repl.incompatible": "true"
        }

    def test_a_database_of_another_system_allows_nothing(self, places: Places) -> None:
        """A REMOTE one is a name for what a connector reaches; this server creates no directory for it."""
        t = places.under_test
        places.fill("outside")
        t.create_database(
            "x", type=ttypes.DatabaseType.REMOTE, locationUri=places.location("outside"), connector_name="c"
        )
        t.create_table("t", location=places.location("outside"))
        t.drop("t")
        assert places.has_data("outside")
        t.store.writes.databases.drop_database(DatabaseName(CATALOG, "x"), delete_data=True, cascade=False)
        assert places.has_data("outside")

    def test_what_was_kept_is_no_longer_ours(self, places: Places) -> None:
        """A database created with its directory and dropped without its data: created there again, its files are left
        alone."""
        t = places.under_test
        for delete_data in (False, True):
            t.create_database("x", locationUri=places.location("outside"))
            path = places.path("outside")
            assert path is not None
            (path / "data").write_bytes(b"1")
            t.store.writes.databases.drop_database(DatabaseName(CATALOG, "x"), delete_data=delete_data, cascade=False)
        assert places.has_data("outside")

    def test_a_directory_that_is_not_committed_is_not_left(self, places: Places) -> None:
        t = places.under_test
        with pytest.raises(RuntimeError):
            run_write(t.database, partial(_fail_after_insert, t, places.location("outside")), ids={"MDatabase": 1})
        path = places.path("outside")
        assert path is not None
        assert not path.exists()


def _fail_after_insert(t: StoreUnderTest, location: str, transaction: WriteTransaction) -> None:
    insert_database(t.context, transaction, ttypes.Database(name="x", locationUri=location))
    raise RuntimeError("after the directory")


def test_a_database_that_is_elsewhere_already_stays_as_it_is(places: Places) -> None:
    """Its own location sent again is no new one; when it is dropped, its directory is deleted, as in Hive."""
    t = places.under_test
    found = t.store.reads.databases.get_database(DatabaseName(CATALOG, "declaring"))
    t.store.writes.databases.alter_database(DatabaseName(CATALOG, "declaring"), found)
    places.fill("declared")
    t.store.writes.databases.drop_database(DatabaseName(CATALOG, "declaring"), delete_data=True, cascade=True)
    assert not places.has_data("declared")


@pytest.mark.parametrize("owner", ["table", "partition", "database", "truncate", "rename", "exchange", "steal"])
def test_what_another_object_uses_stays(places: Places, owner: str) -> None:
    """A location in the warehouse that belongs to another object: registered, and then dropped, emptied or renamed."""
    t = places.under_test
    t.create_table("victim")
    data = t.directory / "d.db" / "victim" / "data"
    data.write_bytes(b"1")
    place = f"file:{data.parent}"
    t.create_database("e")
    if owner == "table":
        for location in (place, f"{place}/..", f"{place}/x/../../victim", f"{place}/deep"):
            (data.parent / "deep").mkdir(exist_ok=True)
            (data.parent / "deep" / "data").write_bytes(b"1")
            t.store.writes.tables.create_table(table("x", dbName="e", location=location))
            t.store.writes.tables.drop_table(TableName(CATALOG, "e", "x"), delete_data=True)
            assert (data.parent / "deep" / "data").exists()
    elif owner == "partition":
        t.store.writes.tables.create_table(table("x", dbName="e", keys=[("k", "string")]))
        own = table("x").sd
        own.location = place
        t.store.writes.partitions.add_partitions(
            TableName(CATALOG, "e", "x"),
            [ttypes.Partition(values=["1"], dbName="e", tableName="x", sd=own, parameters={})],
        )
        t.store.writes.partitions.drop_partitions(TableName(CATALOG, "e", "x"), AllPartitions(), delete_data=True)
    elif owner == "database":
        for number, location in enumerate((f"file:{t.directory}", f"file:{t.directory}/d.db", place, f"{place}/..")):
            t.create_database(f"x{number}", locationUri=location)
            t.store.writes.databases.drop_database(DatabaseName(CATALOG, f"x{number}"), delete_data=True, cascade=True)
    elif owner == "truncate":
        t.store.writes.tables.create_table(table("x", dbName="e", location=f"file:{t.directory}/d.db"))
        with pytest.raises(ttypes.MetaException, match="other objects of the metastore lie at"):
            t.store.writes.tables.truncate_table(TableName(CATALOG, "e", "x"))
    elif owner == "rename":
        t.store.writes.tables.create_table(table("x", dbName="e", keys=[("k", "string")]))
        own = table("x").sd
        own.location = place
        partition = ttypes.Partition(values=["1"], dbName="e", tableName="x", sd=own, parameters={})
        t.store.writes.partitions.add_partitions(TableName(CATALOG, "e", "x"), [partition])
        renamed = ttypes.Partition(values=["2"], dbName="e", tableName="x", sd=own, parameters={})
        t.store.writes.partitions.rename_partition(TableName(CATALOG, "e", "x"), ["1"], renamed)
    elif owner == "exchange":
        (data.parent / "k=1").mkdir()
        t.store.writes.tables.create_table(table("x", dbName="e", keys=[("k", "string")], location=place))
        t.store.writes.tables.create_table(table("y", dbName="e", keys=[("k", "string")]))
        partition = ttypes.Partition(values=["1"], dbName="e", tableName="x", sd=table("x").sd, parameters={})
        t.store.writes.partitions.add_partitions(TableName(CATALOG, "e", "x"), [partition])
        with pytest.raises(ttypes.MetaException, match="other tables lie there"):
            t.store.writes.partitions.exchange_partitions(
                {"k": "1"}, TableName(CATALOG, "e", "x"), TableName(CATALOG, "e", "y")
            )
        assert (data.parent / "k=1").is_dir()
    else:
        t.create_database("thief", locationUri=f"file:{t.directory}/d.db")
        t.store.writes.tables.create_table(table("victim", dbName="thief"))
        new = t.get("victim", "thief")
        new.tableName = "mine"
        t.store.writes.tables.alter_table(TableName(CATALOG, "thief", "victim"), new)
    assert data.exists()
