"""Catalogs are always read from the store, since events do not report all their changes.

Such an answer may be newer than memory, so the next read needs a position check (P3).
"""

from __future__ import annotations

from hms_cache.cache.reads.cached_entity import CachedEntity
from hms_cache.store.contract.catalogs import CatalogReads
from hms_cache.thrift_gen.hive_metastore.ttypes import Catalog


class PassedCatalogs(CachedEntity[CatalogReads], CatalogReads):
    """`CatalogReads` from the store."""

    def get_catalog(self, catalog: str) -> Catalog:
        return self._reading.pass_through("catalog", lambda: self._store.get_catalog(catalog))

    def get_catalog_names(self) -> list[str]:
        return self._reading.pass_through("catalog_names", self._store.get_catalog_names)
