"""Fixtures of the consistency tests."""

from __future__ import annotations

import pytest

from hms_cache.store.engine.database import Database
from hms_cache.store.installation.init import init_schema
from tests.databases import closing


@pytest.fixture
def initialize(database_url: str) -> None:
    """Creates the schema in the new database, and only its first rows."""
    with closing(Database(database_url)) as database:
        init_schema(database)
