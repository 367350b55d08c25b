"""What every entity of the store works with."""

from __future__ import annotations

from dataclasses import dataclass

from hms_cache.clock import Clock
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.settings import StoreSettings
from hms_cache.store.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class StoreContext:
    """The parts that `ObjectStore` hands to its entities (`Databases`, `Tables`, …). Shared by threads."""

    database: Database
    messages: MessageBuilder
    warehouse: Warehouse
    settings: StoreSettings
    clock: Clock

    def now_s(self) -> int:
        """Epoch seconds, as creation and DDL times are stored."""
        return int(self.clock.epoch_s())
