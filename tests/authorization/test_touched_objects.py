"""Handlers access exactly the objects that were authorized, however names are distributed over a request.

Each method is called with different names in each place that can contain one; a store that records its calls shows what
the handler made of them.
"""

from __future__ import annotations

import copy
import inspect
import random
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hms_cache.authorization.decisions import SecuredObject
from hms_cache.metadata.names import normalize_identifier
from hms_cache.metadata.object_names import DatabaseName, FunctionName, TableName
from hms_cache.server.authorization.objects import objects_of
from hms_cache.server.authorization.rules import RULES, RuleKind
from hms_cache.server.calls import Call
from hms_cache.server.handlers.table import all_handlers
from hms_cache.server.session import Session
from hms_cache.server.stores import Stores
from hms_cache.store.engine.database import Database
from hms_cache.store.installation.init import init_schema
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import METHODS
from tests.authorization.requests import Names, arguments_of
from tests.cache.world import Server
from tests.server.conftest import table as table_of

_STRUCTS = {"table": ttypes.Table, "statistics": object, "updates": list}


class Noting:
    """An object store that records which objects are accessed."""

    def __init__(self, store: object, requested: list[tuple[str, SecuredObject]] | None = None) -> None:
        self._store = store
        self.requested: list[tuple[str, SecuredObject]] = [] if requested is None else requested

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name == "in_one_snapshot":
            return lambda ask: method(lambda store: ask(self))
        if not callable(method):
            return Noting(method, self.requested)

        def call(*arguments: Any, **options: Any) -> Any:
            bound = inspect.signature(method).bind(*arguments, **options).arguments
            self.requested += [(name, one) for one in named(name, bound)]
            return method(*arguments, **options)

        return call


def named(method: str, given: dict[str, Any]) -> Iterator[SecuredObject]:
    """The objects in the arguments of a method of the store."""
    for value in given.values():
        if isinstance(value, TableName):
            yield one(*value)
        elif isinstance(value, DatabaseName | FunctionName):
            yield one(value.catalog, value.database, None)
    if isinstance(given.get("catalog"), str) and isinstance(given.get("database"), str):
        yield one(given["catalog"], given["database"], None)
    for name, kind in _STRUCTS.items():
        value = given.get(name)
        for struct in value if isinstance(value, list | tuple) else [value]:
            if isinstance(struct, kind) and not isinstance(struct, str):
                struct = getattr(struct, "statsDesc", struct)
                database = getattr(struct, "dbName", None) or getattr(struct, "db_name", None)
                of = getattr(struct, "tableName", None) or getattr(struct, "table_name", None)
                if isinstance(database, str):
                    catalog = getattr(struct, "catName", None) or getattr(struct, "cat_name", None)
                    yield one(catalog or "hive", database, of)


def one(catalog: str, database: str, table: str | None) -> SecuredObject:
    folded = normalize_identifier(table) if table is not None else None
    return SecuredObject(normalize_identifier(catalog), normalize_identifier(database), folded)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory: Path = tmp_path_factory.mktemp("touched")
    url = f"sqlite:///{directory / 'metastore.db'}"
    with closing(Database(url)) as database:
        init_schema(database)
    made = Server(url, directory / "warehouse")
    create_catalog(made)
    yield made
    made.close()


def create_catalog(server: Server) -> None:
    """The databases and catalogs in the requests, so that handlers get beyond their first access."""
    for catalog in ("c2", "c3"):
        server.objects.writes.catalogs.create_catalog(
            ttypes.Catalog(name=catalog, locationUri=f"file:///tmp/{catalog}")
        )
    fill(server)


def fill(server: Server) -> None:
    """Creates what is missing."""
    for catalog, name in (("hive", "d1"), ("hive", "d2"), ("c2", "d1"), ("c2", "d2"), ("c3", "d3")):
        database = ttypes.Database(name=name, catalogName=catalog, locationUri=f"file:///tmp/{catalog}/{name}")
        with suppress(ttypes.AlreadyExistsException):
            server.objects.writes.databases.create_database(database)
        for table in ("t1", "t2", "t3"):
            made = table_of(name, table)
            made.catName = catalog
            with suppress(ttypes.AlreadyExistsException):
                server.objects.writes.tables.create_table(made)


ROUNDS = [
    10,
    pytest.param(30, marks=pytest.mark.soak),
    pytest.param(100, marks=[pytest.mark.soak, pytest.mark.long]),
]
"""Their requests are the same in each run."""


@pytest.mark.parametrize("rounds", ROUNDS)
def test_no_object_is_asked_for_that_was_not_decided_upon(server: Server, rounds: int) -> None:
    handlers = all_handlers()
    site = SimpleNamespace(config_value=lambda name: None, counters=dict)
    judged = [name for name, rule in RULES.items() if rule.kind in (RuleKind.OBJECTS, RuleKind.SHOWN)]
    requested = 0
    for seed in range(rounds):
        fill(server)
        for method in judged:
            noting = Noting(server.objects)
            stores = Stores(noting.reads, noting.writes, server.transactions.store, server.log, site, server.auxiliary)  # type: ignore[arg-type]
            arguments = arguments_of(method, Names(random.Random(f"{seed} {method}")))
            sent = copy.deepcopy(arguments)
            try:
                objects, referenced = objects_of(arguments)
            except ttypes.MetaException:
                continue
            decided = objects | referenced
            with suppress(Exception):  # what is named is not there, or is nothing
                handlers[method].function(Call(method, Session("test"), stores), arguments)
            if not decided:
                continue  # that needs the right on everything
            databases = {(known.catalog, known.database) for known in decided}
            for store_method, wanted in noting.requested:
                requested += 1
                is_context = wanted.table is None and any(known.table is not None for known in decided)
                known = (wanted.catalog, wanted.database) in databases if is_context else wanted in decided
                assert known, f"{method} asks {store_method} for {wanted}; decided upon {sorted(decided)}: {sent}"
    assert requested > 50 * rounds


@pytest.mark.parametrize(
    ("method", "arguments", "objects"),
    [
        (
            "exchange_partition",
            {"source_db": "d2", "source_table_name": "s", "dest_db": "@c3#d3", "dest_table_name": "t"},
            {("hive", "d2", "s"), ("c3", "d3", "t")},
        ),
        (
            "add_write_notification_log_in_batch",
            {
                "rqst": ttypes.WriteNotificationLogBatchRequest(
                    db="@c3#d3", requestList=[ttypes.WriteNotificationLogRequest(db="d2", table="t")]
                )
            },
            {("hive", "d2", "t"), ("c3", "d3", None)},
        ),
        ("drop_table_with_environment_context", {"dbname": "D ", "name": " T"}, {("hive", "d", "t")}),
        (
            "alter_table",
            {"dbname": "d", "tbl_name": "t", "new_tbl": ttypes.Table(catName="c2", dbName="e", tableName="u")},
            {("hive", "d", "t"), ("c2", "e", "u")},
        ),
    ],
)
def test_a_name_in_one_place_hides_none_in_another(
    method: str, arguments: dict[str, Any], objects: set[tuple[str, str, str | None]]
) -> None:
    assert objects <= objects_of(METHODS[method].args_class(**arguments)).objects
