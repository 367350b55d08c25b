"""Fixtures of the tests with real clients. Servers and Spark come from `tests.conftest`, which the tests of jobs
share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ServerStarter
from tests.protocol.releases import ICEBERG_FOR_SPARK, jar

__all__ = ["ServerStarter"]


@pytest.fixture(scope="session")
def iceberg_jar() -> Path:
    """Iceberg's runtime for Spark."""
    return jar(ICEBERG_FOR_SPARK)
