"""What every entity of the store works with."""

from __future__ import annotations

from dataclasses import field

from hms_cache.clock import Clock
from hms_cache.config import Settings
from hms_cache.expressions import FilterLimits
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.engine.database import Database
from hms_cache.store.warehouse import Warehouse
from hms_cache.values import frozen


@frozen
class StoreContext:
    """The parts that `ObjectStore` hands to its entities (`Databases`, `Tables`, …). Shared by threads."""

    database: Database
    messages: MessageBuilder
    warehouse: Warehouse
    settings: Settings
    clock: Clock
    server_user: str = "hive"
    """Who owns an object whose creator did not say: the account that the server runs as."""
    filter_limits: FilterLimits = field(init=False)
    """Those of the settings; `Database.refused_filters` counts what they refuse."""

    def __post_init__(self) -> None:
        limits = FilterLimits.of(self.settings.catalog, self.database.refused_filters.add)
        object.__setattr__(self, "filter_limits", limits)

    def now_s(self) -> int:
        """Epoch seconds, as creation and DDL times are stored."""
        return int(self.clock.epoch_s())


class PartOfStore:
    """One entity of the store, or some of its operations. Shared by threads."""

    def __init__(self, context: StoreContext) -> None:
        self._context = context
        self._database = context.database
