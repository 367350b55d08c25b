"""Fixtures of the tests of partitions and statistics."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_cache.store.engine.database import Database
from tests.store.partitions.catalog import PartitionCatalog


@pytest.fixture
def catalog(initialized_database: Database, tmp_path: Path) -> PartitionCatalog:
    """A fresh catalog on each kind of database in turn."""
    return PartitionCatalog(initialized_database, tmp_path / "warehouse")


@pytest.fixture
def sqlite_catalog(sqlite_database: Database, tmp_path: Path) -> PartitionCatalog:
    """A fresh catalog on SQLite, for tests that do not depend on the database."""
    return PartitionCatalog(sqlite_database, tmp_path / "warehouse")
