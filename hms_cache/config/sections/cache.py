"""The cache."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator

from hms_cache.config.quantities import Milliseconds, Seconds, SizeBytes, Words
from hms_cache.config.setting import Section, metastore_keys, setting


def _from_store_class(class_name: str) -> str | None:
    """Converts Hive's store class: CachedStore requests a cache; ObjectStore is the default and requests nothing."""
    return "true" if class_name.rpartition(".")[2] == "CachedStore" else None


def _from_expressions(text: str) -> str:
    """Converts Hive's lists of regular expressions, separated by commas, that must match all of
    catalog.database.table."""
    return ",".join("*" if expression == ".*" else f"/{expression}/" for expression in text.split(",") if expression)


def _from_memory_limit(text: str) -> str | None:
    """Converts Hive's memory limit. A negative size means no limit in Hive; here there always is one."""
    return None if text.startswith("-") else text


class CacheSettings(Section):
    """The cache: which reads memory answers, and under which conditions."""

    enabled: bool = setting(True, site_keys=metastore_keys("rawstore.impl"), from_site=_from_store_class)
    """false: the database answers all calls."""
    max_staleness_ms: Milliseconds = setting(
        0.0,
        reason="A stale answer costs more than the one shared statement that proves a current one.",
        reloadable=True,
        ge=0,
    )
    """Maximum age of an answer. 0: an answer is never older than its request (P1). A number: the maximum age in
    milliseconds. inf: memory answers from the events applied so far, without a position check; then only
    events.poll_interval_s makes writes of other servers visible, and must not be 0."""
    exactness: Literal["check", "lease"] = setting(
        "check",
        reason="A check is correct with any writers that log their events; a lease only with writers that announce"
        " them.",
    )
    """How an exact answer (P1) is proven. check: one shared statement reads the end of the log. lease: no statement is
    needed while this server holds a lease and no member of its set is writing; every server of the set should use the
    same value, and metastores that do not take part in leases must not write to the database. See the section lease."""
    budget_bytes: SizeBytes = setting(
        1024**3,
        reason="Hive's default for its cache; room for a few million partitions.",
        site_keys=metastore_keys("cached.rawstore.max.cache.memory"),
        from_site=_from_memory_limit,
        ge=1024 * 1024,
    )
    """Memory for cached objects, counted as encoded bytes. Above it, the least recently used tables are evicted
    (P11). Column statistics take half of it at most, those of one table, or of its partitions, an eighth."""
    peers: Literal["none", "hive4", "hive3"] = setting("none")
    """Which other metastores write to the same database, apart from hms-cache servers. Kinds of objects whose changes
    they do not log are not cached."""
    include: Words = setting(
        ("*",),
        site_keys=metastore_keys("cached.rawstore.cached.object.whitelist"),
        from_site=_from_expressions,
        reloadable=True,
    )
    """Tables to cache, as database.table patterns with * and ?, or regular expressions between slashes:
    /hive\\.sales\\..*/. They are also matched with catalog.database.table."""
    exclude: Words = setting(
        (),
        site_keys=metastore_keys("cached.rawstore.cached.object.blacklist"),
        from_site=_from_expressions,
        reloadable=True,
    )
    """Tables that are not cached, in the same form. This setting takes precedence over include."""
    refill: Literal["recent", "none"] = setting("recent")
    """Whether a recently used table that an event invalidated is loaded again before the next read."""
    load_at_once_partitions: int = setting(
        300,
        unit="partitions",
        reason="Loading this many takes some 10 ms, about as long as the read itself.",
        ge=0,
    )
    """The first read of the partitions of a table with at most this many partitions loads all of them. For larger
    tables, the database answers until a background load, which a second read starts, is done."""
    max_loads_per_user: int = setting(
        0,
        unit="loads",
        reason="Off: a site with one engine has one user. If several users share the server, half of server.threads"
        " leaves room for the others.",
        ge=0,
    )
    """Maximum number of concurrent loads into the cache for reads of one user. A read that needs another one gets a
    MetaException. Loads for writes are counted, but not refused. 0: no limit."""
    max_loads_per_address: int = setting(
        0, unit="loads", reason="Off: behind a proxy all clients have one address.", ge=0
    )
    """Maximum number of concurrent loads for reads from one client address. 0: no limit."""
    warm: Literal["full", "names", "off"] = setting(
        "names",
        reason="With the names, memory can answer that an object does not exist; they cost two statements a"
        " database. Whole catalogs cost minutes of database time at every restart, which an operator should"
        " choose.",
    )
    """What is loaded at start, while calls are already answered: whole tables with their partitions, the names of
    everything, or nothing."""
    usage_file: str = setting("")
    """File in which the most used tables are listed, so that the next start loads them first. Empty: no list is
    kept."""
    dump_file: str = setting(
        "",
        reason="Off: it takes as much disk space as the cache takes memory, and no other server can use the file.",
    )
    """File for the cache dump, from which the server restores its memory after a restart. The dump is used only if the
    notification log proves its position; then the events since are applied. Empty: no dump."""
    dump_interval_s: Seconds = setting(
        300.0,
        reason="After a crash, the events of the last minutes are applied, which takes seconds.",
        ge=1,
    )
    """Time between two dumps, if something has changed. Another dump is written when the server stops.
    inf: only then."""
    dump_bytes_per_s: SizeBytes = setting(
        64 * 1024**2,
        unit="bytes per second",
        reason="A fraction of a disk's speed, so that a database on the same disk does not wait; a GiB takes 16 s.",
        ge=1024**2,
    )
    """Maximum rate at which a dump is written."""
    write_id_reads: Literal["check", "trust"] = setting("check")
    """Reads with a validWriteIdList. check: the entry must cover the list and be current. trust: the list and the table
    id decide alone, without a database call; correct only if every writer of transactional tables advances write
    ids."""
    reads_without_write_ids: Literal["check", "store", "reject"] = setting("check")
    """Reads of transactional tables without such a list. check: they are answered like any other read. store: the
    database always answers. reject: they are refused."""

    @field_validator("include", "exclude")
    @classmethod
    def _expressions_compile(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        from hms_cache.patterns.java_regex import JavaRegex, JavaRegexError  # bounded by the section limits

        for pattern in patterns:
            expression = expression_of(pattern)
            if expression is not None:
                try:
                    JavaRegex(expression)
                except JavaRegexError as error:
                    raise ValueError(f"{pattern} is not a regular expression: {error}") from error
        return patterns


def expression_of(pattern: str) -> str | None:
    """Returns the regular expression if the pattern is one; None for a pattern with * and ?."""
    return pattern[1:-1] if len(pattern) > 2 and pattern.startswith("/") and pattern.endswith("/") else None
