"""Contract: catalogs (Hive 3 and later; `hive` is the default one)."""

from __future__ import annotations

from abc import ABC, abstractmethod

from hms_cache.thrift_gen.hive_metastore.ttypes import Catalog


class CatalogReads(ABC):
    """Reads of catalogs. No event reports their changes: Hive's `DbNotificationListener` logs none."""

    @abstractmethod
    def get_catalog(self, catalog: str) -> Catalog:
        """The catalog. Raises NoSuchObjectException."""

    @abstractmethod
    def get_catalog_names(self) -> list[str]:
        """All names, ascending."""


class CatalogWrites(ABC):
    """Writes of catalogs. Hive's `DbNotificationListener` logs no event for them."""

    @abstractmethod
    def create_catalog(self, catalog: Catalog) -> None:
        """Creates the catalog, its directory and its `default` database.

        Raises AlreadyExistsException, InvalidObjectException.
        """

    @abstractmethod
    def alter_catalog(self, name: str, catalog: Catalog) -> None:
        """Changes location and description. Raises NoSuchObjectException, InvalidOperationException (a new name)."""

    @abstractmethod
    def drop_catalog(self, name: str, *, if_exists: bool = False) -> None:
        """Drops an empty catalog together with its empty `default` database.

        Raises NoSuchObjectException unless `if_exists`, InvalidOperationException if the catalog has databases or is
        the default catalog.
        """
