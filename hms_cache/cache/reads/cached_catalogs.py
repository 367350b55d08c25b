"""Catalogs beside the cache: always the store's, as no event tells of all their changes. What the store shows of them
may be later than what is held of the rest, so the next read asks (P3)."""

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
