"""Changes of grants and roles in the notification log, for servers that keep what they decided by them.

Hive has no event for them. With `authorization.sql_grants = logged` one is written in the transaction of each change:
of a type of our own, without names, which Hive's consumers pass over.
"""

from __future__ import annotations

from typing import Final

from hms_cache.notifications.event_types import GRANTS_CHANGED
from hms_cache.notifications.events import EventRow
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.work_units import WriteTransaction

_EVENT: Final = EventRow(GRANTS_CHANGED, None, None, None, "{}", "json-0.2")


def log_change(transaction: WriteTransaction, context: StoreContext) -> None:
    """Grants or roles are changed in this transaction."""
    if context.settings.authorization.sql_grants == "logged":
        transaction.append_event(_EVENT)
