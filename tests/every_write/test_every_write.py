"""Each write method, with each field set in turn, in both message formats, is visible to each cached read."""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hms_cache.cache.reads.reasons import Reason
from hms_cache.notifications.messages import MessageFormat
from hms_cache.server.handlers.table import METHODS_NOT_SERVED, all_handlers
from hms_cache.store.engine.database import Database
from hms_cache.wire import METHODS
from tests.every_write.reads import FACETS, UNCACHED, all_reads
from tests.every_write.requests import BASES, NOTHING_CACHED, WITHOUT_EVENT, base_requests, write_methods
from tests.every_write.values import Values
from tests.every_write.world import CACHED_TABLES, TAG_TABLES, World

_log = logging.getLogger(__name__)

SAMPLED_REQUESTS = 0.2
"""Share of the requests of which one field is varied where time is short."""


@pytest.fixture(
    params=[MessageFormat.JSON, pytest.param(MessageFormat.GZIP_JSON, marks=[pytest.mark.soak, pytest.mark.long])],
    ids=lambda one: one.name.lower(),
)
def world(request: pytest.FixtureRequest, sqlite_database: Database, tmp_path: Path) -> Iterator[World]:
    url = sqlite_database.url.render_as_string(hide_password=False)
    with closing(World(url, tmp_path, request.param)) as made:
        yield made


def check(world: World, method: str, path: str, arguments: Any) -> tuple[list[str], Exception | None]:
    """(what is wrong after the call, what it raised). The catalog is restored afterwards."""
    world.warm()
    outcome = world.call(method, arguments)
    where = f"{method} {path}"
    problems = []
    cached = outcome.changed & CACHED_TABLES
    if cached and not outcome.events and method not in WITHOUT_EVENT:
        problems.append(f"{where}: rows of {sorted(cached)} changed without an event")
    if cached and outcome.error is not None:
        problems.append(f"{where}: failed ({outcome.error!r}) and changed {sorted(cached)}")
    if outcome.changed & (CACHED_TABLES | TAG_TABLES) or outcome.events:
        problems += [f"{where}: {difference}" for difference in world.differences()]
    if outcome.changed or outcome.events:
        world.set_back(outcome.changed)
    for problem in problems:
        _log.error("%.3000s", problem)
    return problems, outcome.error


def test_every_method_is_classified() -> None:
    assert set(METHODS) - METHODS_NOT_SERVED == set(all_handlers())
    writes = set(write_methods())
    assert writes - set(BASES) == NOTHING_CACHED
    assert set(BASES) <= writes
    assert set(WITHOUT_EVENT) <= writes


def test_every_cached_read_is_compared(world: World) -> None:
    compared = {name.partition("(")[0] for name in all_reads(world.facts)}
    assert set(FACETS) - compared == UNCACHED


def test_the_caches_hold_what_is_compared(world: World) -> None:
    world.warm()
    world.other.reasons()
    assert world.differences() == []
    reads = [(kind, reason) for kind, reason in world.other.reads]
    always = {"functions", "table_meta", "table_names", "database_names", "function_names"}
    assert {(kind, reason) for kind, reason in reads if kind in always and reason is not Reason.HIT} == set()
    assert ("tables", Reason.HIT) in reads
    hits = sum(reason is Reason.HIT for _, reason in reads)
    assert hits >= 0.6 * len(reads), sorted({(kind, reason) for kind, reason in reads if reason is not Reason.HIT})
    assert world.differences() == []


def test_a_request_of_each_method(world: World) -> None:
    """One that succeeds for each method; the methods are divided between the formats by number."""
    is_json = world.writer.message_format is MessageFormat.JSON
    problems, failed = [], []
    for number, name in enumerate(write_methods()):
        if number % 2 == is_json:
            arguments = base_requests(name, world.facts)[0]
            found, error = check(world, name, "", arguments)
            problems += found
            failed += [f"{name}: {error!r}"] if error is not None and name in BASES else []
    assert failed == []
    assert problems == []


@pytest.mark.soak
def test_every_request(world: World) -> None:
    """All that succeed, with some of their fields, at random. The requests are divided between the formats."""
    seed = int(os.environ.get("EVERY_WRITE_SEED", time.time_ns() % 1_000_000))
    is_json = world.writer.message_format is MessageFormat.JSON
    draw, values = random.Random(seed), Values(world.facts)
    problems, failed = [], []
    for name in write_methods():
        for number, arguments in enumerate(base_requests(name, world.facts)):
            if (len(name) + number) % 2 == is_json:
                continue
            found, error = check(world, name, f"base {number}", arguments)
            problems += found
            failed += [f"{name} {number}: {error!r}"] if error is not None and name in BASES else []
            varied = list(values.variations(arguments)) if draw.random() < SAMPLED_REQUESTS else []
            if varied:
                path, arguments = draw.choice(varied)
                problems += check(world, name, f"base {number}, {path} (seed {seed})", arguments)[0]
    assert failed == []
    assert problems == []


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_every_field_in_turn(world: World) -> None:
    """Each field of each request, at any depth, with each other value."""
    values = Values(world.facts)
    problems = []
    for name in write_methods():
        for number, arguments in enumerate(base_requests(name, world.facts)):
            for path, varied in values.variations(arguments):
                problems += check(world, name, f"base {number}, {path}", varied)[0]
    assert problems == []
