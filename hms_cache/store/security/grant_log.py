"""Logs changes of grants and roles in the notification log, for servers that cache decisions.

Hive has no event for them. With `authorization.sql_grants = logged`, an event of a type of this program, without names,
is logged in the transaction of each change. Hive's consumers ignore it.
"""

from __future__ import annotations

from typing import Final

from hms_cache.notifications.event_types import GRANTS_CHANGED
from hms_cache.notifications.events import EventRow
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.work_units import WriteTransaction

_EVENT: Final = EventRow(GRANTS_CHANGED, None, None, None, "{}", "json-0.2")


def log_change(transaction: WriteTransaction, context: StoreContext) -> None:
    """Logs that grants or roles are changed in this transaction."""
    if context.settings.authorization.sql_grants == "logged":
        transaction.append_event(_EVENT)
