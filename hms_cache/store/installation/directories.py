"""Finds directories without a row, and rows without their directory, as crashes, restores and other programs leave
them.

Only reads. Limited like listings: `warehouse.listing_max_entries` names and `warehouse.listing_timeout_s` for each of
the two checks.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlalchemy import Connection, func, select

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.dialects import CharacterCount
from hms_cache.store.file_access import declared_locations
from hms_cache.store.schema import CTLGS, DBS, PARTITION_KEYS, PARTITIONS, SDS, TBLS
from hms_cache.store.warehouse import AllowedLocation, Location, Warehouse
from hms_cache.store.warehouse.local_files import DELETED_PREFIX, is_hidden
from hms_cache.store.warehouse.move_records import RECORD_PREFIX
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

#: Locations kept in memory, some 300 bytes each with their parent directories. If there are more partitions, only those
#: outside their tables' directories are compared; if there are more of these as well, none.
_MAX_PARTITIONS = 200_000

#: Directories that are listed by name; the rest are counted.
_MAX_NAMED = 20


class Findings(Protocol):
    """The report to which findings are added."""

    def warning(self, problem: str, remedy: str) -> None: ...


class _Exhausted(Exception):
    """The limit on names or time has been reached."""


class _Budget:
    """The remaining limit."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._entries = warehouse.settings.listing_max_entries
        self._deadline_s = time.monotonic() + warehouse.settings.listing_timeout_s

    def take(self) -> None:
        """Counts one more name. Raises _Exhausted."""
        self._entries -= 1
        if self._entries < 0 or time.monotonic() > self._deadline_s:
            raise _Exhausted


@dataclass(slots=True)
class _CatalogLocations:
    """The locations in the database, each in its first spelling."""

    databases: set[Location] = field(default_factory=set)
    tables: dict[Location, int] = field(default_factory=dict)
    """Levels of partition directories below, by directory."""

    partitions: set[Location] = field(default_factory=set)
    has_partitions: bool = True
    """False: there are too many to compare; only those outside their tables' directories are included."""

    has_others: bool = True
    """False: those outside are too many to compare as well."""

    above: set[Location] = field(default_factory=set)
    """Parent directories of all these."""

    declared: tuple[Location, ...] = ()
    of_tables: set[Location] = field(default_factory=set)
    of_partitions: set[Location] = field(default_factory=set)
    """Locations as stored."""

    def objects(self) -> Iterator[Location]:
        yield from sorted(self.of_tables, key=str)
        yield from sorted(self.of_partitions, key=str)


def check_directories(findings: Findings, warehouse: Warehouse, database: Database) -> None:
    """Adds one warning for directories without a row, one for rows without a directory, and one if a limit was
    exceeded."""
    if not warehouse.manages_files:
        return
    with database.loading() as connection:
        known = _read(connection, warehouse)
    unfinished = []
    if not known.has_partitions:
        but = " (those outside of their tables' directories were)" if known.has_others else ""
        unfinished.append(f"partitions: there are more than {_MAX_PARTITIONS:,}{but}")
    for what, report in (("directories without a row", _report_orphans), ("rows without a directory", _report_missing)):
        if not report(findings, warehouse, known):
            unfinished.append(what)
    if unfinished:
        findings.warning(
            f"not all directories were compared with the database: {', '.join(unfinished)}",
            "Raise warehouse.listing_max_entries and warehouse.listing_timeout_s for this command.",
        )


def _read(connection: Connection, warehouse: Warehouse) -> _CatalogLocations:
    """Reads all locations, in a fixed number of statements."""
    known = _CatalogLocations(declared=declared_locations(connection, warehouse))

    def parsed(text: str | None) -> Location | None:
        try:
            return warehouse.location(text) if text else None
        except MetaException:
            return None

    catalogs = connection.execute(select(CTLGS.c.LOCATION_URI)).scalars()
    databases = connection.execute(select(DBS.c.DB_LOCATION_URI)).scalars()
    found = (*map(parsed, (*catalogs, *databases)), *known.declared)
    known.databases.update(location.spellings[0] for location in found if location is not None)
    levels = (
        select(func.count())
        .select_from(PARTITION_KEYS)
        .where(PARTITION_KEYS.c.TBL_ID == TBLS.c.TBL_ID)
        .scalar_subquery()
    )
    tables = select(SDS.c.LOCATION, levels).select_from(TBLS.join(SDS, SDS.c.SD_ID == TBLS.c.SD_ID))
    for text, depth in connection.execute(tables):
        if (location := parsed(text)) is not None:
            known.of_tables.add(location)
            same = location.spellings[0]
            known.tables[same] = max(depth, known.tables.get(same, 0))
    texts = _locations_of_partitions(connection)
    if len(texts) > _MAX_PARTITIONS:
        known.has_partitions = False
        texts = _locations_of_partitions(connection, only_elsewhere=True)
        known.has_others = len(texts) <= _MAX_PARTITIONS
    for text in texts if known.has_others else ():
        if (location := parsed(text)) is not None:
            known.of_partitions.add(location)
            known.partitions.add(location.spellings[0])
    for location in (*known.databases, *known.tables, *known.partitions):
        for directory in location.ancestors:
            if directory in known.above:
                break
            known.above.add(directory)
    return known


