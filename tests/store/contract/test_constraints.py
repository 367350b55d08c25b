"""Contract of constraints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event

from hms_cache.metadata.object_names import TableName, table_name
from hms_cache.store.engine.database import Database
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import CATALOG, StoreUnderTest, columns, table
from tests.txn.test_rows_read import RowsRead

FLAGS: dict[str, Any] = {"enable_cstr": True, "validate_cstr": False, "rely_cstr": True}


def place(column: str, name: str = "t") -> dict[str, Any]:
    return {"catName": "hive", "table_db": "d", "table_name": name, "column_name": column}


def primary_key(*names: str, table_name: str = "t", name: str | None = "pk") -> list[ttypes.SQLPrimaryKey]:
    return [
        ttypes.SQLPrimaryKey(**place(column, table_name), key_seq=number, pk_name=name, **FLAGS)
        for number, column in enumerate(names, 1)
    ]


def foreign_key(
    parent: str, child: str, *pairs: tuple[str, str], name: str | None = "fk"
) -> list[ttypes.SQLForeignKey]:
    return [
        ttypes.SQLForeignKey("d", parent, mine, "d", child, theirs, number, 1, 2, name, "pk", True, True, False, "hive")
        for number, (mine, theirs) in enumerate(pairs, 1)
    ]


def everything() -> ttypes.SQLAllTableConstraints:
    return ttypes.SQLAllTableConstraints(
        primaryKeys=primary_key("id", "dt"),
        foreignKeys=[],
        uniqueConstraints=[ttypes.SQLUniqueConstraint(**place("v"), key_seq=1, uk_name="uk", **FLAGS)],
        notNullConstraints=[
            ttypes.SQLNotNullConstraint(**place("id"), nn_name="nn_a", **FLAGS),
            ttypes.SQLNotNullConstraint(**place("v"), nn_name="nn_b", **FLAGS),
        ],
        defaultConstraints=[ttypes.SQLDefaultConstraint(**place("v"), default_value="'x'", dc_name="dc", **FLAGS)],
        checkConstraints=[ttypes.SQLCheckConstraint(**place("id"), check_expression="id > 0", dc_name="cc", **FLAGS)],
    )


def test_all_kinds_come_back(catalog: StoreUnderTest) -> None:
    catalog.create_table(keys=[("dt", "string")])
    wanted = everything()
    catalog.store.writes.constraints.add_constraints(wanted)
    assert catalog.store.reads.constraints.get_table_constraints(table_name("HIVE", "D", "T")) == wanted
    assert [kind for kind, _, _ in catalog.events()[-5:]] == [
        "ADD_PRIMARYKEY",
        "ADD_UNIQUECONSTRAINT",
        "ADD_NOTNULLCONSTRAINT",
        "ADD_CHECKCONSTRAINT",
        "ADD_DEFAULTCONSTRAINT",
    ]
    assert {(database, name) for _, database, name in catalog.events()[-5:]} == {("d", "t")}
    with catalog.counting() as counted:
        catalog.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", "t"))
    assert counted[0] <= 2


def test_created_with_the_table(catalog: StoreUnderTest) -> None:
    wanted = everything()
    catalog.store.writes.tables.create_table(table(keys=[("dt", "string")]), constraints=wanted)
    assert catalog.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", "t")) == wanted
    assert [kind for kind, _, _ in catalog.events()[-6:-4]] == ["CREATE_TABLE", "ADD_PRIMARYKEY"]


@pytest.mark.parametrize("column", [None, ""])
@pytest.mark.parametrize("name", ["cc", None])
def test_a_check_of_the_table_names_no_column(catalog: StoreUnderTest, name: str | None, column: str | None) -> None:
    """`CHECK (a < b)` after the columns: Hive sends it without a column, with a new table or for an existing one."""

    def wanted(of: str) -> ttypes.SQLAllTableConstraints:
        check = ttypes.SQLCheckConstraint("hive", "d", of, column, "id < v", name, **FLAGS)
        return ttypes.SQLAllTableConstraints(checkConstraints=[check])

    catalog.create_table(keys=[("dt", "string")])
    catalog.store.writes.constraints.add_constraints(wanted("t"))
    catalog.store.writes.tables.create_table(table("u", keys=[("dt", "string")]), constraints=wanted("u"))
    for of in ("t", "u"):
        [found] = catalog.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", of)).checkConstraints
        assert (found.column_name, found.check_expression) == (None, "id < v")
        assert found.dc_name == name if name else found.dc_name.startswith("dc_")


def test_other_kinds_need_a_column(catalog: StoreUnderTest) -> None:
    catalog.create_table()
    wanted = [
        ttypes.SQLAllTableConstraints(notNullConstraints=[ttypes.SQLNotNullConstraint(CATALOG, "d", "t", **FLAGS)]),
        ttypes.SQLAllTableConstraints(uniqueConstraints=[ttypes.SQLUniqueConstraint(CATALOG, "d", "t", **FLAGS)]),
        ttypes.SQLAllTableConstraints(defaultConstraints=[ttypes.SQLDefaultConstraint(CATALOG, "d", "t", **FLAGS)]),
    ]
    for constraints in wanted:
        with pytest.raises(ttypes.InvalidObjectException, match="Parent column not found"):
            catalog.store.writes.constraints.add_constraints(constraints)


@pytest.mark.parametrize("value", ["", None, "''"])
def test_values_come_back_as_they_were_sent(catalog: StoreUnderTest, value: str | None) -> None:
    catalog.create_table()
    wanted = ttypes.SQLAllTableConstraints(
        defaultConstraints=[ttypes.SQLDefaultConstraint(**place("v"), default_value=value, dc_name="dc", **FLAGS)],
        checkConstraints=[ttypes.SQLCheckConstraint(**place("v"), check_expression=value, dc_name="cc", **FLAGS)],
    )
    catalog.store.writes.constraints.add_constraints(wanted)
    found = catalog.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", "t"))
    assert [one.default_value for one in found.defaultConstraints] == [value]
    assert [one.check_expression for one in found.checkConstraints] == [value]


def test_bad_constraints_prevent_the_table(catalog: StoreUnderTest) -> None:
    before = catalog.counts(), catalog.events(), catalog.files()
    wanted = ttypes.SQLAllTableConstraints(primaryKeys=primary_key("nope"))
    with pytest.raises(ttypes.InvalidObjectException, match="Parent column not found: nope"):
        catalog.store.writes.tables.create_table(table(), constraints=wanted)
    assert (catalog.counts(), catalog.events(), catalog.files()) == before


def test_foreign_keys(catalog: StoreUnderTest) -> None:
    catalog.create_table("p", cols=columns(("a", "int"), ("b", "string")))
    catalog.create_table("c", cols=columns(("x", "int"), ("y", "string")))
    catalog.store.writes.constraints.add_constraints(
        ttypes.SQLAllTableConstraints(primaryKeys=primary_key("a", "b", table_name="p"))
    )
    wanted = foreign_key("p", "c", ("a", "x"), ("b", "y"))
    catalog.store.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(foreignKeys=wanted))
    assert catalog.events()[-1] == ("ADD_FOREIGNKEY", "d", "p"), "the event names the parent"
    assert catalog.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", "c")).foreignKeys == wanted
    assert catalog.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", "p")).foreignKeys == []
    get = catalog.store.reads.constraints.get_foreign_keys
    assert get(CATALOG, ("D", "P"), (None, None)) == wanted
    assert get(CATALOG, (None, None), ("d", "c")) == wanted
    assert get(CATALOG, ("d", "p"), ("d", "c")) == wanted
    assert get(CATALOG, (None, None), (None, None)) == wanted
    assert get(CATALOG, ("d", "c"), (None, None)) == []


def test_a_foreign_key_whose_key_was_dropped_is_not_answered(catalog: StoreUnderTest) -> None:
    """An engine may omit a join because of it, which needs the key. It is returned again when there is a key."""
    catalog.create_table("p", cols=columns(("a", "int"), ("b", "string")))
    catalog.create_table("c", cols=columns(("x", "int"), ("y", "string")))
    add, drop = catalog.store.writes.constraints.add_constraints, catalog.store.writes.constraints.drop_constraint
    add(ttypes.SQLAllTableConstraints(primaryKeys=primary_key("a", table_name="p")))
    add(ttypes.SQLAllTableConstraints(foreignKeys=foreign_key("p", "c", ("a", "x"))))

    def found() -> list[tuple[str, str | None]]:
        of_child = catalog.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", "c")).foreignKeys
        assert catalog.store.reads.constraints.get_foreign_keys(CATALOG, ("d", "p"), (None, None)) == of_child
        return [(key.fk_name, key.pk_name) for key in of_child]

    assert found() == [("fk", "pk")]
    drop(TableName(CATALOG, "d", "p"), "pk")
    assert found() == []
    add(ttypes.SQLAllTableConstraints(primaryKeys=primary_key("b", table_name="p", name="of_b")))
    assert found() == [], "of another column"
    unique = ttypes.SQLUniqueConstraint(**place("a", "p"), key_seq=1, uk_name="uk", **FLAGS)
    add(ttypes.SQLAllTableConstraints(uniqueConstraints=[unique]))
    assert found() == [("fk", "of_b")]


@pytest.mark.parametrize(
    ("wanted", "error", "text"),
    [
        (foreign_key("nope", "c", ("a", "x")), ttypes.InvalidObjectException, "Parent table not found: nope"),
        (foreign_key("p", "nope", ("a", "x")), ttypes.InvalidObjectException, "Child table not found: nope"),
        (foreign_key("p", "c", ("z", "x")), ttypes.InvalidObjectException, "Parent column not found: z"),
        (foreign_key("p", "c", ("a", "z")), ttypes.InvalidObjectException, "Child column not found: z"),
        (foreign_key("p", "c", ("b", "x")), ttypes.MetaException, "no corresponding primary key or unique key"),
        (foreign_key("p", "c", ("a", "s")), ttypes.MetaException, r"references a:string; but .* keys: \[a:int;\]"),
    ],
)
def test_refused_foreign_keys(
    catalog: StoreUnderTest, wanted: list[ttypes.SQLForeignKey], error: type[Exception], text: str
) -> None:
    catalog.create_table("p", cols=columns(("a", "int"), ("b", "int")))
    catalog.create_table("c", cols=columns(("x", "int"), ("s", "string")))
    catalog.store.writes.constraints.add_constraints(
        ttypes.SQLAllTableConstraints(primaryKeys=primary_key("a", table_name="p"))
    )
    before = catalog.counts(), catalog.events()
    with pytest.raises(error, match=text):
        catalog.store.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(foreignKeys=wanted))
    assert (catalog.counts(), catalog.events()) == before


def test_one_primary_key_and_names_once(catalog: StoreUnderTest) -> None:
    catalog.create_table()
    catalog.store.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(primaryKeys=primary_key("id")))
    with pytest.raises(ttypes.MetaException, match=r"Primary key already exists for: hive\.d\.t"):
        catalog.store.writes.constraints.add_constraints(
            ttypes.SQLAllTableConstraints(primaryKeys=primary_key("v", name="other"))
        )
    with pytest.raises(ttypes.MetaException, match="Primary key already exists"):
        catalog.store.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(primaryKeys=primary_key("id")))
    unique = ttypes.SQLUniqueConstraint(**place("v"), key_seq=1, uk_name="PK", **FLAGS)
    with pytest.raises(ttypes.InvalidObjectException, match="Constraint name already exists: pk"):
        catalog.store.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(uniqueConstraints=[unique]))


def test_a_name_is_one_constraints_of_its_table(catalog: StoreUnderTest) -> None:
    """A constraint is dropped by its name, and engines combine the columns of a key: with two of the same name, both
    would be dropped, and two foreign keys to different tables would be treated as one."""
    for name in ("p", "q", "c"):
        catalog.create_table(name, cols=columns(("a", "int"), ("b", "int")))
    add = catalog.store.writes.constraints.add_constraints
    for name in ("p", "q"):
        add(ttypes.SQLAllTableConstraints(primaryKeys=primary_key("a", table_name=name, name=f"of_{name}")))
    add(ttypes.SQLAllTableConstraints(primaryKeys=primary_key("a", table_name="c", name="key")))
    to_p, to_q = foreign_key("p", "c", ("a", "a")), foreign_key("q", "c", ("a", "b"))
    before = catalog.counts(), catalog.events()
    not_null = [ttypes.SQLNotNullConstraint(**place("a", "c"), nn_name="FK", **FLAGS)]
    for refused in (
        ttypes.SQLAllTableConstraints(foreignKeys=foreign_key("p", "c", ("a", "a"), name="Key")),
        ttypes.SQLAllTableConstraints(foreignKeys=[*to_p, *to_q]),
        ttypes.SQLAllTableConstraints(foreignKeys=to_p, notNullConstraints=not_null),
    ):
        with pytest.raises(ttypes.InvalidObjectException, match="Constraint name already exists"):
            add(refused)
        assert (catalog.counts(), catalog.events()) == before
    add(ttypes.SQLAllTableConstraints(foreignKeys=to_p))
    for refused in (
        ttypes.SQLAllTableConstraints(foreignKeys=to_q),
        ttypes.SQLAllTableConstraints(notNullConstraints=not_null),
    ):
        with pytest.raises(ttypes.InvalidObjectException, match="Constraint name already exists: fk"):
            add(refused)
    # Names on other tables are independent, also if one of them is at the other end.
    add(ttypes.SQLAllTableConstraints(foreignKeys=foreign_key("q", "p", ("a", "b"))))
    left = {("c", "p"), ("p", "q")}
    for dropped, key in (("p", ("p", "q")), ("p", ("c", "p"))):
        catalog.store.writes.constraints.drop_constraint(TableName(CATALOG, "d", dropped), "fk")
        left.remove(key)
        found = catalog.store.reads.constraints.get_foreign_keys(CATALOG, (None, None), (None, None))
        assert {(one.fktable_name, one.pktable_name) for one in found} == left


def test_foreign_keys_of_several_tables_in_one_request(catalog: StoreUnderTest) -> None:
    """Each is checked with the columns of its own tables, whatever its name and the order of its columns."""
    for parent, child, kind in (("p", "c", "int"), ("q", "e", "string")):
        catalog.create_table(parent, cols=columns((f"{parent}1", kind), (f"{parent}2", kind)))
        catalog.create_table(child, cols=columns((f"{child}1", kind), (f"{child}2", kind)))
        key = primary_key(f"{parent}1", f"{parent}2", table_name=parent)
        catalog.store.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(primaryKeys=key))
    of_c, of_e = (
        foreign_key(parent, child, *((f"{parent}{number}", f"{child}{number}") for number in (1, 2)))
        for parent, child in (("p", "c"), ("q", "e"))
    )
    wanted = [of_c[0], of_e[0], of_e[1], of_c[1]]
    catalog.store.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(foreignKeys=wanted))
    for child, keys in (("c", of_c), ("e", of_e)):
        found = catalog.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", child))
        assert found.foreignKeys == keys


def test_a_key_that_refers_to_itself_is_refused(catalog: StoreUnderTest) -> None:
    """As in Hive: it is true of each row. Other columns of the same table may refer to the key."""
    catalog.create_table("n", cols=columns(("a", "int"), ("b", "int"), ("x", "int"), ("y", "int")))
    add = catalog.store.writes.constraints.add_constraints
    itself, other = foreign_key("n", "n", ("a", "a"), ("b", "b")), foreign_key("n", "n", ("a", "x"), ("b", "y"))
    with pytest.raises(ttypes.MetaException, match="there are no primary keys or unique keys for referenced table"):
        add(ttypes.SQLAllTableConstraints(foreignKeys=other))
    add(ttypes.SQLAllTableConstraints(primaryKeys=primary_key("a", "b", table_name="n")))
    before = catalog.counts(), catalog.events()
    with pytest.raises(ttypes.MetaException, match="Cannot be both foreign key and primary/unique key on same table"):
        add(ttypes.SQLAllTableConstraints(foreignKeys=itself))
    assert (catalog.counts(), catalog.events()) == before
    add(ttypes.SQLAllTableConstraints(foreignKeys=other))
    assert catalog.store.reads.constraints.get_foreign_keys(CATALOG, ("d", "n"), ("d", "n")) == other
    new = table("m", cols=columns(("a", "int"), ("b", "int")))
    key = primary_key("a", table_name="m")
    with pytest.raises(ttypes.MetaException, match="Cannot be both"):
        catalog.store.writes.tables.create_table(
            new,
            constraints=ttypes.SQLAllTableConstraints(primaryKeys=key, foreignKeys=foreign_key("m", "m", ("a", "a"))),
        )
    assert (catalog.counts()["KEY_CONSTRAINTS"], catalog.events()[-1][0]) == (4, "ADD_FOREIGNKEY")


def test_names_are_made_up(catalog: StoreUnderTest) -> None:
    catalog.create_table()
    not_null = [ttypes.SQLNotNullConstraint(**place(column), **FLAGS) for column in ("id", "v")]
    wanted = ttypes.SQLAllTableConstraints(primaryKeys=primary_key("id", "v", name=None), notNullConstraints=not_null)
    catalog.store.writes.constraints.add_constraints(wanted)
    found = catalog.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", "t"))
    assert len({key.pk_name for key in found.primaryKeys}) == 1, "the columns of a key share its name"
    assert len({constraint.nn_name for constraint in found.notNullConstraints}) == 2
    event = catalog.last_event()
    assert event.event_id > 0


@pytest.mark.parametrize("is_created", [False, True])
def test_made_up_names_of_all_kinds_of_one_column_differ(catalog: StoreUnderTest, is_created: bool) -> None:
    """`CREATE TABLE t (v INT PRIMARY KEY NOT NULL DEFAULT 1 CHECK (v > 0))`: the names are generated from the column,
    the kind and the time only."""
    wanted = ttypes.SQLAllTableConstraints(
        primaryKeys=primary_key("v", name=None),
        uniqueConstraints=[ttypes.SQLUniqueConstraint(**place("v"), key_seq=1, **FLAGS)],
        notNullConstraints=[ttypes.SQLNotNullConstraint(**place("v"), **FLAGS)],
        defaultConstraints=[ttypes.SQLDefaultConstraint(**place("v"), default_value="1", **FLAGS)],
        checkConstraints=[ttypes.SQLCheckConstraint(**place("v"), check_expression="v > 0", **FLAGS)],
    )
    if is_created:
        catalog.store.writes.tables.create_table(table(), constraints=wanted)
    else:
        catalog.create_table()
        catalog.store.writes.constraints.add_constraints(wanted)
    found = catalog.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", "t"))
    names = [
        *(key.pk_name for key in found.primaryKeys),
        *(key.uk_name for key in found.uniqueConstraints),
        *(one.nn_name for one in found.notNullConstraints),
        *(one.dc_name for one in found.defaultConstraints),
        *(one.dc_name for one in found.checkConstraints),
    ]
    assert len(set(names)) == 5


def test_drop_constraint(catalog: StoreUnderTest) -> None:
    catalog.create_table(keys=[("dt", "string")])
    catalog.store.writes.constraints.add_constraints(everything())
    catalog.store.writes.constraints.drop_constraint(TableName(CATALOG, "d", "t"), "NN_A")
    assert [
        each.nn_name
        for each in catalog.store.reads.constraints.get_table_constraints(
            TableName(CATALOG, "d", "t")
        ).notNullConstraints
    ] == ["nn_b"]
    assert catalog.events()[-1] == ("DROP_CONSTRAINT", "d", "t")
    before = catalog.events()
    for name in ("nn_a", "x"):
        with pytest.raises(ttypes.NoSuchObjectException) as raised:
            catalog.store.writes.constraints.drop_constraint(TableName(CATALOG, "d", "t"), name)
        expected = f"The constraint: {name} does not exist for the associated table: d.t"
        assert raised.value.message == expected
    assert catalog.events() == before


def test_missing_table(catalog: StoreUnderTest) -> None:
    with pytest.raises(ttypes.NoSuchObjectException, match=r"hive\.d\.nope table not found"):
        catalog.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", "nope"))
    with pytest.raises(ttypes.InvalidObjectException):
        catalog.store.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(primaryKeys=primary_key("id")))


class _Steps:
    """Hundreds of instructions of SQLite's virtual machine that a call takes."""

    def __init__(self, database: Database) -> None:
        self._steps = 0
        for engine in database.engines:
            event.listen(engine, "checkout", lambda driver, *_: driver.set_progress_handler(self._step, 100))

    def _step(self) -> int:
        self._steps += 1
        return 0

    def __call__(self, call: Callable[[], object]) -> int:
        before = self._steps
        call()
        return self._steps - before


