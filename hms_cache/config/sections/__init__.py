"""The settings; each module contains one or two sections.

A numeric default is declared with its reason. A setting that also exists in Hive lists Hive's keys (``site_keys``) and
has the default of Hive 4.0.1, unless the reason says otherwise.
"""

from hms_cache.config.sections.authentication import AuthenticationSettings
from hms_cache.config.sections.authorization import AuthorizationSettings
from hms_cache.config.sections.cache import CacheSettings
from hms_cache.config.sections.catalog import CatalogSettings
from hms_cache.config.sections.database import DatabaseSettings
from hms_cache.config.sections.events import EventSettings
from hms_cache.config.sections.lease import LeaseSettings
from hms_cache.config.sections.limits import LimitsSettings
from hms_cache.config.sections.operation import AdminSettings, LogSettings
from hms_cache.config.sections.security import SecuritySettings
from hms_cache.config.sections.server import ServerSettings
from hms_cache.config.sections.transactions import CompactionSettings, TransactionSettings
from hms_cache.config.sections.warehouse import WarehouseSettings
from hms_cache.config.sections.workload import WorkloadSettings

__all__ = [
    "AdminSettings",
    "AuthenticationSettings",
    "AuthorizationSettings",
    "CacheSettings",
    "CatalogSettings",
    "CompactionSettings",
    "DatabaseSettings",
    "EventSettings",
    "LeaseSettings",
    "LimitsSettings",
    "LogSettings",
    "SecuritySettings",
    "ServerSettings",
    "TransactionSettings",
    "WarehouseSettings",
    "WorkloadSettings",
]
