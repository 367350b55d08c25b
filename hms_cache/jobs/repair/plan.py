"""What a repair would change of a table."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from hms_cache.config.quantities import parse_duration_s
from hms_cache.jobs.files.directories import AWAY, anchor, canonical, leads_nowhere, place_of
from hms_cache.jobs.frame.reasons import reason_of
from hms_cache.jobs.repair.directories import NO_ROOT, UNREADABLE, Directories, LeafDirectory, PartitionTree
from hms_cache.jobs.repair.known import KnownPartitions, Place
from hms_cache.store.warehouse.locations import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, Table
from hms_cache.values import frozen

DISCOVER = "discover.partitions"
RETENTION = "partition.retention.period"

ADD, DROP, EXPIRE = "add", "drop", "expire"
"""Actions. One that expires is dropped with its files, if the metastore deletes those of its table."""

TWICE, CLAIMED, UNDECIDED = "found twice", "another partition's", "undecided"
"""Kinds of notes besides those of `directories`: two directories of one partition; a directory where a partition of
another name lies; a partition whose directory cannot be looked at."""


class Change(NamedTuple):
    """A partition to add or drop, and its directory."""

    name: str
    location: str


@dataclass(slots=True)
class TablePlan:
    """Of one table. `notes`: kind, location, and what there is to say."""

    table: Table
    known: int = 0
    listings: int = 0
    found: int = 0
    """Directories of partitions."""

    changes: dict[str, list[Change]] = field(default_factory=lambda: {ADD: [], DROP: [], EXPIRE: []})
    notes: list[tuple[str, str, str]] = field(default_factory=list)


@frozen
class Scope:
    """What a repair is asked for."""

    adds: bool = True
    drops: bool = True
    expires: bool = False


def is_discovered(table: Table) -> bool:
    """Whether Hive's metastore would discover partitions of the table by itself. Source: `PartitionManagementTask`."""
    return (table.parameters or {}).get(DISCOVER, "").lower() == "true"


def retention_s(table: Table) -> float | None:
    """How long partitions of the table are kept, from their creation on; None: for ever.

    Raises ValueError where the parameter is no time. A bare number is in seconds, as in
    `PartitionManagementTask.getRetentionPeriodInSeconds`.
    """
    text = (table.parameters or {}).get(RETENTION, "").strip()
    seconds = parse_duration_s(text, "s") if text else 0
    return seconds if seconds > 0 else None


def plan_table(
    table: Table,
    known: KnownPartitions,
    directories: Directories,
    pool: ThreadPoolExecutor,
    scope: Scope,
) -> TablePlan:
    """Compares names with one listing of the tree; what lies elsewhere is read only where it can make a difference.
    The catalog is read while directories are listed.

    Raises MetaException for a location that cannot be understood, and what `known` raises.
    """
    plan = TablePlan(table)
    root = Location.parse(table.sd.location, Location("file", "", "/"))
    kept_s = _retention(plan) if scope.expires else None
    created_before_s = int(time.time() - kept_s) if kept_s is not None else 0
    # A thread of their own for all reads of the catalog: the database works while directories are listed.
    with ThreadPoolExecutor(1, "repair-catalog") as catalog:

        def ask_where() -> Future[list[Place]]:
            return catalog.submit(lambda: list(known.notable(table, created_before_s)))

        names_read = catalog.submit(lambda: set(known.names(table)))
        comparison = _Comparison(plan)
        where_read: Future[list[Place]] | None = None
        tree = PartitionTree(directories, root, table.partitionKeys)
        waiting: list[LeafDirectory] = []
        for leaf in tree.walk(pool):
            waiting.append(leaf)
            if names_read.done():
                comparison.compare(names_read.result(), waiting)
                waiting.clear()
                if where_read is None and scope.adds and comparison.candidates:
                    where_read = ask_where()
        comparison.compare(names_read.result(), waiting)
        plan.listings = tree.listings
        if any(kind == NO_ROOT for kind, _, _ in plan.notes):
            return plan  # a file system that is not mounted has no partitions either
        candidates, absent = comparison.candidates, comparison.absent
        if where_read is None and (kept_s is not None or (scope.adds and candidates)):
            where_read = ask_where()
        looked_for = _without_unread(plan, absent, comparison.unread) if scope.drops else set()
        if looked_for:
            places = catalog.submit(lambda: list(known.places(table, looked_for))).result()
            _plan_drops(plan, places, directories, pool)
        elsewhere = {place.name: place for place in where_read.result()} if where_read is not None else {}
    if kept_s is not None:
        _plan_expiry(plan, elsewhere.values(), created_before_s)
    if scope.adds and candidates:
        owners = {f"{place_of(str(root))}/{name}": name for name in absent}
        owners |= {place_of(place.location): name for name, place in elsewhere.items() if place.location}
        _plan_adds(plan, root, candidates, comparison.twice, names_read.result(), owners)
    return plan


