"""Constraints of each kind: with a table, added, read, dropped."""

from __future__ import annotations

from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddCheckConstraintRequest,
    AddDefaultConstraintRequest,
    AddForeignKeyRequest,
    AddNotNullConstraintRequest,
    AddPrimaryKeyRequest,
    AddUniqueConstraintRequest,
    AllTableConstraintsRequest,
    CheckConstraintsRequest,
    CreateTableRequest,
    DefaultConstraintsRequest,
    DropConstraintRequest,
    ForeignKeysRequest,
    NotNullConstraintsRequest,
    PrimaryKeysRequest,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    UniqueConstraintsRequest,
)
from tests.differential.comparison import Call, Scenario, call
from tests.differential.objects import database, table
from tests.differential.reasons import PREFIX

FLAGS = {"enable_cstr": True, "validate_cstr": True, "rely_cstr": False}
PLACE = {"catName": "hive", "table_db": "d", "table_name": "t"}


def primary(column: str = "a", name: str | None = "t_pk", seq: int = 1, **more: Any) -> SQLPrimaryKey:
    return SQLPrimaryKey(**{**PLACE, "column_name": column, "key_seq": seq, "pk_name": name, **FLAGS, **more})


def unique(column: str = "a", name: str | None = "t_uk", **more: Any) -> SQLUniqueConstraint:
    return SQLUniqueConstraint(**{**PLACE, "column_name": column, "key_seq": 1, "uk_name": name, **FLAGS, **more})


def not_null(column: str = "a", name: str | None = "t_nn", **more: Any) -> SQLNotNullConstraint:
    return SQLNotNullConstraint(**{**PLACE, "column_name": column, "nn_name": name, **FLAGS, **more})


def default(column: str = "a", name: str | None = "t_dv", **more: Any) -> SQLDefaultConstraint:
    return SQLDefaultConstraint(
        **{**PLACE, "column_name": column, "default_value": "0", "dc_name": name, **FLAGS, **more}
    )


def check(column: str | None = "a", name: str | None = "t_cc", **more: Any) -> SQLCheckConstraint:
    return SQLCheckConstraint(
        **{**PLACE, "column_name": column, "check_expression": "= 5", "dc_name": name, **FLAGS, **more}
    )


def foreign(name: str | None = "t_fk", **more: Any) -> SQLForeignKey:
    given = {
        "catName": "hive",
        "pktable_db": "d",
        "pktable_name": "t",
        "pkcolumn_name": "a",
        "fktable_db": "d",
        "fktable_name": "child",
        "fkcolumn_name": "a",
        "key_seq": 1,
        "update_rule": 0,
        "delete_rule": 0,
        "fk_name": name,
        "pk_name": "t_pk",
        **FLAGS,
    }
    return SQLForeignKey(**{**given, **more})


def reads(name: str = "t", database_name: str = "d", catalog: str = "hive") -> list[Call]:
    requests = {
        "get_unique_constraints": UniqueConstraintsRequest,
        "get_not_null_constraints": NotNullConstraintsRequest,
        "get_default_constraints": DefaultConstraintsRequest,
        "get_check_constraints": CheckConstraintsRequest,
    }
    calls = [call(method, kind(catalog, database_name, name)) for method, kind in requests.items()]
    calls.append(call("get_primary_keys", PrimaryKeysRequest(database_name, name, catalog)))
    calls.append(call("get_foreign_keys", ForeignKeysRequest(None, None, database_name, name, catalog)))
    calls.append(call("get_all_table_constraints", AllTableConstraintsRequest(database_name, name, catalog)))
    return calls


TABLES = (
    call("create_database", database("d")),
    call("create_table", table("t")),
    call("create_table", table("child")),
)

