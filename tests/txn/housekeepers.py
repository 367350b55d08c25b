"""A process that runs housekeeping, like each server of a set. Run by `test_housekeeping_processes`."""

from __future__ import annotations

from dataclasses import dataclass

from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.engine.database import Database
from hms_cache.store.txn_store import TxnStore
from tests.databases import closing


@dataclass(frozen=True)
class Kept:
    """The work of one server."""

    txns: int
    compactions: list[int]
    cleaned_txns: int


def keep_house(url: str, name: str, rounds: int) -> Kept:
    """All tasks of the background service, several times."""
    txns, compactions, cleaned = 0, [], 0
    with closing(Database(url)) as database:
        store = TxnStore(database, MessageBuilder())
        for _ in range(rounds):
            txns += store.give_up_timed_out().txns
            compactions += store.initiate_compactions(name)
            store.keep_compactions()
            cleaned += store.clean().txns
    return Kept(txns, compactions, cleaned)
