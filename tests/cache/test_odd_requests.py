"""Random requests, with missing fields and unsuitable texts: memory answers like the database, and none of them makes a
server drop cached data."""

from __future__ import annotations

import copy
import random
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from thrift.Thrift import TType

from hms_cache.cache.entries import Facet
from hms_cache.cache.reads.reasons import Reason
from hms_cache.metadata.object_names import table_name
from hms_cache.server.calls import Call, Kind
from hms_cache.server.handlers.table import all_handlers
from hms_cache.server.session import Session
from hms_cache.server.stores import Stores
from hms_cache.store.contract.metadata import MetadataReads
from hms_cache.wire import METHODS
from tests.cache.world import CATALOG, Server, create_database, encoded, table
from tests.every_write.catalog import Facts, fill

ROUNDS = 25
OF_CATALOG = ("table", "partition", "database", "function", "stat", "field", "schema", "key", "constraint")
NOT_CACHED = ("notification", "txn", "lock", "compact", "token", "master", "runtime", "metrics", "translate")
METASTORE_CHECK = {"metastore.expression.proxy": "org.apache.hadoop.hive.metastore.MsckPartitionExpressionProxy"}

DATABASES = ("d", "d", "d", "D", " d", "d ", "e", "nope", "@hive#d", "*", "d\u00e9")
TABLES = ("flat", "parts", "parts", "acid", "source", "mv", "Parts", "parts ", "nope", "p\u00e1rts", "par*|fl*", "")
LISTS = tuple(f"d.{name}:9223372036854775807::" for name in ("acid:2", "acid:1", "parts:0", "flat:0"))
FILTERS = (
    "p = '1'",
    "p > '1'",
    "p =",
    "(",
    "p like '%'",
    "p in ('1','2')",
    "q = 1",
    "p = 1",
    "p = null",
    "not p = '1'",
)
EXPRESSIONS = (
    b"",
    b"p='1'",
    b"p = '1' and x",
    b"\xff",
    b"\xff\xfe",
    b"(" * 2000,
    b"p = \xc3\xa9",
    b"p between 1 and 2",
)
TEXTS = (
    "p=1",
    "p=2",
    "P=1",
    "p=1 ",
    "p=9",
    "1",
    "2",
    "1 ",
    "8",
    "a",
    "b",
    "A",
    "a ",
    "f",
    "F ",
    "*",
    "",
    "%",
    "\u00e9",
    "p",
)


def a_text(chance: random.Random, name: str) -> str | bytes:
    lower = name.lower()
    for part, choices in (
        ("validwriteidlist", (*LISTS, "", "x")),
        ("cat", (CATALOG, "HIVE", "hiv\u00e9", "c2")),
        ("order", ("0:+", "1:+", "x", "", ":", "99999999999999999999:+", "0,0:++")),
        ("engine", ("hive", "hive", "Hive", "impala", "hive ")),
        ("filter", FILTERS),
        ("tbl", TABLES),
        ("table", (*TABLES, "MANAGED_TABLE")),
    ):
        if part in lower:
            return chance.choice(choices)
    if lower == "expr":
        return chance.choice(EXPRESSIONS)
    if lower in ("dbname", "db_name", "name", "database", "db_patterns", "foreign_db_name", "parent_db_name"):
        return chance.choice((*DATABASES, "p"))
    return chance.choice(TEXTS)


def a_value(chance: random.Random, name: str, kind: int, spec: Any, facts: Facts, depth: int) -> Any:
    if chance.random() < 0.12:
        return None
    if kind == TType.STRING:
        return a_text(chance, name)
    if kind == TType.STRUCT:
        return a_struct(chance, spec[0], facts, depth + 1) if depth < 3 else None
    if kind in (TType.LIST, TType.SET):
        made = [a_value(chance, name, spec[0], spec[1], facts, depth) for _ in range(chance.choice((0, 1, 1, 2, 3)))]
        some = [one for one in made if one is not None]
        return set(some) if kind == TType.SET else some
    if kind in (TType.MAP, TType.BOOL, TType.DOUBLE):
        return {} if kind == TType.MAP else chance.choice((None, True, False)) if kind == TType.BOOL else 1.0
    if name in ("id", "tableId"):
        return chance.choice((None, -1, 1, *(one.id for one in facts.tables.values())))
    return chance.choice((None, -1, -1, 0, 1, 2, 100))


def a_struct(chance: random.Random, kind: type[Any], facts: Facts, depth: int = 0) -> Any:
    made = kind()
    for field in filter(None, kind.thrift_spec):
        value = a_value(chance, field[2], field[1], field[3], facts, depth)
        if value is not None:
            setattr(made, field[2], value)
    return made


@pytest.mark.parametrize(
    "database_kind",
    ["sqlite", *(pytest.param(kind, marks=pytest.mark.soak) for kind in ("mariadb", "postgresql"))],
    indirect=True,
)
def test_memory_answers_as_the_database(initialized_database_url: str, tmp_path: Path) -> None:
    chance = random.Random(7)
    handlers = {name: one for name, one in all_handlers().items() if one.kind is Kind.READ}
    methods = [
        name
        for name in handlers
        if any(part in name for part in OF_CATALOG) and not any(part in name for part in NOT_CACHED)
    ]
    with closing(Server(initialized_database_url, tmp_path / "warehouse")) as server:
        facts = fill(server.objects, server.transactions)
        server.poller.step()
        site: Any = SimpleNamespace(config_value=lambda name: None, counters=dict)

        def answer(method: str, reads: MetadataReads, arguments: Any) -> Any:
            stores = Stores(
                *(reads, server.objects.writes, server.transactions.store, server.log, site, server.auxiliary)
            )
            call = Call(method, Session(peer="test", variables=METASTORE_CHECK), stores)
            try:
                return encoded(lambda: handlers[method].function(call, copy.deepcopy(arguments)))
            except (AttributeError, TypeError) as error:
                return repr(error)  # of a struct that lacks what the dispatcher would have required

        for _ in range(ROUNDS):
            for method in methods:
                arguments = a_struct(chance, METHODS[method].args_class, facts)
                expected = answer(method, server.objects.reads, arguments)
                for _ in range(2):
                    assert answer(method, server.store.reads, arguments) == expected, (method, arguments)
        reasons = server.reasons()
        assert Reason.CORRUPT not in reasons
        assert reasons.count(Reason.HIT) > 1000


class _Unreadable(Exception):
    """Neither memory nor the store can process the request."""


@pytest.mark.parametrize(("told", "is_kept"), [(_Unreadable(), True), (ValueError(), False), (None, False)])
def test_what_the_store_cannot_read_either_is_no_fault_of_memory(
    initialized_database_url: str, tmp_path: Path, told: Exception | None, is_kept: bool
) -> None:
    with closing(Server(initialized_database_url, tmp_path / "warehouse")) as server:
        create_database(server.objects, "d")
        server.objects.writes.tables.create_table(table("d", "t"))
        server.poller.step()
        held = server.store.reads.tables.get_table(table_name(CATALOG, "d", "t"))
        reading = server.cache.reading

        def look(cache: object) -> Any:
            raise _Unreadable

        def ask() -> str:
            if told is not None:
                raise told
            return "answered"

        def read() -> str:
            return reading.answer("table", look, ask, facet=Facet.TABLE, table=table_name(CATALOG, "d", held.tableName))

        if told is None:
            assert read() == "answered"
        else:
            with pytest.raises(type(told)):
                read()
        assert (table_name(CATALOG, "d", "t") in server.cache.shared.tables) is is_kept
