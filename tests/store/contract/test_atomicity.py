"""Each write is complete or has no effect: rows, events and files (P10)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from sqlalchemy import event

from hms_cache.metadata.object_names import DatabaseName, FunctionName, TableName
from hms_cache.store.contract.environment import EnvironmentOptions, Writer
from hms_cache.store.engine.errors import CommitOutcomeUnknown, DatabaseUnavailable
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.tables.change_columns import replace_columns
from hms_cache.store.warehouse import Warehouse
from hms_cache.store.warehouse.changes import WarehouseChanges
from hms_cache.store.warehouse.move_records import RECORD_PREFIX
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import CATALOG, StoreUnderTest, environment, external, table
from tests.store.contract.test_constraints import everything
from tests.store.contract.test_functions_and_catalogs import function


class Broken(Exception):
    """The exception by which the tests make statements fail."""


@contextmanager
def failing_statement(catalog: StoreUnderTest, number: int) -> Iterator[list[int]]:
    """The write transaction's statement of this number (from 1) fails before it is sent."""
    sent = [0]

    def count(*_: Any) -> None:
        sent[0] += 1
        if sent[0] == number:
            raise Broken

    engine = catalog.database.write_engine
    event.listen(engine, "before_cursor_execute", count)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", count)


def _renamed(catalog: StoreUnderTest) -> None:
    new = catalog.get("p")
    new.tableName = "p2"
    new.sd.cols.append(ttypes.FieldSchema("x", "int"))
    catalog.alter("p", new, EnvironmentOptions(cascades=True))


def _changed(catalog: StoreUnderTest) -> None:
    new = catalog.get("t")
    new.parameters["k"] = "v"
    new.sd.cols = [ttypes.FieldSchema("id", "bigint")]
    catalog.alter("t", new)


WRITES: dict[str, Callable[[StoreUnderTest], None]] = {
    "create_catalog": lambda c: c.store.writes.catalogs.create_catalog(
        ttypes.Catalog(name="spark", locationUri=f"file:{c.directory}/spark")
    ),
    "create_database": lambda c: c.create_database("e", managedLocationUri=f"file:{c.directory}/managed"),
    "alter_database": lambda c: c.store.writes.databases.alter_database(
        DatabaseName(CATALOG, "d"), ttypes.Database(parameters={"a": "b"})
    ),
    "drop_database": lambda c: c.store.writes.databases.drop_database(
        DatabaseName(CATALOG, "d"), delete_data=True, cascade=True
    ),
    "create_table": lambda c: c.store.writes.tables.create_table(
        table("n", keys=[("dt", "string")], parameters={"a": "b"}),
        constraints=ttypes.SQLAllTableConstraints(
            notNullConstraints=[ttypes.SQLNotNullConstraint("hive", "d", "n", "id", "x", True, True, True)]
        ),
    ),
    "rename_table": _renamed,
    "alter_table": _changed,
    "drop_table": lambda c: c.drop("p"),
    "truncate_table": lambda c: c.store.writes.tables.truncate_table(TableName(CATALOG, "d", "p")),
    "truncate_transactional": lambda c: c.store.writes.tables.truncate_table(
        TableName(CATALOG, "d", "acid"), writer=Writer(write_id=3, valid_write_ids=f"d.acid:3:{2**63 - 1}::")
    ),
    "create_function": lambda c: c.store.writes.functions.create_function(function("g")),
    "drop_function": lambda c: c.store.writes.functions.drop_function(FunctionName(CATALOG, "d", "f")),
    "drop_constraint": lambda c: c.store.writes.constraints.drop_constraint(TableName(CATALOG, "d", "t"), "nn_a"),
}