def long_key(catalog: StoreUnderTest, name: str, length: int) -> ttypes.SQLAllTableConstraints:
    """A foreign key of this many columns between two new tables, whose parent has its key."""
    parent, child = f"p_{name}", f"c_{name}"
    names = [f"c{number}" for number in range(length)]
    for of in (parent, child):
        catalog.create_table(of, cols=columns(*((column, "int") for column in names)))
    key = primary_key(*names, table_name=parent)
    not_null = [ttypes.SQLNotNullConstraint(**place(one, child), nn_name=f"{name}_{one}", **FLAGS) for one in names]
    add = catalog.store.writes.constraints.add_constraints
    add(ttypes.SQLAllTableConstraints(primaryKeys=key, notNullConstraints=not_null))
    return ttypes.SQLAllTableConstraints(foreignKeys=foreign_key(parent, child, *((one, one) for one in names)))


@pytest.mark.parametrize("database_kind", ["sqlite", "mariadb"], indirect=True)
@pytest.mark.parametrize("store_kind", ["object"], indirect=True)
def test_what_the_database_does_for_a_long_key_grows_with_its_columns(catalog: StoreUnderTest) -> None:
    """And not with their square: a key of 4,000 columns can be sent in one request."""
    database, reads, writes = catalog.database, catalog.store.reads.constraints, catalog.store.writes.constraints
    measure: Callable[[Callable[[], object]], int] = _Steps(database) if database.is_sqlite else RowsRead(database)
    costs: dict[int, dict[str, int]] = {}
    for length in (50, 200):
        wanted = long_key(catalog, f"k{length}", length)
        parent, child = f"p_k{length}", f"c_k{length}"
        writes.add_constraints(wanted)

        def drop_and_add(wanted: Any = wanted, child: str = child) -> None:
            writes.drop_constraint(TableName(CATALOG, "d", child), "fk")
            writes.add_constraints(wanted)

        def reordered(child: str = child) -> None:
            new = catalog.get(child)
            new.sd.cols.reverse()
            catalog.alter(child, new)

        costs[length] = {
            "get_table_constraints": measure(lambda of=child: reads.get_table_constraints(TableName(CATALOG, "d", of))),
            "get_foreign_keys": measure(lambda of=parent: reads.get_foreign_keys(CATALOG, ("d", of), (None, None))),
            "add_constraints": measure(drop_and_add),
            "alter_table": measure(reordered),
        }
        found = reads.get_table_constraints(TableName(CATALOG, "d", child))
        assert found.foreignKeys == wanted.foreignKeys and len(found.notNullConstraints) == length
    # Four times the columns.
    assert all(costs[200][name] < 7 * costs[50][name] + 100 for name in costs[50]), costs


