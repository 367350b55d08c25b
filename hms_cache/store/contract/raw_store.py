"""`RawStore`: the whole contract in one name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hms_cache.store.contract.catalogs import CatalogStore
from hms_cache.store.contract.constraints import ConstraintStore
from hms_cache.store.contract.databases import DatabaseStore
from hms_cache.store.contract.functions import FunctionStore
from hms_cache.store.contract.partitions import PartitionStore
from hms_cache.store.contract.statistics import StatisticsStore
from hms_cache.store.contract.tables import TableStore

T = TypeVar("T")


class RawStore(
    CatalogStore, DatabaseStore, TableStore, PartitionStore, StatisticsStore, ConstraintStore, FunctionStore
):
    """Everything that may be cached. Transactions, privileges and the rest have stores of their own, never cached."""

    def at_one_moment(self, ask: Callable[[RawStore], T]) -> T:
        """What `ask` makes of several reads of the store that it is given, all of which show one moment (P1).

        It may be called twice, so it must only read. Raises what it raises, and DatabaseUnavailable.
        """
        raise NotImplementedError
