"""Configuration: ``load()`` returns a :class:`Configuration`, whose ``settings`` is an immutable tree.

>>> from hms_cache.config import load
>>> load(command_line={"server.port": 0}, environment={}).settings.server.port
0
"""

from hms_cache.config.hive_values import HiveValues
from hms_cache.config.quantities import finite_s
from hms_cache.config.sections import (
    AdminSettings,
    CacheSettings,
    CatalogSettings,
    CompactionSettings,
    DatabaseSettings,
    EventSettings,
    LogSettings,
    ServerSettings,
    TransactionSettings,
    WarehouseSettings,
)
from hms_cache.config.settings import Configuration, Settings
from hms_cache.config.sources import load

__all__ = [
    "AdminSettings",
    "CacheSettings",
    "CatalogSettings",
    "CompactionSettings",
    "Configuration",
    "DatabaseSettings",
    "EventSettings",
    "HiveValues",
    "LogSettings",
    "ServerSettings",
    "Settings",
    "TransactionSettings",
    "WarehouseSettings",
    "finite_s",
    "load",
]
