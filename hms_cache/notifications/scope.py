"""What an event may concern: the names that a cache of the catalog has to check.

A scope may be wider than the change, never narrower. Names are normalized as by Hive's ``normalizeIdentifier`` (blanks
stripped, lower case); partition values are unchanged. An event without a catalog belongs to the default catalog: Hive's
direct-SQL listener path leaves the column empty (Hive 4.0 ``DbNotificationListener``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field

from hms_cache.metadata.object_names import DatabaseName, FunctionName, TableName
from hms_cache.metadata.partition_name_codec import PartitionValues as PartitionValues
from hms_cache.values import frozen

_NO_PARTITIONS: Mapping[TableName, frozenset[PartitionValues]] = {}


@frozen
class Scope:
    """The objects an event may concern.

    ``everything``        nothing can be ruled out; the other fields say nothing then.
    ``catalogs``          these catalog objects (not what is in them).
    ``whole_catalogs``    these catalogs with everything in them.
    ``databases``         these database objects alone (not what is in them).
    ``whole_databases``   these databases with all their tables and functions.
    ``tables``            these tables with all that hangs on them (partitions, statistics, constraints).
    ``partitions``        by table: these partitions of it, by values in the order of the partition keys, and what a
                          change of them moves in the table as a whole (counts, lists, statistics).
    ``functions``         these functions.
    ``transactions``      these transactions; ``all_transactions`` if they cannot be told.
    ``foreign_keys``      foreign keys that *end* at one of the named tables, on tables that are not named, may have
                          changed too (a parent was dropped or renamed, or a constraint dropped by its name).
    """

    everything: bool = False
    catalogs: frozenset[str] = frozenset()
    whole_catalogs: frozenset[str] = frozenset()
    databases: frozenset[DatabaseName] = frozenset()
    whole_databases: frozenset[DatabaseName] = frozenset()
    tables: frozenset[TableName] = frozenset()
    partitions: Mapping[TableName, frozenset[PartitionValues]] = field(default_factory=lambda: _NO_PARTITIONS)
    functions: frozenset[FunctionName] = frozenset()
    transactions: Collection[int] = frozenset()
    all_transactions: bool = False
    foreign_keys: bool = False

    def concerns_table(self, table: TableName) -> bool:
        """Whether the table, or anything that belongs to it, may be concerned."""
        return (
            self.everything
            or table in self.tables
            or table in self.partitions
            or table.in_database in self.whole_databases
            or table.catalog in self.whole_catalogs
        )

    def widened_to_databases(self) -> Scope:
        """The next wider scope: every table, partition and function is replaced by its database; without any,
        everything."""
        named: set[DatabaseName] = set(self.databases) | set(self.whole_databases)
        named.update(table.in_database for table in self.tables)
        named.update(table.in_database for table in self.partitions)
        named.update(DatabaseName(function.catalog, function.database) for function in self.functions)
        widest = self.everything or self.all_transactions or self.catalogs or self.whole_catalogs or self.transactions
        if widest or not named:
            return EVERYTHING
        return Scope(whole_databases=frozenset(named), foreign_keys=True)


EVERYTHING = Scope(everything=True)
NOTHING = Scope()


def scope_of_tables(tables: Iterable[TableName], *, foreign_keys: bool = False) -> Scope:
    """These tables with everything that belongs to them."""
    return Scope(tables=frozenset(tables), foreign_keys=foreign_keys)


def scope_of_partitions(table: TableName | None, partitions: Iterable[PartitionValues] | None) -> Scope:
    """These partitions of one table. ``partitions`` None: the whole table; ``table`` None: everything."""
    if table is None:
        return EVERYTHING
    if partitions is None:
        return scope_of_tables([table])
    return Scope(partitions={table: frozenset(partitions)})
