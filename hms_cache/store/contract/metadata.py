"""The contract by direction: reads, which a cache may answer, and writes, which it never sees (P9).

Each is given by entity: `reads.tables.get_table(name)`, `writes.partitions.add_partitions(name, …)`.
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
    """Every read that memory may answer. Transactions, privileges and the rest have stores of their own."""

    catalogs: CatalogReads
    databases: DatabaseReads
    tables: TableReads
    partitions: PartitionReads
    statistics: StatisticsReads
    constraints: ConstraintReads
    functions: FunctionReads

    @abstractmethod
    def at_one_moment(self, ask: Callable[[MetadataReads], T]) -> T:
        """What `ask` makes of several reads of the store that it is given, all of which show one moment (P1).

        It may be called twice, so it must only read. Raises what it raises, and DatabaseUnavailable.
        """

    @abstractmethod
    def note_other_answer(self, event_id: int | None = None) -> None:
        """A client is told what the database has by other means than these reads: by the notification log, up to this
        event, or by a write that found something there, which is as of now. Reads that begin later show no less (P3).
        Before the client is told."""


@frozen
class MetadataWrites:
    """Every write of what `MetadataReads` reads."""

    catalogs: CatalogWrites
    databases: DatabaseWrites
    tables: TableWrites
    partitions: PartitionWrites
    statistics: StatisticsWrites
    constraints: ConstraintWrites
    functions: FunctionWrites


class MetadataStore(Protocol):
    """Both directions: those of an `ObjectStore`, or the writes of one and the reads of a cache over it."""

    @property
    def reads(self) -> MetadataReads: ...

    @property
    def writes(self) -> MetadataWrites: ...