def test_statements_do_not_depend_on_the_number_of_constraints(catalog: StoreUnderTest) -> None:
    counts = []
    for length in (3, 9):  # odd: the one in the middle remains
        catalog.store.writes.constraints.add_constraints(long_key(catalog, f"n{length}", length))
        child, parent = f"c_n{length}", f"p_n{length}"
        with catalog.counting() as of_read:
            catalog.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", child))
        new = catalog.get(child)
        new.sd.cols.reverse()
        with catalog.counting() as of_alter:
            catalog.alter(child, new)
        new.sd.cols = columns(("other", "int"))
        with catalog.counting() as of_dropped_columns:
            catalog.alter(child, new)
        found = catalog.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", child))
        assert (found.foreignKeys, found.notNullConstraints) == ([], [])
        kept = catalog.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", parent)).primaryKeys
        assert len(kept) == length
        counts.append([*of_read, *of_alter, *of_dropped_columns])
    assert counts[0] == counts[1]


def test_columns_change_places(catalog: StoreUnderTest) -> None:
    """Constraints follow their columns, each to its own position, and partition keys do not move."""
    found = catalog.create_table(cols=columns(*((one, "int") for one in "abcd")), keys=[("dt", "string")])
    unique = [ttypes.SQLUniqueConstraint(**place(one), key_seq=1, uk_name=f"uk_{one}", **FLAGS) for one in "abcd"]
    wanted = ttypes.SQLAllTableConstraints(primaryKeys=primary_key("d", "dt"), uniqueConstraints=unique)
    catalog.store.writes.constraints.add_constraints(wanted)

    def constrained() -> tuple[list[str], list[tuple[str, str]]]:
        now = catalog.store.reads.constraints.get_table_constraints(TableName(CATALOG, "d", "t"))
        return (
            [key.column_name for key in now.primaryKeys],
            [(constraint.uk_name, constraint.column_name) for constraint in now.uniqueConstraints],
        )

    for order in ("dabc", "adbce", "ecdba", "db", "bd"):
        found.sd.cols = columns(*((one, "int") for one in order))
        catalog.alter("t", found)
        expected = [(f"uk_{one}", one) for one in "abcd" if one in order]
        assert constrained() == (["d", "dt"], expected), order
    found.sd.cols = columns(("b", "int"))
    catalog.alter("t", found)
    assert constrained() == ([], [("uk_b", "b")]), "a key that lost a column is gone"
