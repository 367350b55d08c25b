"""What is answered from memory."""

from __future__ import annotations

from typing import Literal

from hms_cache.config.quantities import Milliseconds, SizeBytes, Words
from hms_cache.config.setting import Section, setting


class CacheSettings(Section):
    """What is answered from memory, and how sure that has to be."""

    enabled: bool = setting(True, "false: every call is answered from the database.")
    max_staleness_ms: Milliseconds = setting(
        0.0,
        "How old an answer may be. 0: never older than the request (P1); a number: at most so many milliseconds; inf:"
        " whatever the events have told so far, without asking the database.",
        unit="milliseconds",
        reason="A wrong answer costs more than the one shared statement that proves a right one.",
        reloadable=True,
        ge=0,
    )
    budget_bytes: SizeBytes = setting(
        1024**3,
        "Memory for cached objects, as encoded bytes; above it the least recently used tables are dropped (P11).",
        unit="bytes",
        reason="Hive's default for its cache; room for a few million partitions.",
        site_keys=(
            "metastore.cached.rawstore.max.cache.memory",
            "hive.metastore.cached.rawstore.max.cache.memory",
        ),
        ge=1024 * 1024,
    )
    peers: Literal["none", "hive4", "hive3"] = setting(
        "none",
        "Which other metastores write to the same database, beside other hms-cache servers. What those do not log is"
        " not cached.",
    )
    include: Words = setting(
        ("*",),
        "Tables to cache, as database.table patterns with * and ?.",
        reloadable=True,
    )
    exclude: Words = setting(
        (),
        "Tables not to cache, same form; wins over include.",
        reloadable=True,
    )
    refill: Literal["recent", "none"] = setting(
        "recent",
        "Whether a recently used table that an event invalidated is loaded again before somebody asks.",
    )
    warm: Literal["full", "names", "off"] = setting(
        "names",
        "What is loaded at start, while calls are already answered: whole tables with their partitions, the names of"
        " everything, or nothing.",
        reason="Names make absence cheap to answer and cost two statements a database; whole catalogs cost minutes of"
        " database time at every restart, which an operator should choose.",
    )
    usage_file: str = setting(
        "",
        "A file for the list of the tables used most, so that the next start warms them first; empty: no list is kept.",
    )
    write_id_reads: Literal["check", "trust"] = setting(
        "check",
        "Reads that carry a validWriteIdList. check: the list must be covered and the entry current. trust: the list"
        " and the table id decide alone, without a database call; sound where every writer of transactional tables"
        " advances write ids.",
    )
    reads_without_write_ids: Literal["check", "store", "reject"] = setting(
        "check",
        "Reads of transactional tables without such a list: as any other read, always from the database, or refused.",
    )