ADD = Scenario.of(
    "add",
    TABLES,
    reads(),
    reads("none"),
    reads("t", "none"),
    reads("T", "D"),
    reads(catalog="none"),
    call("add_primary_key", AddPrimaryKeyRequest([primary()])),
    call("add_primary_key", AddPrimaryKeyRequest([primary("b", "another")])),
    call("add_unique_constraint", AddUniqueConstraintRequest([unique()])),
    call("add_not_null_constraint", AddNotNullConstraintRequest([not_null()])),
    call("add_default_constraint", AddDefaultConstraintRequest([default()])),
    call("add_check_constraint", AddCheckConstraintRequest([check()])),
    call("add_foreign_key", AddForeignKeyRequest([foreign()])),
    reads(),
    reads("child"),
    reads("T", "D"),
    [
        call("get_foreign_keys", ForeignKeysRequest(*names, "hive"))  # type: ignore[call-arg]
        for names in (
            ("d", "t", None, None),
            ("d", "t", "d", "child"),
            ("d", "none", "d", "child"),
            ("none", "t", "d", "child"),
            ("d", "t", "d", "none"),
            (None, "t", None, "child"),
        )
    ],
    call("get_primary_keys", PrimaryKeysRequest("d", "t", None)),
    call("get_primary_keys", PrimaryKeysRequest("@hive#d", "t", None), differs=PREFIX),
    call("add_primary_key", AddPrimaryKeyRequest([])),
    call("add_unique_constraint", AddUniqueConstraintRequest([])),
    call("add_unique_constraint", AddUniqueConstraintRequest([unique()])),
    call("add_not_null_constraint", AddNotNullConstraintRequest([not_null()])),
    call("add_default_constraint", AddDefaultConstraintRequest([default()])),
    call("add_check_constraint", AddCheckConstraintRequest([check()])),
    [
        call("add_check_constraint", AddCheckConstraintRequest([check(column, f"of_table_{number}")]))
        for number, column in enumerate((None, ""))
    ],
    call("add_default_constraint", AddDefaultConstraintRequest([default(name="of_nothing", default_value="")])),
    reads(),
    call("add_unique_constraint", AddUniqueConstraintRequest([unique(name=None)])),
    call("add_unique_constraint", AddUniqueConstraintRequest([unique("none", "x1")])),
    call("add_not_null_constraint", AddNotNullConstraintRequest([not_null("none", "x2")])),
    call("add_primary_key", AddPrimaryKeyRequest([primary(table_name="none")])),
    call("add_unique_constraint", AddUniqueConstraintRequest([unique(table_name="none")])),
    call("add_not_null_constraint", AddNotNullConstraintRequest([not_null(table_db="none")])),
    call("add_default_constraint", AddDefaultConstraintRequest([default(table_name="none")])),
    call("add_check_constraint", AddCheckConstraintRequest([check(catName="none")])),
    call("add_foreign_key", AddForeignKeyRequest([foreign("fk2", pktable_name="none")])),
    call("add_foreign_key", AddForeignKeyRequest([foreign("fk3", fktable_name="none")])),
    call("add_foreign_key", AddForeignKeyRequest([foreign("fk4", pkcolumn_name="b")])),
    call("add_foreign_key", AddForeignKeyRequest([foreign("fk5", fkcolumn_name="none")])),
    call("add_foreign_key", AddForeignKeyRequest([])),
    call("drop_constraint", DropConstraintRequest("d", "t", "none")),
    call("drop_constraint", DropConstraintRequest("d", "none", "t_uk")),
    call("drop_constraint", DropConstraintRequest("none", "t", "t_uk")),
    call("drop_constraint", DropConstraintRequest("d", "t", "t_uk")),
    call("drop_constraint", DropConstraintRequest("d", "t", "t_uk")),
    call("drop_constraint", DropConstraintRequest("D", "T", "T_NN")),
    call("drop_constraint", DropConstraintRequest("d", "t", "t_pk")),
    call("drop_constraint", DropConstraintRequest("d", "child", "t_fk", "hive")),
    call("get_primary_keys", PrimaryKeysRequest("d", "t", "hive")),
    reads("child"),
)


def created(**lists: Any) -> Call:
    return call("create_table_req", CreateTableRequest(table=table("t"), **lists))


WITH_TABLE = Scenario.of(
    "with_table",
    call("create_database", database("d")),
    created(
        primaryKeys=[primary("a", None)],
        uniqueConstraints=[unique("b", "u")],
        notNullConstraints=[not_null("b", "n")],
        defaultConstraints=[default("b", "d")],
        checkConstraints=[check("b", "c")],
    ),
    call("get_unique_constraints", UniqueConstraintsRequest("hive", "d", "t")),
    call("get_not_null_constraints", NotNullConstraintsRequest("hive", "d", "t")),
    call("get_default_constraints", DefaultConstraintsRequest("hive", "d", "t")),
    call("get_check_constraints", CheckConstraintsRequest("hive", "d", "t")),
    call("create_table_with_constraints", table("child"), [], [foreign("f", pk_name=None)], [], [], [], []),
    call("get_foreign_keys", ForeignKeysRequest("d", "t", "d", "child", "hive"), is_answer_compared=False),
    call("create_table_with_constraints", table("x"), [primary("none", "xpk", table_name="x")], [], [], [], [], []),
    call(
        "create_table_with_constraints",
        table("y"),
        [primary("a", "ypk", table_name="y")],
        [],
        [unique("a", "yu", table_name="y")],
        [],
        [],
        [],
    ),
    call("get_primary_keys", PrimaryKeysRequest("d", "y", "hive")),
    call("drop_table", "d", "t", True),
    call("drop_table", "d", "child", True),
    call("drop_table", "d", "t", True),
)

WITHOUT_KEY = Scenario.of(
    "without_key",
    TABLES,
    call("add_primary_key", AddPrimaryKeyRequest([primary()])),
    call("add_foreign_key", AddForeignKeyRequest([foreign()])),
    reads("child"),
    call("drop_constraint", DropConstraintRequest("d", "t", "t_pk")),
    reads("child"),
    call("get_foreign_keys", ForeignKeysRequest("d", "t", None, None, "hive")),
    call("add_primary_key", AddPrimaryKeyRequest([primary("b", "of_b")])),
    reads("child"),
    call("drop_constraint", DropConstraintRequest("d", "t", "of_b")),
    call("add_primary_key", AddPrimaryKeyRequest([primary("a", "again")])),
    reads("child"),
)

SCENARIOS = [ADD, WITH_TABLE, WITHOUT_KEY]
