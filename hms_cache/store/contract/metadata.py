"""The contract by direction: reads, which a cache may answer, and writes, which it never sees (P9).

Methods are grouped by entity: `reads.tables.get_table(name)`, `writes.partitions.add_partitions(name, …)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol, TypeVar

from hms_cache.store.contract.catalogs import CatalogReads, CatalogWrites
from hms_cache.store.contract.constraints import ConstraintReads, ConstraintWrites
from hms_cache.store.contract.databases import DatabaseReads, DatabaseWrites
from hms_cache.store.contract.functions import FunctionReads, FunctionWrites
from hms_cache.store.contract.partitions import PartitionReads, PartitionWrites
from hms_cache.store.contract.statistics import StatisticsReads, StatisticsWrites
from hms_cache.store.contract.tables import TableReads, TableWrites
from hms_cache.values import frozen

T = TypeVar("T")


class MetadataReads(ABC):
    """Every read that memory may answer. Transactions, privileges and other objects have their own stores."""

    catalogs: CatalogReads
    databases: DatabaseReads
    tables: TableReads
    partitions: PartitionReads
    statistics: StatisticsReads
    constraints: ConstraintReads
    functions: FunctionReads

    @abstractmethod
    def in_one_snapshot(self, read: Callable[[MetadataReads], T]) -> T:
        """Returns the result of `read`, whose reads of the given store all show one snapshot (P1).

        `read` may be called twice, so it must only read. Raises what `read` raises, and DatabaseUnavailable.
        """

    @abstractmethod
    def record_other_answer(self, event_id: int | None = None) -> None:
        """Records that a client learns of the database's state by other means than these reads, so that reads that
        begin later show no older state (P3). `event_id`: the client gets the notification log up to this event. None: a
        write found existing objects, which are as of now. To be called before the client gets its reply."""


@frozen
class MetadataWrites:
    """Every write of the objects that `MetadataReads` reads."""

    catalogs: CatalogWrites
    databases: DatabaseWrites
    tables: TableWrites
    partitions: PartitionWrites
    statistics: StatisticsWrites
    constraints: ConstraintWrites
    functions: FunctionWrites


class MetadataStore(Protocol):
    """Both directions: those of an `ObjectStore`, or its writes and the reads of a cache over it."""

    @property
    def reads(self) -> MetadataReads: ...

    @property
    def writes(self) -> MetadataWrites: ...
