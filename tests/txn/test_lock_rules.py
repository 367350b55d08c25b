"""Each pair of lock types and levels: the rule, the query, and Hive's table from which they come."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.store.locks.lock_rules import LockRow, LockTarget, first_conflict, must_wait
from hms_cache.thrift_gen.hive_metastore.ttypes import LockState, LockType, UnlockRequest
from tests.txn.client import TxnClient, component

#: Where a lock can be: the database, a table, two partitions of it, another table, another database.
PLACES: dict[str, tuple[str, str | None, str | None]] = {
    "database": ("d", None, None),
    "table": ("d", "t", None),
    "partition": ("d", "t", "p=1"),
    "other partition": ("d", "t", "p=2"),
    "other table": ("d", "u", None),
    "partition of other table": ("d", "u", "p=1"),
    "other database": ("e", None, None),
    "table of other database": ("e", "t", None),
}

TYPES = {
    LockType.SHARED_READ: "r",
    LockType.SHARED_WRITE: "w",
    LockType.EXCL_WRITE: "x",
    LockType.EXCLUSIVE: "e",
}

#: requested type -> earlier types it waits for when both are on the same table.
SAME_TABLE = {"r": "e", "w": "xe", "x": "wxe", "e": "rwxe"}


def expected(requested: str, place: str, earlier: str, earlier_place: str) -> bool:
    """Hive 4.0's rule, written from its table and not from the code under test."""
    if not meet(place, earlier_place) or earlier not in SAME_TABLE[requested]:
        return False
    on_database, earlier_on_database = PLACES[place][1] is None, PLACES[earlier_place][1] is None
    if requested == "r" and on_database and not earlier_on_database:
        return False
    return not (requested == "e" and earlier == "r" and not on_database and earlier_on_database)


def meet(place: str, other: str) -> bool:
    (database, table, partition), (other_database, other_table, other_partition) = PLACES[place], PLACES[other]
    if database != other_database:
        return False
    if table is None or other_table is None:
        return True
    return table == other_table and (partition is None or other_partition is None or partition == other_partition)


ALL = list(itertools.product(TYPES, PLACES))


def test_the_rule_for_every_pair() -> None:
    for (requested, place), (earlier, earlier_place) in itertools.product(ALL, ALL):
        found = must_wait(
            LockTarget(TYPES[requested], *PLACES[place]), LockTarget(TYPES[earlier], *PLACES[earlier_place])
        )
        assert found is expected(TYPES[requested], place, TYPES[earlier], earlier_place), (
            (TYPES[requested], place),
            (TYPES[earlier], earlier_place),
        )


@pytest.mark.parametrize("earlier", list(TYPES), ids=TYPES.get)
def test_the_database_answers_the_same_for_every_pair(client: TxnClient, earlier: int) -> None:
    for earlier_place in PLACES:
        database, table, partition = PLACES[earlier_place]
        held = client.lock(component(earlier, table, partition, database=database))
        assert held.state == LockState.ACQUIRED
        for requested, place in ALL:
            database, table, partition = PLACES[place]
            answer = client.lock(component(requested, table, partition, database=database))
            waits = expected(TYPES[requested], place, TYPES[earlier], earlier_place)
            state = LockState.WAITING if waits else LockState.ACQUIRED
            case = (TYPES[requested], place), (TYPES[earlier], earlier_place)
            assert answer.state == state, case
            assert client.check(answer.lockid) == state, case
            client.store.unlock(UnlockRequest(lockid=answer.lockid))
        client.store.unlock(UnlockRequest(lockid=held.lockid))


def test_more_partitions_than_a_statement_names(client: TxnClient) -> None:
    held = [component(LockType.EXCL_WRITE, "t", f"p={number}") for number in (5, 900)]
    client.lock(*held)
    free = [component(LockType.EXCL_WRITE, "t", f"p={number}") for number in range(1000, 1600)]
    taken = [component(LockType.EXCL_WRITE, "t", f"p={number}") for number in range(600, 1000)]
    assert client.lock(*free).state == LockState.ACQUIRED
    assert client.lock(*taken).state == LockState.WAITING


def test_first_conflict_names_the_request_and_the_oldest_lock() -> None:
    requests = [LockTarget("r", "d", "t"), LockTarget("x", "d", "u")]
    earlier = [
        LockRow(1, 1, 0, LockTarget("x", "d", "t"), "a"),
        LockRow(2, 1, 0, LockTarget("w", "d", "u"), "a"),
        LockRow(3, 1, 0, LockTarget("e", "d", "t"), "a"),
    ]
    assert first_conflict(requests, earlier) == (1, earlier[1])
    assert first_conflict(requests[:1], earlier[:2]) is None


targets = st.sampled_from(sorted(PLACES.values(), key=str)).flatmap(
    lambda place: st.sampled_from("rwxe").map(lambda kind: LockTarget(kind, *place))
)


@given(requests=st.lists(targets, min_size=1, max_size=6), earlier=st.lists(targets, max_size=4))
def test_the_first_that_must_wait_is_found(requests: list[LockTarget], earlier: list[LockTarget]) -> None:
    """As by checking each request against each earlier lock: those on the same table come before those on databases."""
    rows = [LockRow(number + 1, 1, 0, target, "a") for number, target in enumerate(earlier)]
    expected_conflict = None
    for row in rows:
        order = sorted(range(len(requests)), key=lambda at: (requests[at].table is None, at))
        if row.target.table is None:
            order = list(range(len(requests)))
        waiting = [at for at in order if must_wait(requests[at], row.target)]
        if waiting:
            expected_conflict = waiting[0], row
            break
    assert first_conflict(requests, rows) == expected_conflict


def test_a_lock_on_more_tables_than_an_expression_takes(client: TxnClient) -> None:
    """SQLite's expressions are limited to 1,000 conditions, and combining that many takes the square of their
    number."""
    names = [f"t{number}" for number in range(1_500)]
    held = client.lock(component(LockType.EXCLUSIVE, table="t1400"))
    wanted = client.lock(*(component(LockType.SHARED_READ, table=name) for name in names))
    assert wanted.state == LockState.WAITING
    client.store.unlock(UnlockRequest(lockid=held.lockid))
    assert client.check(wanted.lockid) == LockState.ACQUIRED
