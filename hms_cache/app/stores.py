"""The stores of one server, built from the settings."""

from __future__ import annotations

from hms_cache.app.options import message_format, store_settings, warehouse_settings
from hms_cache.app.site import Site
from hms_cache.config import Settings
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.server.stores import Stores
from hms_cache.store.context import StoreContext
from hms_cache.store.database import Database
from hms_cache.store.object_store import ObjectStore
from hms_cache.store.warehouse import Warehouse


def build_stores(settings: Settings, database: Database, site: Site) -> Stores:
    """Everything that handlers work with, on this database."""
    messages = MessageBuilder(
        message_format(settings),
        server=settings.server.advertised_uris or f"thrift://{settings.server.host}:{settings.server.port}",
        clock=database.clock,
        max_message_bytes=settings.events.max_message_bytes,
    )
    context = StoreContext(
        database=database,
        messages=messages,
        warehouse=Warehouse(warehouse_settings(settings)),
        settings=store_settings(settings),
        clock=database.clock,
    )
    objects = ObjectStore(context)
    return Stores(raw=objects, transactions=None, notifications=None, site=site)