def _fill(catalog: StoreUnderTest) -> None:
    catalog.store.writes.tables.create_table(table(keys=[("dt", "string")]), constraints=None)
    catalog.drop()
    catalog.create_table("p", keys=[("dt", "string")])
    catalog.add_partitions("p", ("1",), ("2",))
    catalog.store.writes.tables.create_table(external("e"))
    catalog.create_table("acid", parameters={"transactional": "true"})
    catalog.create_table()
    constraints = everything()
    constraints.primaryKeys = []
    catalog.store.writes.constraints.add_constraints(constraints)
    catalog.store.writes.functions.create_function(function())
    for partition in catalog.partitions("p"):
        (catalog.path(partition.sd.location) / "f").write_bytes(b"1")


def _state(catalog: StoreUnderTest) -> Any:
    return catalog.counts(), catalog.events(), catalog.files(), [catalog.get(name) for name in ("acid", "e", "p", "t")]


@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize("write", sorted(WRITES))
def test_a_failure_at_any_statement_leaves_nothing(catalog: StoreUnderTest, write: str) -> None:
    _fill(catalog)
    before = _state(catalog)
    number = 1
    while True:
        with failing_statement(catalog, number) as sent:
            try:
                WRITES[write](catalog)
            except Broken:
                pass
            else:
                break
        assert _state(catalog) == before, f"after a failure of statement {number}"
        number += 1
    assert sent[0] == number - 1 > 3
    assert len(catalog.events()) > len(before[1])
    if write == "create_catalog":
        catalog.store.writes.catalogs.drop_catalog("spark")


@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
def test_files_stay_when_the_outcome_is_unknown(catalog: StoreUnderTest) -> None:
    """Neither undone nor deleted: either could lose data."""
    catalog.create_table("dropped")

    def break_connection(connection: Any) -> None:
        connection.invalidate()
        raise DatabaseUnavailable("gone", connection_lost=True)

    engine = catalog.database.write_engine
    event.listen(engine, "commit", break_connection)
    try:
        with pytest.raises(CommitOutcomeUnknown):
            catalog.store.writes.tables.create_table(table("made"))
        with pytest.raises(CommitOutcomeUnknown):
            catalog.drop("dropped")
    finally:
        event.remove(engine, "commit", break_connection)
    assert catalog.files() == ["d.db", "d.db/dropped", "d.db/made"]


def _together(number: int, work: Callable[[int], None]) -> list[BaseException]:
    """Runs the work in this many threads at once. Returns the errors."""
    barrier = threading.Barrier(number, timeout=60)
    errors: list[BaseException] = []

    def run(index: int) -> None:
        barrier.wait(30)
        try:
            work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return errors


def test_one_of_many_expectations_holds(catalog: StoreUnderTest) -> None:
    """Lock-free commits: exactly one of those that expect the same value succeeds, and nothing is lost."""
    catalog.create_table(parameters={"metadata_location": "0"})
    for turn in range(5):

        def commit(index: int, turn: int = turn) -> None:
            new = table(parameters={"metadata_location": str(turn + 1), "by": str(index)})
            new.sd.location = f"file:{catalog.directory}/d.db/t"
            properties = {"expected_parameter_key": "metadata_location", "expected_parameter_value": str(turn)}
            catalog.alter("t", new, environment_context=environment(DO_NOT_UPDATE_STATS="true", **properties))

        errors = _together(4, commit)
        assert len(errors) == 3
        for error in errors:
            assert isinstance(error, ttypes.MetaException)
            expected = "The table has been modified. The parameter value for key 'metadata_location' is"
            assert expected in error.message
        assert catalog.get().parameters["metadata_location"] == str(turn + 1)


def test_one_of_many_creations_wins_and_keeps_its_directory(catalog: StoreUnderTest) -> None:
    for turn in range(5):
        errors = _together(4, lambda _, turn=turn: catalog.store.writes.tables.create_table(table(f"t{turn}")))
        assert [type(error) for error in errors] == [ttypes.AlreadyExistsException] * 3
        assert catalog.path(catalog.get(f"t{turn}").sd.location).is_dir()
    created = [name for kind, _, name in catalog.events() if kind == "CREATE_TABLE"]
    assert created == [f"t{turn}" for turn in range(5)]


