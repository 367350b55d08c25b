"""Random sequences of calls on transactions, locks and compactions: Hive 4.0.1 and ours have equal answers and
contents.

A failure names the seed and prints few calls that suffice for the difference. `HMS_CACHE_RANDOM_SEED` runs one seed.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pytest

from hms_cache.thrift_gen.hive_metastore.ttypes import Database
from tests.conftest import ServerLookup
from tests.differential.metastores import Sides, java_metastore, our_metastore, own_database
from tests.differential.random_transactions import History, Outcome, Request, difference, rows, send, shrunk

pytestmark = [pytest.mark.java, pytest.mark.mariadb, pytest.mark.soak, pytest.mark.long]

SEEDS = 30
CALLS = 320
MAX_RUNS = 60
"""Shorter sequences tried for each difference."""
ROWS_EVERY = 20
"""Calls between two looks at the rows: each is eleven queries on both sides."""


@pytest.fixture(scope="module")
def quiet_sides(tmp_path_factory: pytest.TempPathFactory, database_servers: ServerLookup) -> Iterator[Sides]:
    """Both metastores, neither of which cleans up meanwhile."""
    databases = database_servers("mariadb")
    with ExitStack() as stack:
        directories = [tmp_path_factory.mktemp(name) for name in ("java", "ours")]
        java = stack.enter_context(java_metastore(own_database(databases, stack), directories[0]))
        quiet = {"transactions.housekeeping_interval_s": "inf"}
        ours = stack.enter_context(our_metastore(own_database(databases, stack), directories[1], **quiet))
        yield Sides(java, ours)


def test_random_sequences_are_answered_alike(quiet_sides: Sides) -> None:
    seed = os.environ.get("HMS_CACHE_RANDOM_SEED")
    seeds = [int(seed)] if seed else range(SEEDS)
    sent: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    failures = []
    for one in seeds:
        found = _run(quiet_sides, one, sent, answered)
        if found is not None:
            failures.append(found)
    print(f"{sum(sent.values())} calls: {dict(sent)}; answers: {dict(answered)}")
    assert not failures, "\n\n".join(failures)
    assert sum(sent.values()) >= SEEDS * CALLS or seed
    assert {"value", "NoSuchTxnException", "TxnAbortedException", "NoSuchLockException"} <= set(answered) or seed


def _run(sides: Sides, seed: int, sent: Counter[str], answered: Counter[str]) -> str | None:
    """The first difference of a sequence, with a small part of the earlier calls that suffices for it."""
    _begin(sides)
    history = History(seed, random.Random(seed))
    calls: list[Request] = []
    for number in range(CALLS):
        request = history.next_request()
        calls.append(request)
        java, ours = _send(sides, request)
        sent[request[0]] += 1
        answered[java.error or "value"] += 1
        found = difference(request, java, ours)
        if found is None and (number % ROWS_EVERY == ROWS_EVERY - 1 or number == CALLS - 1):
            found = _difference_of_rows(sides)
        if found is not None:
            small = shrunk(calls, lambda part: _replayed(sides, part) is not None, MAX_RUNS)
            lines = [f"{position}: {method} {arguments}" for position, (method, arguments) in enumerate(small)]
            return "\n".join([f"seed {seed}, {number + 1} calls: {found}", *lines, _replayed(sides, small) or ""])
        history.learn(request, ours)
    return None


def _begin(sides: Sides) -> None:
    for side in (sides.java, sides.ours):
        side.empty()
        # The database of the replication policy, which Java marks when one of its transactions is aborted here.
        side.call("create_database", Database(name="d"))


def _send(sides: Sides, request: Request) -> tuple[Outcome, Outcome]:
    java, ours = send(sides.java, request), send(sides.ours, request)
    if java.error == "fault":
        # Java keeps its database transaction open after some failures.
        sides.java.begin_anew()
    return java, ours


def _replayed(sides: Sides, calls: Sequence[Request]) -> str | None:
    """The first difference of these calls."""
    _begin(sides)
    for request in calls:
        found = difference(request, *_send(sides, request))
        if found is not None:
            return f"{request[0]}: {found}"
    return _difference_of_rows(sides)


def _difference_of_rows(sides: Sides) -> str | None:
    found = []
    for (name, java), (_, ours) in zip(rows(sides.java.engine), rows(sides.ours.engine), strict=True):
        if java != ours:
            only = [row for row in java if row not in ours], [row for row in ours if row not in java]
            found.append(f"rows of {name}: only java {only[0]}, only ours {only[1]}")
    return "\n".join(found) or None
