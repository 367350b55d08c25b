"""Where the catalog is, as a source's options say it."""

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
    """A metastore's URIs or a metastore database's URL: one of the two. Travels to Spark's workers."""

    metastore: Metastores | str | None = None
    database: str | None = None

    @classmethod
    def of_options(cls, options: Mapping[str, str]) -> Origin:
        """Of the options ``metastore`` (with ``auth``) and ``database`` (with ``password_variable``).

        Raises ConfigurationError unless one of them is given.
        """
        metastore, database = options.get("metastore"), database_url(options)
        if bool(metastore) == bool(database):
            raise ConfigurationError(
                "say where the catalog is by one of the options metastore (thrift://host:9083, several separated by "
                "commas) and database (the URL of the metastore database). A table made by CREATE TABLE … USING "
                "has them if it is made without a list of columns; the option columns chooses some"
            )
        if metastore:
            return cls(Metastores.of_texts(metastore, options.get("auth")))
        return cls(None, database)

    def for_tasks(self) -> Origin:
        """The same for tasks of Spark. Raises what `hms_cache.client.for_tasks` raises."""
        return replace(self, metastore=for_tasks(self.metastore)) if isinstance(self.metastore, Metastores) else self

    @contextmanager
    def reading(self, *, fills_cache: bool = True) -> Iterator[CatalogReader]:
        """A reader of the catalog, closed at the end. `fills_cache`: as in `MetastoreClient`."""
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
        """The notification log, closed at the end."""
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
