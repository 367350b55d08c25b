"""``flush``, ``refresh`` and ``warm``: drop entries, load them again, or load them ahead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hms_cache.admin.commands.subject import CommandError, CommandParts, CommandResult, Subject
from hms_cache.batches import batches
from hms_cache.cache.entries import Facet
from hms_cache.cache.policy import CachePolicy
from hms_cache.cache.warming.prewarm import TABLES_A_BATCH, Prewarm
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.metrics.operations import Operation
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException

#: How long to wait for the first position, before which nothing can be loaded.
_POSITION_TIMEOUT_S = 30.0


def flush(parts: CommandParts, subject: Subject, operation: Operation) -> CommandResult:
    """Drops the subject's entries; the next read loads them again. Loads in progress are discarded as well."""
    operation.note = "dropping"
    dropped = _drop(parts, subject)
    operation.done = operation.total = dropped
    return CommandResult(True, f"flushed {subject}: {dropped} tables were cached", {"tables": dropped})


def refresh(parts: CommandParts, subject: Subject, operation: Operation) -> CommandResult:
    """Drops the subject's entries and loads them again; a named table is loaded in any case.

    Raises `DatabaseUnavailableError`, `CommandError` (the table does not exist).
    """
    _require_position(parts)
    requested = _held(parts, subject)
    _drop(parts, subject)
    if subject.table is not None:
        return _load_table(parts, subject, operation, "refreshed")
    operation.total = len(requested)
    loaded = kept = 0
    for batch in _batches(requested):
        if operation.cancelled.is_set():
            return CommandResult(False, f"cancelled after {loaded} of {operation.total}", {"refreshed": loaded})
        # If one of them cannot be kept, the whole batch is discarded: then each is loaded separately.
        kept += len(batch) if _load(parts, batch) else sum(_load(parts, [one]) for one in batch)
        loaded += len(batch)
        operation.done = loaded
    text = f"refreshed {subject}: {kept} of {loaded} facets that were cached"
    details = () if kept == loaded else ("the others changed meanwhile, do not exist any more, or exceed the budget",)
    return CommandResult(True, text, {"refreshed": kept, "cached_before": loaded}, details)


def warm(parts: CommandParts, subject: Subject, operation: Operation) -> CommandResult:
    """Loads what is missing of the subject, tables with their partitions, until the memory budget is nearly full.

    Raises `DatabaseUnavailableError`, `CommandError` (the table does not exist).
    """
    _require_position(parts)
    if subject.table is not None:
        return _load_table(parts, subject, operation, "warmed")
    if subject.database is not None:
        try:
            parts.store.databases.get_database(DatabaseName(*subject.database))
        except NoSuchObjectException as error:
            raise CommandError(f"there is no database {subject}") from error
    reading = parts.cache.reading
    prewarm = Prewarm(
        parts.cache.shared, parts.cache.loader, parts.store, _Narrowed(reading.policy, subject), tables=True
    )
    while prewarm.step():
        progress = prewarm.progress()
        operation.done, operation.total = progress.done, progress.total
        if operation.cancelled.is_set():
            return CommandResult(False, f"cancelled after {progress.done} tables", {"tables": progress.done})
    progress = prewarm.progress()
    total = progress.total if progress.total is not None else progress.done
    if prewarm.ended_early:
        return CommandResult(
            False, f"{progress.done} of {total} tables: {prewarm.ended_early}", {"tables": progress.done}
        )
    return CommandResult(
        True, f"warmed {subject}: {progress.done} of {total} tables", {"tables": progress.done, "total": total}
    )


class _Narrowed(CachePolicy):
    """Restricts another policy to the subject's tables."""

    def __init__(self, inner: CachePolicy, subject: Subject) -> None:
        super().__init__(peers=inner.peers)
        self._inner = inner
        self._subject = subject

    def names_table(self, table: TableName) -> bool:
        return self._subject.includes(table) and self._inner.names_table(table)


def _require_position(parts: CommandParts) -> None:
    if not parts.poller.ensure_applied(0, _POSITION_TIMEOUT_S):
        report = parts.poller.status_report()
        raise CommandError(f"nothing can be loaded: the event poller is {report.status.value} ({report.reason})")


