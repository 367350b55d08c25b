"""Fixtures of the contract suite.

On database servers, one database is used by all tests in turn, since emptying 83 tables takes longer than most tests:
after each test, its objects are dropped through a store, and then the tables must contain what they contained before.
So each test checks that nothing remains.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete

from hms_cache.config import Settings
from hms_cache.config.sections import WarehouseSettings
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import run_write
from hms_cache.store.installation.init import ensure_default_database
from hms_cache.store.object_store import ObjectStore
from hms_cache.store.schema import NEXT_WRITE_ID
from hms_cache.store.warehouse import Warehouse
from tests.conftest import ServerLookup
from tests.manual_clock import ManualClock
from tests.store.contract.harness import StoreUnderTest, rows_of_tables
from tests.store.contract.stores import STORES


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The cache is run over SQLite only: the kind of database below makes no difference to it."""

    def parameters_of(item: pytest.Item) -> dict[str, object]:
        return item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}

    def is_wanted(item: pytest.Item) -> bool:
        parameters = parameters_of(item)
        return parameters.get("store_kind") != "cached" or parameters.get("database_kind") == "sqlite"

    unwanted = [item for item in items if not is_wanted(item)]
    if unwanted:
        config.hook.pytest_deselected(items=unwanted)
        items[:] = [item for item in items if is_wanted(item)]


class ContractDatabases:
    """A database per kind, created at its first use."""

    def __init__(self, servers: ServerLookup) -> None:
        self._servers = servers
        self._databases: dict[str, Database] = {}
        self._rows: dict[str, dict[str, int]] = {}

    def take(self, kind: str) -> Database:
        """The database of the kind: only the schema and the database `default`."""
        if kind not in self._databases:
            database = Database(self._servers(kind).initialized_database())
            run_write(
                database, lambda transaction: ensure_default_database(transaction.connection, "file:/warehouse", 1)
            )
            assert database.features.version
            self._databases[kind] = database
            self._rows[kind] = rows_of_tables(database)
        return self._databases[kind]

    def rows(self, kind: str) -> dict[str, int]:
        """The number of rows in each table before the first test. Each test must leave the same, or the database is
        replaced."""
        return self._rows[kind]

    def discard(self, kind: str) -> None:
        """The next test gets a new one."""
        database = self._databases.pop(kind)
        database.close()
        self._servers(kind).give_back(database.url.render_as_string(hide_password=False))

    def close(self) -> None:
        """Drops all of them."""
        for kind in list(self._databases):
            self.discard(kind)


@pytest.fixture(scope="session")
def contract_databases(database_servers: ServerLookup) -> Iterator[ContractDatabases]:
    databases = ContractDatabases(database_servers)
    yield databases
    databases.close()


@pytest.fixture(params=sorted(STORES))
def store_kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
def store_settings() -> Settings:
    """Overridden by tests that need others."""
    return Settings()


@pytest.fixture
def warehouse_settings(tmp_path: Path) -> WarehouseSettings:
    """Overridden by tests that need others."""
    return WarehouseSettings(directory=f"file:{tmp_path}/warehouse", allowed_locations=("file:/other",))


@pytest.fixture
def under_test(
    store_kind: str,
    database_kind: str,
    contract_databases: ContractDatabases,
    store_settings: Settings,
    warehouse_settings: WarehouseSettings,
    tmp_path: Path,
) -> Iterator[StoreUnderTest]:
    """A store with the database `default` only."""
    (tmp_path / "warehouse").mkdir()
    clock = ManualClock()
    database = contract_databases.take(database_kind)
    context = StoreContext(database, MessageBuilder(clock=clock), Warehouse(warehouse_settings), store_settings, clock)
    is_clean = False
    try:
        with STORES[store_kind](context) as store:
            under_test = StoreUnderTest(store, context, tmp_path / "warehouse")
            yield under_test
        _drop_all(ObjectStore(context))
        with database.write_engine.begin() as connection:  # the files remain, and so do the write ids of their tables
            connection.execute(delete(NEXT_WRITE_ID))
        left = rows_of_tables(database)
        assert left == contract_databases.rows(database_kind), "a test's objects left rows when they were dropped"
        is_clean = True
    finally:
        if not is_clean:
            contract_databases.discard(database_kind)


def _drop_all(store: MetadataStore) -> None:
    for catalog in store.reads.catalogs.get_catalog_names():
        for name in store.reads.databases.get_database_names(catalog):
            if name != "default":
                store.writes.databases.drop_database(DatabaseName(catalog, name), delete_data=False, cascade=True)
            else:
                for table in store.reads.tables.get_table_names(DatabaseName(catalog, name)):
                    store.writes.tables.drop_table(TableName(catalog, name, table), delete_data=False)
        if catalog != "hive":
            store.writes.catalogs.drop_catalog(catalog)


@pytest.fixture
def catalog(under_test: StoreUnderTest) -> StoreUnderTest:
    """The same with a database `d`."""
    under_test.create_database()
    return under_test
