"""Constraints through the cache: all of a table as one facet."""

from __future__ import annotations

from hms_cache.cache.entries import Entry, Facet
from hms_cache.cache.reads.cached_entity import CachedEntity
from hms_cache.cache.reads.reading import Bypass, Need
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.metadata.object_names import TableName, table_name
from hms_cache.store.contract.constraints import ConstraintReads, KeyEnd
from hms_cache.store.contract.read_version import ANY_VERSION, ReadVersion
from hms_cache.thrift_gen.hive_metastore.ttypes import SQLAllTableConstraints, SQLForeignKey


class CachedConstraints(CachedEntity[ConstraintReads], ConstraintReads):
    """`ConstraintReads` from memory if possible, else from the store."""

    def get_table_constraints(self, table: TableName, *, version: ReadVersion = ANY_VERSION) -> SQLAllTableConstraints:

        def from_memory(cache: SharedCache) -> SQLAllTableConstraints | Need | Bypass:
            entry = self._reading.table_entry(cache, table, version)
            if not isinstance(entry, Entry):
                return entry
            cached: SQLAllTableConstraints | None = entry.facets.get(Facet.CONSTRAINTS)
            return cached if cached is not None else Need((LoadRequest(table, Facet.CONSTRAINTS),))

        def from_store() -> SQLAllTableConstraints:
            return self._store.get_table_constraints(table, version=version)

        return self._reading.answer(
            "constraints", from_memory, from_store, facet=Facet.CONSTRAINTS, table=table, version=version
        )

    def get_foreign_keys(
        self, catalog: str, parent: KeyEnd, child: KeyEnd, *, version: ReadVersion = ANY_VERSION
    ) -> list[SQLForeignKey]:
        def from_store() -> list[SQLForeignKey]:
            return self._store.get_foreign_keys(catalog, parent, child, version=version)

        child_database, child_table = child
        if parent != (None, None) or child_database is None or child_table is None:
            return self._reading.pass_through("foreign_keys", from_store)
        return (
            self.get_table_constraints(table_name(catalog, child_database, child_table), version=version).foreignKeys
            or []
        )