def _drop(parts: CommandParts, subject: Subject) -> int:
    """Drops the subject's entries; returns the number of tables."""
    shared = parts.cache.shared
    with shared.view():
        tables = subject.held_tables(shared)
        loading = [key for key in shared.loads.subjects() if isinstance(key, TableName) and subject.includes(key)]
    if subject.database is None:
        shared.forget_all()
    elif subject.table is not None and subject.partition is not None:
        shared.forget_partitions(subject.table, (subject.partition,))
    else:
        for table in dict.fromkeys([*tables, *loading]):
            shared.forget(table)
        # Whether a table exists, and its owner, is part of its database's names; whether a database exists, of its
        # catalog's.
        if subject.table is not None:
            shared.forget(subject.database, frozenset({Facet.TABLE_NAMES}))
        else:
            shared.forget(subject.database)
            shared.forget(subject.database.catalog, frozenset({Facet.DATABASE_NAMES}))
    return len(tables)


def _held(parts: CommandParts, subject: Subject) -> list[LoadRequest]:
    """The subject's entries that can be loaded as a whole. Statistics are loaded when they are requested."""
    shared = parts.cache.shared
    with shared.view():
        catalogs = [*shared.catalogs] if subject.database is None else []
        databases = [(key, shared.databases[key]) for key in subject.held_databases(shared)]
        tables = [(key, shared.tables[key]) for key in subject.held_tables(shared)]
    # Without the lock: an entry that has changed since is loaded in its new state.
    found = [LoadRequest(key, Facet.DATABASE_NAMES) for key in catalogs]
    for database, entry in databases:
        found.extend(LoadRequest(database, facet) for facet in tuple(entry.facets))
    for table, entry in tables:
        found.extend(LoadRequest(table, facet) for facet in (Facet.TABLE, Facet.CONSTRAINTS) if facet in entry.facets)
        held = entry.facets.get(Facet.PARTITIONS)
        if held is not None and held.complete:
            found.append(LoadRequest(table, Facet.PARTITIONS))
    return found


def _batches(requested: Sequence[LoadRequest]) -> Iterator[list[LoadRequest]]:
    """Several entries per batch; then sets of partitions, one per batch, because such a load takes long."""
    yield from batches([one for one in requested if one.facet is not Facet.PARTITIONS], TABLES_A_BATCH)
    for one in requested:
        if one.facet is Facet.PARTITIONS:
            yield [one]


def _load(parts: CommandParts, requested: Sequence[LoadRequest]) -> bool:
    return parts.cache.loader.load(requested)


def _load_table(parts: CommandParts, subject: Subject, operation: Operation, verb: str) -> CommandResult:
    """Loads one table with its partitions, or one of these."""
    table = subject.table
    assert table is not None
    try:
        found = parts.store.tables.get_table(TableName(*table))
    except NoSuchObjectException as error:
        raise CommandError(f"there is no table {subject}") from error
    if not parts.cache.reading.policy.names_table(table):
        return CommandResult(
            True, f"{subject} is not cached: cache.include and cache.exclude exclude it", {"tables": 0}
        )
    operation.note = "loading"
    operation.total = 1
    requested = [LoadRequest(table, Facet.TABLE)]
    kept = _load(parts, requested)
    shared = parts.cache.shared
    with shared.view():
        entry = shared.tables.get(table)
        excluded = entry is not None and Facet.EXCLUDED in entry.facets
    if excluded:
        return CommandResult(
            True, f"{subject} is not cached: a property of it, of its database, or its kind excludes it", {}
        )
    if kept and found.partitionKeys:
        detail = (subject.partition,) if subject.partition is not None else ()
        kept = _load(parts, [LoadRequest(table, Facet.PARTITIONS, detail)])
    operation.done = 1
    if not kept:
        return CommandResult(False, f"{subject} was read but not cached: it changed or exceeds the budget", {})
    return CommandResult(True, f"{verb} {subject}", {"tables": 1})
