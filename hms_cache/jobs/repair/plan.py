"""Plans the changes of a repair to a table."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from hms_cache.config.quantities import parse_duration_s
from hms_cache.jobs.files.directories import AWAY, anchor, canonical, leads_nowhere, place_of
from hms_cache.jobs.frame.reasons import reason_of
from hms_cache.jobs.repair.catalog_partitions import CatalogPartitions, PartitionLocation
from hms_cache.jobs.repair.directories import NO_ROOT, UNREADABLE, Directories, LeafDirectory, PartitionTree
from hms_cache.store.warehouse.locations import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, Table
from hms_cache.values import frozen

DISCOVER = "discover.partitions"
RETENTION = "partition.retention.period"

ADD, DROP, EXPIRE = "add", "drop", "expire"
"""Actions. An expired partition is dropped with its files, if the metastore deletes the files of the table."""

TWICE, CLAIMED, UNDECIDED = "found twice", "another partition's", "undecided"
"""Kinds of notes in addition to those of `directories`: a partition with two directories; a directory used by a
partition with another name; a partition whose directory cannot be checked."""


class Change(NamedTuple):
    """A partition to add or drop, with its directory."""

    name: str
    location: str


@dataclass(slots=True)
class TablePlan:
    """The plan for one table. `notes`: kind, location, text."""

    table: Table
    known: int = 0
    listings: int = 0
    found: int = 0
    """Number of directories of partitions."""

    changes: dict[str, list[Change]] = field(default_factory=lambda: {ADD: [], DROP: [], EXPIRE: []})
    notes: list[tuple[str, str, str]] = field(default_factory=list)


@frozen
class Scope:
    """The kinds of changes requested."""

    adds: bool = True
    drops: bool = True
    expires: bool = False


def is_discovered(table: Table) -> bool:
    """Whether Hive's metastore would discover partitions of the table itself. Source: `PartitionManagementTask`."""
    return (table.parameters or {}).get(DISCOVER, "").lower() == "true"


def retention_s(table: Table) -> float | None:
    """The retention of the table's partitions from their creation on; None: unlimited.

    Raises ValueError if the parameter is not a duration. A plain number is in seconds, as in
    `PartitionManagementTask.getRetentionPeriodInSeconds`.
    """
    text = (table.parameters or {}).get(RETENTION, "").strip()
    seconds = parse_duration_s(text, "s") if text else 0
    return seconds if seconds > 0 else None


def plan_table(
    table: Table,
    known: CatalogPartitions,
    directories: Directories,
    pool: ThreadPoolExecutor,
    scope: Scope,
) -> TablePlan:
    """Compares names with one listing of the tree; other locations are read only if they can make a difference. The
    catalog is read while directories are listed.

    Raises MetaException for an invalid location, and the errors of `known`.
    """
    plan = TablePlan(table)
    root = Location.parse(table.sd.location, Location("file", "", "/"))
    kept_s = _retention(plan) if scope.expires else None
    created_before_s = int(time.time() - kept_s) if kept_s is not None else 0
    # One separate thread for all reads of the catalog: the database works while directories are listed.
    with ThreadPoolExecutor(1, "repair-catalog") as catalog:

        def read_locations() -> Future[list[PartitionLocation]]:
            return catalog.submit(lambda: list(known.notable(table, created_before_s)))

        names_read = catalog.submit(lambda: set(known.names(table)))
        comparison = _Comparison(plan)
        where_read: Future[list[PartitionLocation]] | None = None
        tree = PartitionTree(directories, root, table.partitionKeys)
        waiting: list[LeafDirectory] = []
        for leaf in tree.walk(pool):
            waiting.append(leaf)
            if names_read.done():
                comparison.compare(names_read.result(), waiting)
                waiting.clear()
                if where_read is None and scope.adds and comparison.candidates:
                    where_read = read_locations()
        comparison.compare(names_read.result(), waiting)
        plan.listings = tree.listings
        if any(kind == NO_ROOT for kind, _, _ in plan.notes):
            return plan  # an unmounted file system has no partitions either
        candidates, absent = comparison.candidates, comparison.absent
        if where_read is None and (kept_s is not None or (scope.adds and candidates)):
            where_read = read_locations()
        searched = _without_unread(plan, absent, comparison.unread) if scope.drops else set()
        if searched:
            locations = catalog.submit(lambda: list(known.locations(table, searched))).result()
            _plan_drops(plan, locations, directories, pool)
        elsewhere = {place.name: place for place in where_read.result()} if where_read is not None else {}
    if kept_s is not None:
        _plan_expiry(plan, elsewhere.values(), created_before_s)
    if scope.adds and candidates:
        owners = {f"{place_of(str(root))}/{name}": name for name in absent}
        owners |= {place_of(place.location): name for name, place in elsewhere.items() if place.location}
        _plan_adds(plan, root, candidates, comparison.twice, names_read.result(), owners)
    return plan


