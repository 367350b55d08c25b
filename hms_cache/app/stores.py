"""The stores of one server, built from the settings."""

from __future__ import annotations

from functools import partial

from hms_cache.config import Settings
from hms_cache.metrics.registry import WarehouseMetrics
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.notifications.messages import MessageFormat
from hms_cache.store.auxiliary.auxiliary_store import AuxiliaryStores
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import Database
from hms_cache.store.events.notification_log import EventCleaner, NotificationLog
from hms_cache.store.object_store import ObjectStore
from hms_cache.store.soft_drops import require_cleanable
from hms_cache.store.txn_store import TxnStore
from hms_cache.store.warehouse import Warehouse
from hms_cache.system_user import system_user
from hms_cache.values import frozen


@frozen
class DatabaseStores:
    """The stores over the database."""

    objects: ObjectStore
    transactions: TxnStore
    log: NotificationLog
    event_cleaner: EventCleaner
    auxiliary: AuxiliaryStores


def build_database_stores(
    settings: Settings, database: Database, metrics: WarehouseMetrics | None = None
) -> DatabaseStores:
    """Creates all stores over this database, which must have its schema."""
    messages = MessageBuilder(
        MessageFormat(settings.events.message_format),
        server=settings.server.advertised_uris or f"thrift://{settings.server.host}:{settings.server.port}",
        clock=database.clock,
        max_message_bytes=settings.events.max_message_bytes,
    )
    context = StoreContext(
        database=database,
        messages=messages,
        warehouse=Warehouse(settings.warehouse, metrics=metrics),
        settings=settings,
        clock=database.clock,
        server_user=system_user(),
    )
    return DatabaseStores(
        objects=ObjectStore(context),
        transactions=TxnStore(
            database,
            messages,
            settings,
            features=database.features,
            check_cleanup=partial(require_cleanable, context),
        ),
        log=NotificationLog(database, max_response=settings.events.max_response),
        event_cleaner=EventCleaner(database, database.clock),
        auxiliary=AuxiliaryStores(context),
    )
