"""Named mutexes between servers, including Java ones: row locks on AUX_TABLE, held until the transaction ends."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import IntegrityError

from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.schema import AUX_TABLE

A = AUX_TABLE.c


class Mutex(StrEnum):
    """Hive's names (4.0 `TxnStore.MUTEX_KEY`)."""

    INITIATOR = "Initiator"
    HOUSEKEEPER = "HouseKeeper"
    TXN_CLEANER = "TxnCleaner"
    COMPACTION_SCHEDULER = "CompactionScheduler"
    MATERIALIZATION_REBUILD = "MaterializationRebuild"


def hold_mutex(connection: Connection, mutex: Mutex) -> None:
    """Waits until no other transaction holds the mutex, and holds it until this transaction ends.

    Raises RetryableConflict if another server has just inserted its row.
    """
    query = select(A.MT_KEY2).where(A.MT_KEY1 == mutex.value, A.MT_KEY2 == 0).with_for_update()
    if connection.execute(query).first() is not None:
        return
    try:
        connection.execute(insert(AUX_TABLE).values(MT_KEY1=mutex.value, MT_KEY2=0))
    except IntegrityError as error:
        raise RetryableConflict(f"the row of mutex {mutex.value} was made at the same moment") from error
