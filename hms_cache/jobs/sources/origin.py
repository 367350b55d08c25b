"""The origin of the catalog, from a source's options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from hms_cache.client import Metastores, for_tasks
from hms_cache.errors import ConfigurationError
from hms_cache.jobs.sources.catalog_reader import CatalogReader
from hms_cache.jobs.sources.event_logs import MetastoreEventLog
from hms_cache.jobs.sources.options import database_url
from hms_cache.notifications.event_log import EventLog
from hms_cache.values import frozen


@frozen
class Origin:
    """Either the URIs of a metastore or the URL of a metastore database. Spark sends it to its workers."""

    metastore: Metastores | str | None = None
    database: str | None = None

    @classmethod
    def of_options(cls, options: Mapping[str, str]) -> Origin:
        """Creates it from the options ``metastore`` (with ``auth``) or ``database`` (with ``password_variable``).

        Raises ConfigurationError unless exactly one of them is set.
        """
        metastore, database = options.get("metastore"), database_url(options)
        if bool(metastore) == bool(database):
            raise ConfigurationError(
                "set exactly one of the options metastore (thrift://host:9083, several separated by commas) and "
                "database (the URL of the metastore database). A table created by CREATE TABLE … USING stores them "
                "only if it is created without a list of columns; use the option columns to select columns"
            )
        if metastore:
            return cls(Metastores.of_texts(metastore, options.get("auth")))
        return cls(None, database)

    def for_tasks(self) -> Origin:
        """Returns the origin for Spark's tasks. Raises the exceptions of `hms_cache.client.for_tasks`."""
        return replace(self, metastore=for_tasks(self.metastore)) if isinstance(self.metastore, Metastores) else self

    @contextmanager
    def reading(self, *, fills_cache: bool = True) -> Iterator[CatalogReader]:
        """Opens a reader of the catalog, which is closed at the end of the block.

        :param fills_cache: as in `MetastoreClient`.
        """
        reader: CatalogReader
        if self.database:
            from hms_cache.jobs.sources.database_reader import DatabaseReader

            reader = DatabaseReader(self.database)
        else:
            from hms_cache.jobs.sources.metastore_reader import MetastoreReader

            reader = MetastoreReader(self.metastore or "", fills_cache=fills_cache)
        try:
            yield reader
        finally:
            reader.close()

    @contextmanager
    def following(self) -> Iterator[EventLog]:
        """Opens the notification log, which is closed at the end of the block."""
        if self.database:
            from hms_cache.jobs.sources.database_reader import open_metastore_database
            from hms_cache.store.events.notification_log import NotificationLog

            database = open_metastore_database(self.database)
            try:
                yield NotificationLog(database)
            finally:
                database.close()
            return
        log = MetastoreEventLog(self.metastore or "")
        try:
            yield log
        finally:
            log.close()
