"""The subject of a command, and its result."""

from __future__ import annotations

from collections.abc import Mapping

from hms_cache.cache.reads.assembly import Cache
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.verification.verify import KeptReplies
from hms_cache.clock import Clock
from hms_cache.errors import HmsCacheError
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.metadata.object_names import DatabaseName, TableName, database_name, table_name
from hms_cache.metadata.partition_name_codec import values_of_partition_name
from hms_cache.notifications.poller import Poller
from hms_cache.store.snapshots import StoreReads
from hms_cache.values import frozen

_MAX_DIGITS = 18
"""Every number with this many digits fits into 64 bits."""


class CommandError(HmsCacheError):
    """The command cannot be carried out as given."""


@frozen
class CommandParts:
    """The parts of a server on which commands operate."""

    cache: Cache
    poller: Poller
    store: StoreReads
    """The database itself, not the cache."""
    clock: Clock
    kept_replies: KeptReplies | None = None
    """Reads from the database what is kept as an encoded reply."""


@frozen
class CommandResult:
    """``summary`` is a sentence for people; ``details`` are further lines, ``numbers`` the same for programs."""

    ok: bool
    summary: str
    numbers: Mapping[str, int]
    details: tuple[str, ...] = ()


@frozen
class Subject:
    """Everything, a database, a table, or a partition of one, by normalized names."""

    database: DatabaseName | None = None
    table: TableName | None = None
    partition: tuple[str, ...] | None = None
    partition_name: str = ""

    def __str__(self) -> str:
        if self.table is not None:
            text = f"{self.table.database}.{self.table.table}"
            catalog = self.table.catalog
        elif self.database is not None:
            text, catalog = self.database.database, self.database.catalog
        else:
            return "everything"
        if catalog != DEFAULT_CATALOG:
            text = f"{catalog}.{text}"
        return f"{text} {self.partition_name}" if self.partition_name else text

    def includes(self, table: TableName) -> bool:
        """Whether the table belongs to it."""
        if self.table is not None:
            return table == self.table
        return self.database is None or table.in_database == self.database

    def held_tables(self, shared: SharedCache) -> list[TableName]:
        """Its tables that have an entry. Called under the lock; no other tables are visited."""
        if self.table is not None:
            return [self.table] if self.table in shared.tables else []
        if self.database is not None:
            return [*shared.indexes.by_database.get(self.database, ())]
        return [*shared.tables]

    def held_databases(self, shared: SharedCache) -> list[DatabaseName]:
        """Its databases that have an entry. Called under the lock."""
        if self.table is not None:
            return []
        if self.database is not None:
            return [self.database] if self.database in shared.databases else []
        return [*shared.databases]


def subject_of(parameters: Mapping[str, str]) -> Subject:
    """Parses the query's `catalog`, `database`, `table` and `partition`. Raises `CommandError`."""
    catalog, database = parameters.get("catalog"), parameters.get("database")
    table, partition = parameters.get("table"), parameters.get("partition")
    if table and not database:
        raise CommandError("a table needs its database")
    if partition and not table:
        raise CommandError("a partition needs its table")
    if not database:
        if catalog:
            raise CommandError("a catalog needs a database")
        return Subject()
    if not table:
        return Subject(database_name(catalog, database))
    values = values_of_partition_name(partition) if partition else None
    if partition and values is None:
        raise CommandError(f"{partition!r} is not a partition's name: KEY=VALUE/KEY=VALUE")
    named = table_name(catalog, database, table)
    return Subject(named.in_database, named, values, partition or "")


def whole_number(parameters: Mapping[str, str], name: str) -> int | None:
    """The parameter as a non-negative number; None if it is missing. Raises `CommandError`."""
    text = parameters.get(name, "")
    if not text:
        return None
    number = number_in(text)
    if number is None:
        raise CommandError(f"{name} must be a number of 0 or more with at most {_MAX_DIGITS} digits, not {text[:80]!r}")
    return number


def number_in(text: str) -> int | None:
    """The number that consists of these digits; None for any other text, and for too many digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else None