class _Comparison:
    """Compares directories with names.

    `candidates`: locations of names that no partition has; `twice`: further directories of such a name; `absent`: names
    without a directory so far; `unread`: locations of directories that could not be listed, by the prefix of the names
    in them.
    """

    def __init__(self, plan: TablePlan) -> None:
        self._plan = plan
        self._has_names = False
        self.candidates: dict[str, str] = {}
        self.twice: dict[str, str] = {}
        self.absent: set[str] = set()
        self.unread: dict[str, str] = {}

    def compare(self, names: Collection[str], leaves: Iterable[LeafDirectory]) -> None:
        """Adds more directories; `names` are the same in each call."""
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
                continue  # no new name and no duplicate
            above = str(leaf.location).rstrip("/")  # the location of a bucket ends with a slash
            for name, directory in zip(leaf.partitions, leaf.directories, strict=True):
                if name in here:
                    here.remove(name)
                    continue
                location = f"{above}/{directory}"
                if name in self.candidates:
                    self.twice[location] = name
                self.candidates.setdefault(name, location)


def _without_unread(plan: TablePlan, absent: Collection[str], unread: Mapping[str, str]) -> set[str]:
    """The names except those whose directories would be inside of one that could not be listed. Checking each of them,
    perhaps a million, would send that many requests to a store that has just refused or throttled one."""
    if not unread:
        return set(absent)
    searched: set[str] = set()
    counts = dict.fromkeys(unread, 0)
    for name in absent:
        parts = name.split("/")
        beginnings = ("/".join(parts[:count]) for count in range(len(parts)))
        within = next((beginning for beginning in beginnings if beginning in unread), None)
        if within is None:
            searched.add(name)
        else:
            counts[within] += 1
    plan.notes += [
        (UNDECIDED, unread[within], f"{count} partitions that belong here are not looked for")
        for within, count in counts.items()
        if count
    ]
    return searched


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
    """Adds partitions to the plan. If a partition has two directories, neither is added: only the user can choose.

    :param owners: names of partitions by directory (`place_of`), if the directory is not the one their name implies.
    """
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
    """A directory and its parents, nearest first, up to but without `root`."""
    while place not in (root, "") and len(place) > len(root):
        yield place
        place = place.rpartition("/")[0]


def _plan_drops(
    plan: TablePlan, absent: Iterable[PartitionLocation], directories: Directories, pool: ThreadPoolExecutor
) -> None:
    """A partition without a directory of its name may be elsewhere: its own location decides."""
    changes = [Change(place.name, canonical(place.location)) for place in absent]
    root = Location.parse(plan.table.sd.location, Location("file", "", "/"))
    gone, undecided = missing(changes, directories, pool, root)
    plan.changes[DROP] = sorted(gone)
    plan.notes += [(UNDECIDED, change.location, reason) for change, reason in undecided]


def missing(
    changes: Iterable[Change], directories: Directories, pool: ThreadPoolExecutor, root: Location
) -> tuple[list[Change], list[tuple[Change, str]]]:
    """The changes whose directories do not exist now, and those that could not be checked, with the reason.

    :param root: the table's directory.
    """

    def inspect(change: Change) -> tuple[Change, bool, str]:
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
    for change, exists, reason in pool.map(inspect, changes):
        if reason:
            undecided.append((change, reason))
        elif not exists:
            gone.append(change)
    return gone, undecided


def _plan_expiry(plan: TablePlan, locations: Iterable[PartitionLocation], created_before_s: int) -> None:
    """Hive treats an unknown creation time as 1970; here such a partition does not expire."""
    dropped = {change.name for change in plan.changes[DROP]}
    for place in locations:
        if 0 < place.created_s < created_before_s and place.name not in dropped:
            plan.changes[EXPIRE].append(Change(place.name, canonical(place.location)))
    plan.changes[EXPIRE].sort()
