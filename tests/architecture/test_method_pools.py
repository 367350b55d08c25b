"""Every method of the protocol has a thread pool, or needs none."""

from __future__ import annotations

from collections import Counter

from hms_cache.server.authorization.rules import RULES, RuleKind
from hms_cache.server.calls import Kind
from hms_cache.server.handlers.table import METHODS_NOT_SERVED, all_handlers
from hms_cache.server.method_pools import _METHODS, METHOD_POOLS, PoolName
from hms_cache.wire import METHODS


def test_every_method_that_may_need_the_database_or_a_decision_has_one_pool() -> None:
    handlers = all_handlers()
    assert set(METHOD_POOLS) == {
        name
        for name, handler in handlers.items()
        if handler.kind is not Kind.LOCAL or RULES[name].kind is not RuleKind.OPEN
    }
    counted = Counter(name for names in _METHODS.values() for name in names.split())
    assert [name for name, times in counted.items() if times > 1] == []
    assert set(METHODS) - set(METHOD_POOLS) - set(handlers) == METHODS_NOT_SERVED


def test_what_keeps_locks_and_transactions_alive_is_in_their_pool() -> None:
    words = ("heartbeat", "commit_txn", "abort_txn", "open_txns", "lock", "write_ids", "open_txn")
    others = ("show_locks",)
    for name, pool in METHOD_POOLS.items():
        if any(word in name for word in words) and name not in others:
            assert pool is PoolName.TRANSACTIONS, name


def test_what_deletes_data_is_heavy() -> None:
    for name, pool in METHOD_POOLS.items():
        if name.startswith(("drop_table", "drop_partition", "drop_database", "truncate_")):
            assert pool is PoolName.HEAVY, name
