"""The stores of one server, built from the settings."""

from __future__ import annotations

from dataclasses import dataclass

from hms_cache.app.options import message_format, store_settings, txn_options, warehouse_settings
from hms_cache.config import Settings
from hms_cache.metrics.registry import WarehouseMetrics
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.auxiliary.auxiliary_store import AuxiliaryStores
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import Database
from hms_cache.store.events.notification_log import EventCleaner, NotificationLog
from hms_cache.store.object_store import ObjectStore
from hms_cache.store.txn_store import TxnStore
from hms_cache.store.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class DatabaseStores:
    """What answers from the database."""

    objects: ObjectStore
    transactions: TxnStore
    log: NotificationLog
    event_cleaner: EventCleaner
    auxiliary: AuxiliaryStores


def build_database_stores(
    settings: Settings, database: Database, metrics: WarehouseMetrics | None = None
) -> DatabaseStores:
    """All stores on this database; its schema must be there."""
    messages = MessageBuilder(
        message_format(settings),
        server=settings.server.advertised_uris or f"thrift://{settings.server.host}:{settings.server.port}",
        clock=database.clock,
        max_message_bytes=settings.events.max_message_bytes,
    )
    context = StoreContext(
        database=database,
        messages=messages,
        warehouse=Warehouse(warehouse_settings(settings), metrics=metrics),
        settings=store_settings(settings, database.refused_filters.add),
        clock=database.clock,
    )
    options = txn_options(settings)
    return DatabaseStores(
        objects=ObjectStore(context, open_txn_timeout_ms=options.open_txn_timeout_ms),
        transactions=TxnStore(database, messages, options, features=database.features),
        log=NotificationLog(database, max_response=settings.events.max_response),
        event_cleaner=EventCleaner(database, database.clock),
        auxiliary=AuxiliaryStores(context),
    )