def _add_partition(catalog: StoreUnderTest) -> None:
    catalog.add_partitions("p", ("1",))


CREATIONS: dict[str, tuple[Callable[[StoreUnderTest], None], str]] = {
    "database": (lambda catalog: catalog.create_database("e"), "e.db"),
    "table": (lambda catalog: catalog.store.writes.tables.create_table(table("t")), "d.db/t"),
    "partition": (_add_partition, "d.db/p/dt=1"),
}


@pytest.mark.parametrize(("create", "directory"), CREATIONS.values(), ids=CREATIONS)
def test_who_loses_a_name_leaves_the_directory_to_who_has_it(
    catalog: StoreUnderTest,
    monkeypatch: pytest.MonkeyPatch,
    create: Callable[[StoreUnderTest], None],
    directory: str,
) -> None:
    """The first is stopped when it has created the directory: the second waits for the name, or has it before the
    first."""
    catalog.create_table("p", keys=[("dt", "string")])
    made, proceed = threading.Event(), threading.Event()
    first: list[int] = []

    def hold(method: str) -> None:
        go_on = getattr(WarehouseChanges, method)

        def held(self: WarehouseChanges, what: Any) -> Any:
            answer = go_on(self, what)
            if threading.get_ident() in first and not made.is_set():
                made.set()
                assert proceed.wait(30)
            return answer

        monkeypatch.setattr(WarehouseChanges, method, held)

    hold("make_directory")
    hold("make_directories")

    def create_first() -> None:
        first.append(threading.get_ident())
        create(catalog)

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(create_first)]
        assert made.wait(30)
        both.append(pool.submit(create, catalog))
        wait(both[1:], 0.3)
        proceed.set()
        errors = [type(error) for each in both if (error := each.exception(60)) is not None]
    assert errors == [ttypes.AlreadyExistsException]
    assert (catalog.directory / directory).is_dir()


