"""``/blind-spots``: changes without an event, and how this server handles each."""

from __future__ import annotations

from hms_cache.admin.pages.context import PageContext
from hms_cache.cache.entries import Facet
from hms_cache.cache.policy import CACHEABLE_WITH
from hms_cache.notifications.poller_status import PollerStatus
from hms_cache.values import frozen


@frozen
class CachedKind:
    """A kind of object, and whether it may be cached beside the writers in `cache.peers`."""

    kind: str
    cached: bool
    reason: str


@frozen
class BlindSpot:
    """A change without an event."""

    change: str
    writer: str
    answer: str
    """How this server avoids wrong answers, or what an operator has to do."""
    remedy: str


@frozen
class BlindSpots:
    """The page."""

    peers: str
    cache_enabled: bool
    unlogged_writer: str
    """The proof, if one was found, that a writer does not log its changes; empty otherwise."""
    kinds: tuple[CachedKind, ...]
    spots: tuple[BlindSpot, ...]


_KINDS = {
    Facet.DATABASE_NAMES: "names of databases",
    Facet.DATABASE: "databases",
    Facet.TABLE_NAMES: "names of tables",
    Facet.FUNCTIONS: "functions",
    Facet.TABLE: "tables",
    Facet.CONSTRAINTS: "constraints",
    Facet.PARTITIONS: "partitions",
    Facet.TABLE_STATISTICS: "column statistics of tables",
    Facet.PARTITION_STATISTICS: "column statistics of partitions",
}

_WHY_NOT = {
    Facet.DATABASE: "Hive 4 logs no event when it alters a database's location or description",
    Facet.FUNCTIONS: "Hive logs no event when it alters a function",
    Facet.CONSTRAINTS: "Hive 3.1 logs no default and no check constraints",
    Facet.TABLE_STATISTICS: "Hive 3.1 logs no statistics",
    Facet.PARTITION_STATISTICS: "Hive 3.1 logs no statistics",
}

_NEVER = (
    ("catalogs, data connectors", "no writer logs them"),
    ("roles, privileges, tokens, master keys", "no writer logs them"),
    ("schema registry, resource plans, scheduled queries", "no writer logs them"),
    ("materialized views", "renames of the tables they read do not name them"),
    ("transactions, locks, compactions", "requests need their current state"),
)

_SPOTS = (
    BlindSpot(
        "A transaction's commit sets parameters of a table (keys that begin with _meta)",
        "any metastore",
        "tables that have such parameters are dropped at every commit",
        "none is needed",
    ),
    BlindSpot(
        "Manual SQL, schematool, metatool on the metastore's database",
        "administrators",
        "cannot be seen; a table that appears without its event is noticed, and the poller stops then (ERROR)",
        "hms-cache flush afterwards, hms-cache verify when in doubt",
    ),
    BlindSpot(
        "A metastore without a transactional listener commits changes and logs them later, or never",
        "a foreign metastore without DbNotificationListener in its configuration",
        "cannot be seen before the event comes",
        "hms-cache check --peer URI tells; configure the listener, or set cache.enabled = false",
    ),
    BlindSpot(
        "Hive alters a function; Hive 4 alters the location or description of a database; Hive 3.1 changes statistics,"
        " default or check constraints",
        "foreign metastores",
        "what they do not log is not cached when cache.peers names them",
        "set cache.peers to the oldest of them",
    ),
    BlindSpot(
        "Hive 3.1 claims new column statistics in COLUMN_STATS_ACCURATE; Hive 4 takes the claim of a transactional"
        " table back while it merges statistics",
        "foreign metastores",
        "cannot be seen before the next event of the table or partition",
        "hms-cache refresh of the table; keep transactional tables that they analyze beside writes out of the cache",
    ),
    BlindSpot(
        "Hive 4 drops a database of type REMOTE",
        "foreign metastores",
        "cannot be seen",
        "hms-cache flush of the database",
    ),
    BlindSpot(
        "Files are written into or deleted from a directory without telling the metastore",
        "Spark's save to a path, distcp, hdfs dfs",
        "nothing is answered wrong: the metastore keeps no list of files; statistics stay as they were",
        "write through tables, or gather statistics afterwards; MSCK REPAIR TABLE for new partitions",
    ),
    BlindSpot(
        "Counters of rows that changed beneath a materialized view",
        "Hive's commits",
        "materialized views are not cached",
        "none is needed",
    ),
    BlindSpot(
        "Read-only and timed-out transactions of older Hive",
        "foreign metastores",
        "write-id tags change by logged events only; a read whose list is newer goes to the database",
        "none is needed",
    ),
)


def blind_spots(context: PageContext) -> BlindSpots:
    """The page with the current state."""
    sources = context.sources
    peers = sources.configuration.settings.cache.peers
    kinds = [
        CachedKind(
            text,
            cached := peers in CACHEABLE_WITH[facet],
            "every change is logged" if cached else _WHY_NOT.get(facet, "not every change is logged"),
        )
        for facet, text in _KINDS.items()
    ]
    kinds += [CachedKind(text, False, reason) for text, reason in _NEVER]
    unlogged = ""
    if sources.poller is not None:
        report = sources.poller.status_report()
        unlogged = report.reason if report.status is PollerStatus.ERROR else ""
    return BlindSpots(peers, sources.cache is not None, unlogged, tuple(kinds), _SPOTS)
