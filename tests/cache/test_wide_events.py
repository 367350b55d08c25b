"""The cost of an event beside many tables that it does not concern: it examines only those that it may concern. Memory
is locked meanwhile."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from hms_cache.cache.entries import Entry, Facet
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.verification import invariants
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications import events as ev
from hms_cache.notifications.events import TransactionWriteId
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire.codec import encode_struct
from tests.cache.test_event_cells import EVENT, FACTS, FENCE, Fact, begin, finish, header, new_cache
from tests.cache.world import CATALOG, table
from tests.work import instructions

FEW, MANY = 10, 210
A_TABLE = 3
"""Instructions for each further table: the least that a look at it takes."""


def other(number: int) -> TableName:
    return TableName(CATALOG, f"of_others_{number % 7}", f"t{number}")


def with_others(fact: Fact, count: int) -> SharedCache:
    """The tables of the facts, and this many tables of other databases, each of them written by an open transaction."""
    cache = new_cache(has_peers=fact.has_peers)
    finish(cache, begin(cache), FENCE)
    hold_others(cache, count, facets_of_others(fact))
    txn_ids = range(1000, 1000 + count)
    cache._transactions.apply(ev.TransactionsOpened(header("OPEN_TXN", None), txn_ids), {})
    for number in range(count):
        given = (TransactionWriteId(txn_ids[number], 1),)
        cache._transactions.apply(ev.WriteIdsAllocated(header("ALLOC_WRITE_ID_EVENT", other(number)), given), {})
    return cache


def facets_of_others(fact: Fact) -> frozenset[Facet]:
    """The cached ones of them. Constraints of any table are dropped when keys change, as few are cached."""
    held = {Facet.TABLE} if fact.event.scope.foreign_keys else {Facet.TABLE, Facet.CONSTRAINTS}
    return frozenset(held)


def hold_others(cache: SharedCache, count: int, facets: Collection[Facet] = (Facet.TABLE, Facet.CONSTRAINTS)) -> None:
    for number in range(count):
        _hold(cache, number, facets)


def _hold(cache: SharedCache, number: int, facets: Collection[Facet]) -> None:
    name = other(number)
    struct = table(name.database, name.table)
    struct.id = 10_000 + number

    def prepare(entry: Entry) -> None:
        entry.table_id, entry.encoded_table, entry.last_read = struct.id, encode_struct(struct), 1.0

    of_facets: dict[Facet, Any] = {Facet.TABLE: struct, Facet.CONSTRAINTS: ttypes.SQLAllTableConstraints()}
    values = {facet: of_facets[facet] for facet in facets}
    load = cache.begin_load(name, values)
    for facet, value in values.items():
        assert cache.install(load, FENCE, facet, value, 100, prepare)
    cache.end_load(load)


NARROW = [
    pytest.param(fact, id=label)
    for label, fact in FACTS
    # Except what cannot be distinguished from anything else.
    if not (fact.event.scope.everything or fact.event.scope.whole_catalogs)
]


@pytest.mark.parametrize("fact", NARROW)
def test_an_event_costs_the_same_beside_many_tables(fact: Fact) -> None:
    took = {}
    for count in (FEW, MANY):
        cache = with_others(fact, count)
        took[count] = instructions(lambda cache=cache: cache.apply([fact.event], EVENT))
        for number in range(count):
            held = cache.tables[other(number)].facets
            assert facets_of_others(fact) <= held.keys(), "the event does not concern it"
        assert not any(name.database.startswith("of_others") for name in cache.invalidated), "nor is it to be refilled"
        invariants.check(cache)
    assert took[MANY] - took[FEW] < A_TABLE * (MANY - FEW), took


def test_the_end_of_a_catalog_costs_as_much_for_each_of_its_databases() -> None:
    """It does not examine all tables for each of them."""
    dropped = ev.CatalogDropped(header("DROP_CATALOG", None), catalog_name=CATALOG)
    took = {}
    for count in (FEW, MANY):
        cache = new_cache()
        for number in range(count):
            name = TableName(CATALOG, f"d{number}", "t")
            load = cache.begin_load(name.in_database, (Facet.TABLE_NAMES,))
            assert cache.install(load, FENCE, Facet.TABLE_NAMES, {"t": ttypes.TableMeta("d", "t", "")}, 100)
            cache.end_load(load)
            load = cache.begin_load(name, (Facet.EXCLUDED,))
            assert cache.install(load, FENCE, Facet.EXCLUDED, True, 100)
            cache.end_load(load)
        took[count] = instructions(lambda cache=cache: cache.apply([dropped], EVENT))
        assert not cache.tables and not cache.databases
    assert took[MANY] < 2 * took[FEW] * MANY / FEW, took
