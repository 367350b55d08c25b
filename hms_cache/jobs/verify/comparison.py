"""Compares one unit, under concurrent writes.

A server's answer reflects some time between its request and its reply. So it is wrong only if it differs from the
content of the database just before and just after, and these are equal; and only if this is so again at each recheck,
each after the lag that the server's settings permit. Each check first reads the newest event id: answers of the
database, and of a server without a permitted lag, are then at least as new as that event.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol

from hms_cache.jobs.sources.catalog_reader import CatalogReader
from hms_cache.jobs.verify.objects import (
    ObjectKey,
    Objects,
    Unit,
    changed_fields,
    comparable_pair,
    equal,
    objects_of,
    partition_names_of,
)
from hms_cache.values import frozen

MAX_COMPARISONS_WHILE_CHANGING = 5
"""Number of further checks of an object that changed during a check, before it is left undecided."""

_LONGEST_TEXT = 500
"""Maximum number of characters of a value in a report."""


@frozen
class Finding:
    """Result of a comparison: ``different``, or ``undecided`` for an object that changed during every check.

    ``field`` is the path inside the object; ``held`` is the server's value as text, ``stored`` the database's, None for
    a missing object. ``event_id`` is the newest event of the log before the last check: neither side was older.
    """

    outcome: str
    key: ObjectKey
    field: str
    held: str | None
    stored: str | None
    event_id: int


@frozen
class Recheck:
    """How differences are rechecked: number of checks, and the interval."""

    times: int
    wait_s: float
    wait: Callable[[float], None] = time.sleep


class StoredCatalog(CatalogReader, Protocol):
    """The catalog in the database, and its log."""

    def last_event_id(self) -> int:
        """The newest event of the log, 0 if there is none."""


def compare_unit(
    server: CatalogReader, database: StoredCatalog, unit: Unit, recheck: Recheck
) -> tuple[int, list[Finding]]:
    """Returns the number of compared objects, and the findings in no particular order.

    Raises MetastoreUnavailableError, DatabaseUnavailable.
    """
    event_id = database.last_event_id()
    before = objects_of(database, unit, None)
    held = objects_of(server, unit, partition_names_of(before, unit.catalog))
    compared = len(before.keys() | held.keys())
    suspects = dict.fromkeys(_differing(held, before), 0)
    comparisons = 0
    stored: Objects = before
    while suspects:
        after = objects_of(database, unit, None)
        for key in list(suspects):
            if not _differs(key, held, after):
                del suspects[key]
            elif not _differs(key, before, after):
                suspects[key] += 1
        stored = after
        comparisons += 1
        open_keys = [key for key, times in suspects.items() if times <= recheck.times]
        if not open_keys or comparisons > recheck.times + MAX_COMPARISONS_WHILE_CHANGING:
            break
        recheck.wait(recheck.wait_s)
        event_id = database.last_event_id()
        before = objects_of(database, unit, None)
        last_held = held
        held = objects_of(server, unit, partition_names_of(before, unit.catalog))
        for key in list(suspects):
            if not _differs(key, held, before):
                del suspects[key]
            elif _differs(key, held, last_held) and suspects[key]:
                suspects[key] = 0  # a different answer: counted from its own first occurrence
    return compared, [
        finding
        for key, times in suspects.items()
        for finding in _findings(key, held, stored, event_id, decided=times > recheck.times)
    ]


def _differing(one: Objects, other: Objects) -> list[ObjectKey]:
    return [key for key in one.keys() | other.keys() if _differs(key, one, other)]


def _differs(key: ObjectKey, one: Objects, other: Objects) -> bool:
    if (key in one) != (key in other):
        return True
    return key in one and not equal(one[key], other[key])


def _findings(key: ObjectKey, held: Objects, stored: Objects, event_id: int, *, decided: bool) -> Iterator[Finding]:
    outcome = "different" if decided else "undecided"
    if key not in held or key not in stored:
        yield Finding(outcome, key, "", _present(key, held), _present(key, stored), event_id)
        return
    if key.kind in ("tables", "partitions"):
        ours, theirs = set(held[key]), set(stored[key])
        if ours == theirs:
            yield Finding(outcome, key, "order", _text(held[key]), _text(stored[key]), event_id)
        for name in sorted(ours - theirs):
            yield Finding(outcome, key, name, "present", None, event_id)
        for name in sorted(theirs - ours):
            yield Finding(outcome, key, name, None, "present", event_id)
        return
    for path, one, other in changed_fields(*comparable_pair(held[key], stored[key])):
        yield Finding(outcome, key, path, _text(one), _text(other), event_id)


def _present(key: ObjectKey, objects: Objects) -> str | None:
    return "present" if key in objects else None


def _text(value: object) -> str | None:
    if value is None:
        return None
    text = str(value)
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "…"
