"""A pytest plugin for PyIceberg's own tests: their Hive catalogs, and those that they keep in memory, use our server.

`HMS_CACHE_URI` names the metastore. Omitted are tests without such a catalog, those that need Spark or data written by
Spark, and namespaces of several levels.
"""

from __future__ import annotations

import os
from typing import Any

import pyiceberg.catalog.memory
import pytest
from pyiceberg.catalog.hive import HiveCatalog

_URI = os.environ["HMS_CACHE_URI"]
_OTHERS = {"spark", "session_catalog", "rest_catalog"}
_LEVELS = ("hierarchical", "fixed_test_table_")

_made = HiveCatalog.__init__


def _of_our_metastore(catalog: HiveCatalog, name: str, **properties: str) -> None:
    local = {key: value for key, value in properties.items() if not key.startswith("s3.")}
    _made(catalog, name, **{**local, "uri": _URI})


def _in_memory(name: str, **properties: str) -> HiveCatalog:
    return HiveCatalog(name, **properties)


HiveCatalog.__init__ = _of_our_metastore  # type: ignore[method-assign]
pyiceberg.catalog.memory.InMemoryCatalog = _in_memory  # type: ignore[assignment,misc]


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Keeps those that are run."""
    items[:] = [item for item in items if _is_run(item)]


def _is_run(item: pytest.Function) -> bool:
    name = item.name.partition("[")[2]
    if _OTHERS & set(item.fixturenames) or any(level in name for level in _LEVELS):
        return False
    return "hive" in name if "test_catalog_behaviors" not in item.nodeid else "memory" in name