def test_a_move_is_undone_before_others_find_the_directory(
    catalog: StoreUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rename that fails after its move is stopped before it moves back: others that need the table wait for this."""
    created = catalog.create_table("t")
    (catalog.path(created.sd.location) / "data").write_bytes(b"1")
    moved, proceed = threading.Event(), threading.Event()
    first: list[int] = []
    move = Warehouse.rename_directory

    def held(self: Warehouse, source: Any, destination: Any, **more: Any) -> Any:
        if threading.get_ident() in first and source.location.name == "a":
            moved.set()
            assert proceed.wait(30)
        return move(self, source, destination, **more)

    def refuse(*arguments: Any) -> Any:
        if threading.get_ident() in first:
            raise ttypes.MetaException("refused")
        return replace_columns(*arguments)

    monkeypatch.setattr(Warehouse, "rename_directory", held)
    monkeypatch.setattr("hms_cache.store.tables.changes.replace_columns", refuse)

    def rename(name: str) -> None:
        if name == "a":
            first.append(threading.get_ident())
        catalog.alter("t", table(name, location=created.sd.location))

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(rename, "a")]
        assert moved.wait(30)
        both.append(pool.submit(rename, "b"))
        wait(both[1:], 0.3)
        proceed.set()
        errors = [each.exception(60) for each in both]
    assert isinstance(errors[0], ttypes.MetaException)
    assert errors[1] is None
    assert (catalog.path(catalog.get("b").sd.location) / "data").is_file()


class Unfinished:
    """Renames of `t` to `a` that have moved the directory and end without their commit: nothing is undone."""

    def __init__(self, catalog: StoreUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
        self._catalog = catalog
        self._monkeypatch = monkeypatch
        self.undo: list[Callable[[], None]] = []
        """What a live server does afterwards; one that died does not."""

    def rename(self, new: ttypes.Table) -> None:
        def keep(transaction: WriteTransaction) -> None:
            actions, transaction._on_rollback = transaction._on_rollback, []
            self.undo += [action for action, _ in reversed(actions)]

        def refuse(*_: Any) -> Any:
            raise ttypes.MetaException("refused")

        with self._monkeypatch.context() as patched:
            patched.setattr(WriteTransaction, "undo_under_locks", keep)
            patched.setattr("hms_cache.store.tables.changes.replace_columns", refuse)
            with pytest.raises(ttypes.MetaException, match="refused"):
                self._catalog.alter("t", new)


@pytest.fixture
def unfinished(catalog: StoreUnderTest, monkeypatch: pytest.MonkeyPatch) -> Unfinished:
    created = catalog.create_table("t")
    (catalog.path(created.sd.location) / "data").write_bytes(b"1")
    found = Unfinished(catalog, monkeypatch)
    found.rename(table("a", location=created.sd.location))
    assert not catalog.path(created.sd.location).exists()
    return found


def moves_recorded(catalog: StoreUnderTest) -> list[str]:
    return [name for name in catalog.files() if RECORD_PREFIX in name]


@pytest.mark.parametrize("is_alive", [False, True], ids=["died", "undoes late"])
@pytest.mark.parametrize("name", ["a", "b"])
def test_a_rename_finds_the_files_where_one_without_commit_has_left_them(
    catalog: StoreUnderTest, unfinished: Unfinished, is_alive: bool, name: str
) -> None:
    """With another name, the row got a directory without files."""
    catalog.alter("t", table(name, location=catalog.get().sd.location))
    if is_alive:
        for action in unfinished.undo:
            with suppress(ttypes.MetaException):
                action()
    assert (catalog.path(catalog.get(name).sd.location) / "data").is_file()
    assert moves_recorded(catalog) == []


def test_a_second_one_without_commit_leaves_them_to_the_next(catalog: StoreUnderTest, unfinished: Unfinished) -> None:
    unfinished.rename(table("b", location=catalog.get().sd.location))
    catalog.alter("t", table("c", location=catalog.get().sd.location))
    assert (catalog.path(catalog.get("c").sd.location) / "data").is_file()


def test_one_that_is_undone_leaves_them_to_the_next(catalog: StoreUnderTest, unfinished: Unfinished) -> None:
    first, unfinished.undo = unfinished.undo, []
    unfinished.rename(table("b", location=catalog.get().sd.location))
    for action in [*unfinished.undo, *first]:
        action()
    assert (catalog.path(catalog.get().sd.location) / "data").is_file()
    assert moves_recorded(catalog) == []


def test_a_directory_that_has_become_another_tables_stays_there(
    catalog: StoreUnderTest, unfinished: Unfinished
) -> None:
    catalog.create_table("a")
    catalog.alter("t", table("b", location=catalog.get().sd.location))
    assert (catalog.path(catalog.get("a").sd.location) / "data").is_file()
    assert not catalog.path(catalog.get("b").sd.location).exists()


def test_events_are_gapless_when_many_write(catalog: StoreUnderTest) -> None:
    def work(index: int) -> None:
        for number in range(4):
            catalog.store.writes.tables.create_table(table(f"t{index}_{number}"))
            catalog.drop(f"t{index}_{number}")

    assert _together(4, work) == []
    ids = [row.event_id for row in catalog.notifications()]
    assert ids == list(range(ids[0], ids[0] + 33))
    assert catalog.files() == ["d.db"]


def test_two_tables_renamed_to_one_name(catalog: StoreUnderTest) -> None:
    found = [catalog.create_table(name) for name in ("a", "b")]
    for each in found:
        (catalog.path(each.sd.location) / each.tableName).write_bytes(b"1")

    def rename(index: int) -> None:
        new = table("c", location=found[index].sd.location)
        catalog.alter(found[index].tableName, new)

    errors = _together(2, rename)
    assert [type(error) for error in errors] == [ttypes.InvalidOperationException]
    names = catalog.store.reads.tables.get_table_names(DatabaseName(CATALOG, "d"))
    assert len(names) == 2
    for name in names:
        assert catalog.path(catalog.get(name).sd.location).is_dir()
    assert len([name for name in catalog.files() if name.count("/") == 2]) == 2
