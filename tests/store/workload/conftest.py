"""Fixtures of the tests of workload management: stores with settings of the test."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from hms_cache.config import Settings
from hms_cache.config.sections import WarehouseSettings, WorkloadSettings
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.auxiliary.auxiliary_store import AuxiliaryStores
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import Database
from hms_cache.store.warehouse import Warehouse
from tests.manual_clock import ManualClock


@dataclass
class Workload:
    """A database, and stores on it."""

    database: Database
    clock: ManualClock
    directory: Path

    def stores(self, **settings: object) -> AuxiliaryStores:
        """The stores of a server with these settings."""
        warehouse = Warehouse(WarehouseSettings(directory=f"file:{self.directory}"))
        values = Settings(workload=WorkloadSettings(**settings))  # type: ignore[arg-type]
        context = StoreContext(self.database, MessageBuilder(clock=self.clock), warehouse, values, self.clock)
        return AuxiliaryStores(context)


@pytest.fixture
def workload(initialized_database: Database, tmp_path: Path) -> Workload:
    """On each kind of database in turn."""
    return Workload(initialized_database, ManualClock(), tmp_path)


@pytest.fixture
def sqlite_workload(sqlite_database: Database, tmp_path: Path) -> Workload:
    """On SQLite, for tests that do not depend on the database."""
    return Workload(sqlite_database, ManualClock(), tmp_path)
