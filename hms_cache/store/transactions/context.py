"""What every operation on transactions works with."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from hms_cache.clock import Clock
from hms_cache.config.sections import CompactionSettings, EventSettings, TransactionSettings
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.thrift_gen.hive_metastore.ttypes import ReplLastIdInfo


class ReplicationMarks(Protocol):
    """Sets the parameters with which replication marks objects, with an event for each object that changes."""

    def set_last_replicated_id(self, transaction: WriteTransaction, info: ReplLastIdInfo) -> None:
        """Set `repl.last.id` on what is named. Raises MetaException for a database or table that does not exist."""
        ...

    def mark_incompatible(self, transaction: WriteTransaction, databases: Collection[str]) -> None:
        """Set `repl.incompatible` on these databases of the default catalog."""
        ...


@dataclass(frozen=True, slots=True)
class TxnContext:
    """Settings, the builder of events and the machine's clock (for durations only). Shared by threads."""

    transactions: TransactionSettings
    compactions: CompactionSettings
    events: EventSettings
    messages: MessageBuilder
    clock: Clock
    use_min_history_level: bool
    """The setting of this name with `auto` for this database filled in."""

    use_min_history_write_id: bool
    """The setting of this name, off where the database has no such table."""

    replication_marks: ReplicationMarks
