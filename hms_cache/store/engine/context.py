"""The parts of the store shared by all entities."""

from __future__ import annotations

from dataclasses import field

from sqlalchemy import Table

from hms_cache.clock import Clock, stored_s
from hms_cache.config import Settings
from hms_cache.expressions import FilterLimits
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.engine.database import Database
from hms_cache.store.warehouse import Warehouse
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from hms_cache.values import frozen


@frozen
class StoreContext:
    """The parts that `ObjectStore` passes to its entities (`Databases`, `Tables`, …). Thread-safe."""

    database: Database
    messages: MessageBuilder
    warehouse: Warehouse
    settings: Settings
    clock: Clock
    server_user: str = "hive"
    """Owner of objects whose creator did not name one: the account that the server runs as."""
    filter_limits: FilterLimits = field(init=False)
    """From the settings. `Database.refused_filters` counts the filters that exceed them."""

    def __post_init__(self) -> None:
        limits = FilterLimits.of(self.settings.catalog, self.database.refused_filters.add)
        object.__setattr__(self, "filter_limits", limits)

    def now_s(self) -> int:
        """The current time in epoch seconds, as creation times are stored."""
        return stored_s(self.clock.epoch_s())

    def ddl_time_s(self) -> int:
        """The current time in epoch seconds for a parameter; as a text it is not limited to times before 2038."""
        return int(self.clock.epoch_s())


class PartOfStore:
    """One entity of the store, or a part of its operations. Thread-safe."""

    def __init__(self, context: StoreContext) -> None:
        self._context = context
        self._database = context.database


def require_table(database: Database, table: Table) -> None:
    """Checks for a table that schemas of older Hive releases lack, or spell in lower case (PostgreSQL).

    To be called outside a transaction, since the first call reads the schema on a connection of its own.

    :raises MetaException: the database does not have the table.
    """
    if not database.features.has(table):
        version = database.features.version
        raise MetaException(f"The metastore schema {version} has no table {table.name} as Hive 4.0 has it")
