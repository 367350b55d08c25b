"""The parts shared by all operations on transactions."""

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
    """Changes to catalog objects by commits and aborts of replication, each with an event."""

    def set_last_replicated_id(self, transaction: WriteTransaction, info: ReplLastIdInfo) -> None:
        """Sets `repl.last.id` on the named objects. Raises MetaException if a database or table does not exist."""
        ...

    def mark_incompatible(self, transaction: WriteTransaction, databases: Collection[str]) -> None:
        """Sets `repl.incompatible` on these databases of the default catalog."""
        ...

    def record_writes(
        self, transaction: WriteTransaction, txn_id: int, infos: Sequence[WriteEventInfo], now_s: int
    ) -> None:
        """Records the files that a replayed transaction has written here."""
        ...


class LowestOpenTxn:
    """The lowest transaction that may be open, as last read. Thread-safe: threads replace a single value.

    It may be used for a while, since it only grows: no transaction below it is open or will be.
    """

    USED_FOR_S: Final = 0.1
    """A tenth of the time for which a gap counts as open, by which the value lags behind in any case."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: tuple[int, float] | None = None

    def known(self) -> int | None:
        """The value; None if it has to be read again and passed to `seen`."""
        seen = self._seen
        return seen[0] if seen is not None and self._clock.monotonic_s() - seen[1] < self.USED_FOR_S else None

    def seen(self, txn_id: int) -> None:
        """Records a value that was just read."""
        self._seen = txn_id, self._clock.monotonic_s()


class Housekeeper:
    """Progress of this server's background work that visits tables part by part. For its one thread."""

    def __init__(self, clock: Clock) -> None:
        written = COMPLETED_TXN_COMPONENTS.c.CTC_DATABASE, COMPLETED_TXN_COMPONENTS.c.CTC_TABLE
        self.surplus_writes: Final = IndexWalk(clock, *written)
        """Completed writes beyond the number that is kept."""
        self.writes_to_compact: Final = IndexWalk(clock, *written)
        """Completed writes that are numerous enough for a compaction."""
        self.last_with_write_ids: Place | None = None
        """The table after which the search for write ids without a table continues."""


@frozen
class TxnContext:
    """Settings, the event builder, and the machine's clock (for durations only). Thread-safe."""

    transactions: TransactionSettings
    compactions: CompactionSettings
    events: EventSettings
    messages: MessageBuilder
    clock: Clock
    use_min_history_level: bool
    """The setting, with `auto` resolved for this database."""

    use_min_history_write_id: bool
    """The setting, but false if the database has no such table."""

    histories: tuple[Column[Any], ...]
    """Columns of transaction ids in the tables of these settings, as far as the database has them: rows may be left
    from a time with another setting."""

    replication_marks: ReplicationMarks
    lowest_open: LowestOpenTxn = field(init=False)
    housekeeper: Housekeeper = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lowest_open", LowestOpenTxn(self.clock))
        object.__setattr__(self, "housekeeper", Housekeeper(self.clock))
