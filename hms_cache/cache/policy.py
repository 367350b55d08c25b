"""What may be cached: depends on patterns, on properties of tables and databases, and on what other writers do not log.

Properties: `hms_cache.sync` = false and Impala's `impala.disableHmsSync` = true keep a table, or everything in a
database, out of the cache. The table's property takes precedence over the database's, as in Impala; on one object, ours
takes precedence over Impala's. After a change from true to false, Impala needs an INVALIDATE METADATA, because it
skipped events meanwhile. Here the object was not cached meanwhile, and the ALTER event with the change makes the next
read load it.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence

from hms_cache.cache.entries import Facet
from hms_cache.config.sections.cache import expression_of
from hms_cache.metadata.object_names import TableName
from hms_cache.patterns.java_regex import JavaRegex

SYNC_PROPERTY = "hms_cache.sync"
IMPALA_PROPERTY = "impala.disableHmsSync"

ALL_PEERS = frozenset({"none", "hive4", "hive3"})

CACHEABLE_WITH: Mapping[Facet, frozenset[str]] = {
    Facet.DATABASE_NAMES: ALL_PEERS,
    # Hive 4 logs no event for altering only the location, the description or the replication properties of a database.
    # A site with both kinds lists the older one, so hive3 must not allow more than hive4.
    Facet.DATABASE: frozenset({"none"}),
    Facet.TABLE_NAMES: ALL_PEERS,
    # Hive logs no event for alter_function.
    Facet.FUNCTIONS: frozenset({"none"}),
    Facet.TABLE: ALL_PEERS,
    # Hive 3.1 logs no default and no check constraints.
    Facet.CONSTRAINTS: frozenset({"none", "hive4"}),
    Facet.PARTITIONS: ALL_PEERS,
    # Hive 3.1 logs no statistics.
    Facet.TABLE_STATISTICS: frozenset({"none", "hive4"}),
    Facet.PARTITION_STATISTICS: frozenset({"none", "hive4"}),
    Facet.EXCLUDED: ALL_PEERS,
}
"""By facet, the other writers on the database (`cache.peers`) with which it may be cached. Facets whose changes a
writer does not log are excluded. Source: what Hive 3.1 and 4.x change without an event, as found by the tests with Java
as a peer. Single unlogged changes of kinds that are logged otherwise are listed in docs/consistency.md (what is not
seen)."""


class CachePolicy:
    """The settings `include`, `exclude` and `peers`. Immutable; replaced as a whole on a reload."""

    def __init__(self, include: Sequence[str] = ("*",), exclude: Sequence[str] = (), peers: str = "none") -> None:
        self._include = _patterns(include)
        self._exclude = _patterns(exclude)
        self._all = tuple(include) == ("*",) and not exclude
        self.peers = peers

    def may_cache(self, facet: Facet) -> bool:
        """Whether every writer logs changes of this facet."""
        return self.peers in CACHEABLE_WITH[facet]

    def names_table(self, table: TableName) -> bool:
        """Whether the patterns include the table; they are matched against `database.table` and
        `catalog.database.table`."""
        if self._all:
            return True
        short, full = f"{table.database}.{table.table}", ".".join(table)
        included = any(matches(short) or matches(full) for matches in self._include)
        return included and not any(matches(short) or matches(full) for matches in self._exclude)


def _patterns(patterns: Sequence[str]) -> list[Callable[[str], object]]:
    r"""Names are in lower case; a regular expression may hold classes such as \S, so it is not changed itself.

    Tables get their names from clients: neither kind of pattern backtracks (`fnmatch` never tries a star again).
    """
    return [
        re.compile(fnmatch.translate(pattern.lower())).fullmatch
        if (expression := expression_of(pattern)) is None
        else JavaRegex(expression, any_case=True).matches
        for pattern in patterns
    ]


def properties_allow(table_parameters: Mapping[str, str] | None, database_parameters: Mapping[str, str] | None) -> bool:
    """Whether the properties of a table and of its database allow caching; the table's take precedence."""
    for parameters in (table_parameters, database_parameters):
        answer = sync_property(parameters or {})
        if answer is not None:
            return answer
    return True


def sync_property(parameters: Mapping[str, str]) -> bool | None:
    """What the properties of one object say; None: nothing."""
    own = parameters.get(SYNC_PROPERTY)
    if own is not None:
        return own.strip().lower() != "false"
    impala = parameters.get(IMPALA_PROPERTY)
    if impala is not None:
        return impala.strip().lower() != "true"
    return None