def _locations_of_partitions(connection: Connection, *, only_elsewhere: bool = False) -> Sequence[str | None]:
    """Returns at most one more than are compared. `only_elsewhere`: only those that, as texts, are not below the
    directories of their tables."""
    statement = select(SDS.c.LOCATION).select_from(PARTITIONS.join(SDS, SDS.c.SD_ID == PARTITIONS.c.SD_ID))
    if only_elsewhere:
        of_table = SDS.alias()
        below = of_table.c.LOCATION.concat("/")
        statement = (
            statement.join(TBLS, TBLS.c.TBL_ID == PARTITIONS.c.TBL_ID)
            .join(of_table, of_table.c.SD_ID == TBLS.c.SD_ID)
            .where(func.substr(SDS.c.LOCATION, 1, CharacterCount(below)) != below)
        )
    return connection.execute(statement.limit(_MAX_PARTITIONS + 1)).scalars().all()


def _report_orphans(findings: Findings, warehouse: Warehouse, known: _CatalogLocations) -> bool:
    """Returns False if not everything could be checked."""
    budget = _Budget(warehouse)
    orphans: list[AllowedLocation] = []
    roots = [warehouse.managed_root, warehouse.external_root or warehouse.managed_root, *known.declared]
    is_whole = True
    try:
        for root in dict.fromkeys(roots):
            if any(root.is_inside(other) for other in roots):
                continue
            place = warehouse.allow(root, known.declared)
            if place is not None:
                orphans.extend(_orphans_below(warehouse, known, place, budget))
    except _Exhausted:
        is_whole = False
    except MetaException as error:
        findings.warning(f"the warehouse cannot be listed: {error.message}", "Give this account the right to read it.")
    if orphans:
        findings.warning(
            f"no row names {_counted(orphans, 'director')}: {_named(_described(warehouse, one) for one in orphans)}",
            "They were left by an interrupted drop or move, or put there by another program. Inspect them, then"
            " delete or register them; the page on operations describes what killed servers leave."
            " Nothing was changed.",
        )
    return is_whole


def _orphans_below(
    warehouse: Warehouse, known: _CatalogLocations, root: AllowedLocation, budget: _Budget
) -> Iterator[AllowedLocation]:
    # With each directory: the number of levels of partitions that may be below it, None outside tables.
    waiting: list[tuple[AllowedLocation, int | None]] = [(root, known.tables.get(root.location.spellings[0]))]
    while waiting:
        directory, levels = waiting.pop()
        for name in sorted(warehouse.names(directory)):
            budget.take()
            child = directory.child(name)
            location = child.location.spellings[0]
            if name.startswith((DELETED_PREFIX, RECORD_PREFIX)):
                yield child
            elif is_hidden(name):
                continue
            elif location in known.tables:
                if known.tables[location] > 0 or location in known.above:
                    waiting.append((child, known.tables[location]))
            elif location in known.databases:
                waiting.append((child, None))
            elif location in known.above:
                waiting.append((child, None if levels is None else max(levels - 1, 0)))
            elif location in known.partitions:
                continue
            elif _is_unowned(known, name, levels) and warehouse.is_directory(child):
                yield child


def _is_unowned(known: _CatalogLocations, name: str, levels: int | None) -> bool:
    """Whether a directory of this name, which no row names, could not belong to any object that was not read."""
    if levels is None:
        return known.has_others
    return levels > 0 and "=" in name and known.has_partitions


def _described(warehouse: Warehouse, place: AllowedLocation) -> str:
    try:
        found = warehouse.directory_statistics(place)
        size = "too much to be counted" if found is None else f"{found.total_size_bytes:,} bytes"
        modified_s = warehouse.modified_s(place)
    except MetaException as error:
        return f"{place} ({error.message})"
    age = "" if modified_s is None else f", changed {_age(time.time() - modified_s)} ago"
    return f"{place} ({size}{age})"


def _report_missing(findings: Findings, warehouse: Warehouse, known: _CatalogLocations) -> bool:
    budget = _Budget(warehouse)
    missing: list[Location] = []
    is_whole = True
    try:
        for location in known.objects():
            place = warehouse.allow(location, known.declared)
            if place is None:
                continue  # not a location of this server
            budget.take()
            if not warehouse.exists(place):
                missing.append(location)
    except _Exhausted:
        is_whole = False
    except MetaException as error:
        findings.warning(f"the warehouse cannot be read: {error.message}", "Give this account the right to read it.")
    if missing:
        places = _named(map(str, missing))
        findings.warning(
            f"{_counted(missing, 'director')} that tables or partitions name are not there: {places}",
            "If a rename or an exchange of partitions was cut short, make the same call again. Otherwise restore the"
            " files, or drop the table or partition. On an object store, what has no files yet has no directory.",
        )
    return is_whole


def _counted(found: list[AllowedLocation] | list[Location], stem: str) -> str:
    return f"{len(found):,} {stem}{'y' if len(found) == 1 else 'ies'}"


def _named(texts: Iterable[str]) -> str:
    named: list[str] = []
    rest = 0
    for text in texts:
        if len(named) < _MAX_NAMED:
            named.append(text)
        else:
            rest += 1
    return ", ".join(named) + (f" and {rest:,} more" if rest else "")


def _age(seconds: float) -> str:
    for unit, length_s in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length_s:
            return f"{seconds / length_s:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
