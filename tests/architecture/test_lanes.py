"""Every method of the protocol has a lane, or needs none."""

from __future__ import annotations

from collections import Counter

from hms_cache.server.authorization.rules import RULES, Way
from hms_cache.server.calls import Kind
from hms_cache.server.handlers.table import METHODS_NOT_SERVED, all_handlers
from hms_cache.server.lanes import _METHODS, LANES, Lane
from hms_cache.wire import METHODS


def test_every_method_that_may_need_the_database_or_a_decision_has_one_lane() -> None:
    handlers = all_handlers()
    assert set(LANES) == {
        name for name, handler in handlers.items() if handler.kind is not Kind.LOCAL or RULES[name].way is not Way.OPEN
    }
    counted = Counter(name for names in _METHODS.values() for name in names.split())
    assert [name for name, times in counted.items() if times > 1] == []
    assert set(METHODS) - set(LANES) - set(handlers) == METHODS_NOT_SERVED


def test_what_keeps_locks_and_transactions_alive_is_in_their_lane() -> None:
    words = ("heartbeat", "commit_txn", "abort_txn", "open_txns", "lock", "write_ids", "open_txn")
    others = ("show_locks",)
    for name, lane in LANES.items():
        if any(word in name for word in words) and name not in others:
            assert lane is Lane.TRANSACTIONS, name


def test_what_deletes_data_is_heavy() -> None:
    for name, lane in LANES.items():
        if name.startswith(("drop_table", "drop_partition", "drop_database", "truncate_")):
            assert lane is Lane.HEAVY, name
