"""What every operation on transactions works with."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from typing import Any, Final, Protocol

from sqlalchemy import Column

from hms_cache.clock import Clock
from hms_cache.config.sections import CompactionSettings, EventSettings, TransactionSettings
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.engine.index_walk import IndexWalk, Place
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.schema import COMPLETED_TXN_COMPONENTS
from hms_cache.thrift_gen.hive_metastore.ttypes import ReplLastIdInfo, WriteEventInfo
from hms_cache.values import frozen


class ReplicationMarks(Protocol):
    """What commits and aborts of replication do to objects of the catalog, with an event for each that changes."""

    def set_last_replicated_id(self, transaction: WriteTransaction, info: ReplLastIdInfo) -> None:
        """Set `repl.last.id` on what is named. Raises MetaException for a database or table that does not exist."""
        ...

    def mark_incompatible(self, transaction: WriteTransaction, databases: Collection[str]) -> None:
        """Set `repl.incompatible` on these databases of the default catalog."""
        ...

    def note_writes(
        self, transaction: WriteTransaction, txn_id: int, infos: Sequence[WriteEventInfo], now_s: int
    ) -> None:
        """Note which files a replayed transaction has written here."""
        ...


class LowestOpenTxn:
    """The last look at the lowest transaction that may be open. Shared by threads: what they replace is one value.

    It may be used for a while, since it only grows: below it there is none, and there will be none.
    """

    USED_FOR_S: Final = 0.1
    """A tenth of the time for which a gap counts as open, and by which it is behind anyway."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: tuple[int, float] | None = None

    def known(self) -> int | None:
        """None: it is to be read, and to be `seen`."""
        seen = self._seen
        return seen[0] if seen is not None and self._clock.monotonic_s() - seen[1] < self.USED_FOR_S else None

    def seen(self, txn_id: int) -> None:
        """It was read just now."""
        self._seen = txn_id, self._clock.monotonic_s()


class Housekeeper:
    """How far the background work of this server has got with what it sees a part of at a time. For its one thread."""

    def __init__(self, clock: Clock) -> None:
        written = COMPLETED_TXN_COMPONENTS.c.CTC_DATABASE, COMPLETED_TXN_COMPONENTS.c.CTC_TABLE
        self.surplus_writes: Final = IndexWalk(clock, *written)
        """Completed writes of which there are more than are kept."""
        self.writes_to_compact: Final = IndexWalk(clock, *written)
        """Completed writes of which there are so many that a compaction is due."""
        self.last_with_write_ids: Place | None = None
        """The table at which the look for write ids without a table goes on."""


@frozen
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

    histories: tuple[Column[Any], ...]
    """Transaction ids of the tables that these settings are about and the database has: rows may be left in them from a
    time with another setting."""

    replication_marks: ReplicationMarks
    lowest_open: LowestOpenTxn = field(init=False)
    housekeeper: Housekeeper = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lowest_open", LowestOpenTxn(self.clock))
        object.__setattr__(self, "housekeeper", Housekeeper(self.clock))
