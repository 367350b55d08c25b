"""Entries: what is held of one subject, which is a catalog, a database or a table, as a set of facets.

A facet is a part of a subject that is loaded and dropped as a whole. All facets of all entries are true at the one
applied position of the cache; none has a position of its own.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    Database,
    Function,
    SQLAllTableConstraints,
    Table,
    TableMeta,
)
from hms_cache.txn.valid_write_ids import ValidWriteIdList

if TYPE_CHECKING:
    from hms_cache.cache.partitions.partition_set import PartitionSet
    from hms_cache.cache.statistics_by_column import CachedStatistics

CatalogKey = str
Key = CatalogKey | DatabaseName | TableName


class Facet(enum.Enum):
    """The parts of the three kinds of subjects. The value is the label in metrics."""

    DATABASE_NAMES = "database_names"
    """Catalog: all names of its databases, ascending (complete)."""

    DATABASE = "database"
    """Database: the Database struct."""
    TABLE_NAMES = "table_names"
    """Database: a TableMeta for each of its tables, by name (complete)."""
    FUNCTIONS = "functions"
    """Database: all its functions, by name (complete)."""

    TABLE = "table"
    """Table: the Table struct; its tag is stored next to it in the entry."""
    CONSTRAINTS = "constraints"
    """Table: all its constraints (complete)."""
    PARTITIONS = "partitions"
    """Table: a `PartitionSet`, whose segments are complete or hold single partitions."""
    TABLE_STATISTICS = "table_statistics"
    """Table: column statistics by question (engine, columns). That a column has none is an answer, too."""
    PARTITION_STATISTICS = "partition_statistics"
    """Table: column statistics of partitions, and aggregates over partitions, by question."""
    EXCLUDED = "excluded"
    """Table: a note that its properties, or those of its database, exclude it from the cache."""

    # There is one object of each. Enum's own hash is a function in Python, and reads use dictionaries of facets.
    __hash__ = object.__hash__


TABLE_FACETS = frozenset(
    {
        Facet.TABLE,
        Facet.CONSTRAINTS,
        Facet.PARTITIONS,
        Facet.TABLE_STATISTICS,
        Facet.PARTITION_STATISTICS,
        Facet.EXCLUDED,
    }
)
STATISTICS = frozenset({Facet.TABLE_STATISTICS, Facet.PARTITION_STATISTICS})
DATABASE_FACETS = frozenset({Facet.DATABASE, Facet.TABLE_NAMES, Facet.FUNCTIONS})
CATALOG_FACETS = frozenset({Facet.DATABASE_NAMES})


if TYPE_CHECKING:
    _StatisticsFacet: TypeAlias = Literal[Facet.TABLE_STATISTICS, Facet.PARTITION_STATISTICS]

    class Facets(dict[Facet, Any]):
        """The loaded facets of one subject. A dictionary in which mypy knows the type of each facet."""

        @overload  # type: ignore[override]
        def get(self, facet: Literal[Facet.DATABASE_NAMES], /) -> list[str] | None: ...
        @overload
        def get(self, facet: Literal[Facet.DATABASE], /) -> Database | None: ...
        @overload
        def get(self, facet: Literal[Facet.TABLE_NAMES], /) -> dict[str, TableMeta] | None: ...
        @overload
        def get(self, facet: Literal[Facet.FUNCTIONS], /) -> list[Function] | None: ...
        @overload
        def get(self, facet: Literal[Facet.TABLE], /) -> Table | None: ...
        @overload
        def get(self, facet: Literal[Facet.CONSTRAINTS], /) -> SQLAllTableConstraints | None: ...
        @overload
        def get(self, facet: Literal[Facet.PARTITIONS], /) -> PartitionSet | None: ...
        @overload
        def get(self, facet: _StatisticsFacet, /) -> CachedStatistics | None: ...
        @overload
        def get(self, facet: Literal[Facet.EXCLUDED], /) -> Literal[True] | None: ...
        @overload
        def get(self, facet: Facet, default: Any = None, /) -> Any: ...
        def get(self, facet: Facet, default: Any = None, /) -> Any: ...

        @overload
        def __getitem__(self, facet: Literal[Facet.DATABASE_NAMES], /) -> list[str]: ...
        @overload
        def __getitem__(self, facet: Literal[Facet.DATABASE], /) -> Database: ...
        @overload
        def __getitem__(self, facet: Literal[Facet.TABLE_NAMES], /) -> dict[str, TableMeta]: ...
        @overload
        def __getitem__(self, facet: Literal[Facet.FUNCTIONS], /) -> list[Function]: ...
        @overload
        def __getitem__(self, facet: Literal[Facet.TABLE], /) -> Table: ...
        @overload
        def __getitem__(self, facet: Literal[Facet.CONSTRAINTS], /) -> SQLAllTableConstraints: ...
        @overload
        def __getitem__(self, facet: Literal[Facet.PARTITIONS], /) -> PartitionSet: ...
        @overload
        def __getitem__(self, facet: _StatisticsFacet, /) -> CachedStatistics: ...
        @overload
        def __getitem__(self, facet: Literal[Facet.EXCLUDED], /) -> Literal[True]: ...
        @overload
        def __getitem__(self, facet: Facet, /) -> Any: ...
        def __getitem__(self, facet: Facet, /) -> Any: ...

else:
    Facets: TypeAlias = dict


@dataclass(slots=True)
class Entry:
    """The loaded facets of one subject. Guarded by the lock of its `SharedCache`."""

    key: Key
    facets: Facets = field(default_factory=Facets)
    weights: dict[Facet, int] = field(default_factory=dict)
    """Bytes that each facet is charged with."""
    tag: ValidWriteIdList | None = None
    """The write ids as of which a transactional table's entry is valid. None: unknown, so requests with a write-id list
    bypass the entry."""
    table_id: int | None = None
    is_transactional: bool = False
    encoded_table: bytes | None = None
    """The Table struct in Thrift's binary encoding, as long as it is held: answers with many tables are spliced."""
    has_commit_parameters: bool = False
    """Whether the table has parameters that a `commit_txn` may change without naming the table (keys `_meta…`)."""
    fence: int = -1
    """The event up to which the last load of a part of it was true. Later events did not concern it."""
    load_s: float = 0.0
    """Duration of that load."""
    last_read: float = 0.0
    reads: int = 0
    """Reads answered from it, except those counted by answers that are still held: see `SharedCache.reads_of`."""
    uncovered: int = 0
    """Reads since the tag was last read whose write-id list was not covered, although the tag goes as far as the
    list."""
    version: int = 0
    """Counts changes: an answer made from one version is not valid for the next."""
    answers: set[bytes] = field(default_factory=set)
    """Bytes of the requests whose encoded answers are held for this entry."""

    def weight(self) -> int:
        """Bytes charged for the entry."""
        return sum(self.weights.values())


def has_commit_parameters(table: Table) -> bool:
    """Whether a `commit_txn` may change the table without naming it: it sets existing parameters `_meta…`."""
    return any(name.startswith("_meta") for name in table.parameters or ())
