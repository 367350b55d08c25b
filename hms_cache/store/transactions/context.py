"""What every operation on transactions works with."""

from __future__ import annotations

from dataclasses import dataclass

from hms_cache.clock import Clock
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.transactions.options import TxnOptions


@dataclass(frozen=True, slots=True)
class TxnContext:
    """Options, the builder of events and the machine's clock (for durations only). Shared by threads."""

    options: TxnOptions
    messages: MessageBuilder
    clock: Clock
    use_min_history_level: bool
    """The option of this name with its default for this database filled in."""

    use_min_history_write_id: bool
    """The option of this name, off where the database has no such table."""