class _Comparison:
    """Directories beside names. `candidates`: locations by names that no partition has; `twice`: other directories of
    such a name; `absent`: names without a directory so far; `unread`: by what names in them begin with, locations of
    directories that could not be listed."""

    def __init__(self, plan: TablePlan) -> None:
        self._plan = plan
        self._has_names = False
        self.candidates: dict[str, str] = {}
        self.twice: dict[str, str] = {}
        self.absent: set[str] = set()
        self.unread: dict[str, str] = {}

    def compare(self, names: Collection[str], leaves: Iterable[LeafDirectory]) -> None:
        """Some directories more; `names` are the same in each call."""
        plan = self._plan
        if not self._has_names:
            plan.known, self.absent, self._has_names = len(names), set(names), True
        for leaf in leaves:
            plan.notes += [(problem.kind, problem.location, problem.reason) for problem in leaf.problems]
            if any(problem.kind == UNREADABLE for problem in leaf.problems):
                self.unread[leaf.name] = str(leaf.location)
            plan.found += len(leaf.partitions)
            here = self.absent.intersection(leaf.partitions)
            self.absent -= here
            if len(here) == len(leaf.partitions):
                continue  # nothing new, and no name twice
            above = str(leaf.location).rstrip("/")  # a bucket's own location ends in a slash
            for name, directory in zip(leaf.partitions, leaf.directories, strict=True):
                if name in here:
                    here.remove(name)
                    continue
                location = f"{above}/{directory}"
                if name in self.candidates:
                    self.twice[location] = name
                self.candidates.setdefault(name, location)


def _without_unread(plan: TablePlan, absent: Collection[str], unread: Mapping[str, str]) -> set[str]:
    """The names without those that belong into a directory that could not be listed. To ask for each of them, of which
    there may be a million, would ask a store again and again that has just refused, or asked for patience."""
    if not unread:
        return set(absent)
    looked_for: set[str] = set()
    counts = dict.fromkeys(unread, 0)
    for name in absent:
        parts = name.split("/")
        beginnings = ("/".join(parts[:count]) for count in range(len(parts)))
        within = next((beginning for beginning in beginnings if beginning in unread), None)
        if within is None:
            looked_for.add(name)
        else:
            counts[within] += 1
    plan.notes += [
        (UNDECIDED, unread[within], f"{count} partitions that belong here are not looked for")
        for within, count in counts.items()
        if count
    ]
    return looked_for


def _retention(plan: TablePlan) -> float | None:
    try:
        return retention_s(plan.table)
    except ValueError as error:
        plan.notes.append((UNDECIDED, plan.table.sd.location, f"{RETENTION}: {error}"))
        return None


def _plan_adds(
    plan: TablePlan,
    root: Location,
    candidates: Mapping[str, str],
    twice: Mapping[str, str],
    names: Collection[str],
    owners: Mapping[str, str],
) -> None:
    """`owners`: partitions by the directories (`place_of`) where they lie, if their names do not say so.

    Two directories of one partition are a choice that nobody else can make: then neither is added."""
    contested = set(twice.values())
    above = place_of(str(root))
    holders = {place: name for each, name in owners.items() for place in _at_and_above(each, above)}
    for location, name in sorted([*((location, name) for name, location in candidates.items()), *twice.items()]):
        here = place_of(location)
        owner = owners.get(here) or holders.get(here)
        if owner is None:
            owner = next((owners[place] for place in _at_and_above(here, "") if place in owners), None)
        if owner is not None:
            if owner != name and here != place_of(f"{root}/{owner}"):
                plan.notes.append((CLAIMED, location, f"partition {owner} lies there"))
        elif name in names or name in contested:
            plan.notes.append((TWICE, location, f"partition {name} has another directory"))
        else:
            plan.changes[ADD].append(Change(name, location))


def _at_and_above(place: str, root: str) -> Iterator[str]:
    """A directory and those that it lies in, the nearest first, without `root` and what that lies in."""
    while place not in (root, "") and len(place) > len(root):
        yield place
        place = place.rpartition("/")[0]


def _plan_drops(plan: TablePlan, absent: Iterable[Place], directories: Directories, pool: ThreadPoolExecutor) -> None:
    """A partition without a directory of its name may lie elsewhere: its own location decides."""
    changes = [Change(place.name, canonical(place.location)) for place in absent]
    root = Location.parse(plan.table.sd.location, Location("file", "", "/"))
    gone, undecided = missing(changes, directories, pool, root)
    plan.changes[DROP] = sorted(gone)
    plan.notes += [(UNDECIDED, change.location, reason) for change, reason in undecided]


def missing(
    changes: Iterable[Change], directories: Directories, pool: ThreadPoolExecutor, root: Location
) -> tuple[list[Change], list[tuple[Change, str]]]:
    """Those whose directories do not exist now, and those of which nobody knows, and why. `root`: their table's."""

    def look(change: Change) -> tuple[Change, bool, str]:
        try:
            location = Location.parse(change.location)
            if directories.exists(location):
                return change, True, ""
            above = anchor(location, root)
            is_away = above is not None and (leads_nowhere(location) or not directories.exists(above))
            return change, False, AWAY if is_away else ""
        except (OSError, MetaException) as error:
            return change, False, reason_of(error)

    gone: list[Change] = []
    undecided: list[tuple[Change, str]] = []
    for change, exists, reason in pool.map(look, changes):
        if reason:
            undecided.append((change, reason))
        elif not exists:
            gone.append(change)
    return gone, undecided


def _plan_expiry(plan: TablePlan, places: Iterable[Place], created_before_s: int) -> None:
    """Hive takes a partition of no known time for one of 1970; here it does not expire."""
    dropped = {change.name for change in plan.changes[DROP]}
    for place in places:
        if 0 < place.created_s < created_before_s and place.name not in dropped:
            plan.changes[EXPIRE].append(Change(place.name, canonical(place.location)))
    plan.changes[EXPIRE].sort()
