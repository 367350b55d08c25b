"""Constraints through the cache: all of a table as one facet."""

from __future__ import annotations

from hms_cache.cache.entries import Entry, Facet
from hms_cache.cache.reads.reading import Bypass, Need, Reading, RequestVersion, key_of
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming.snapshot_reads import Wanted
from hms_cache.store.contract.constraints import ConstraintStore
from hms_cache.store.snapshots import SnapshotStore
from hms_cache.thrift_gen.hive_metastore.ttypes import SQLAllTableConstraints, SQLForeignKey


class CachedConstraints(ConstraintStore):
    """The part of `CachedStore` for constraints."""

    _reading: Reading
    _store: SnapshotStore

    def get_table_constraints(
        self,
        catalog: str,
        database: str,
        table: str,
        *,
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> SQLAllTableConstraints:
        key = key_of(catalog, database, table)
        version = RequestVersion(valid_write_ids, table_id)

        def look(cache: SharedCache) -> SQLAllTableConstraints | Need | Bypass:
            entry = self._reading.table_entry(cache, key, version)
            if not isinstance(entry, Entry):
                return entry
            held: SQLAllTableConstraints | None = entry.facets.get(Facet.CONSTRAINTS)
            return held if held is not None else Need((Wanted(key, Facet.CONSTRAINTS),))

        def ask() -> SQLAllTableConstraints:
            return self._store.get_table_constraints(
                catalog, database, table, valid_write_ids=valid_write_ids, table_id=table_id
            )

        return self._reading.answer("constraints", look, ask, facet=Facet.CONSTRAINTS, table=key, version=version)

    def get_foreign_keys(
        self,
        catalog: str,
        parent: tuple[str | None, str | None],
        child: tuple[str | None, str | None],
        *,
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> list[SQLForeignKey]:
        def ask() -> list[SQLForeignKey]:
            return self._store.get_foreign_keys(
                catalog, parent, child, valid_write_ids=valid_write_ids, table_id=table_id
            )

        child_database, child_table = child
        if parent != (None, None) or child_database is None or child_table is None:
            return self._reading.pass_through("foreign_keys", ask)
        return (
            self.get_table_constraints(
                catalog, child_database, child_table, valid_write_ids=valid_write_ids, table_id=table_id
            ).foreignKeys
            or []
        )

    def add_constraints(self, constraints: SQLAllTableConstraints) -> None:
        self._store.add_constraints(constraints)

    def drop_constraint(
        self, catalog: str, database: str, table: str, constraint: str, *, if_exists: bool = False
    ) -> None:
        self._store.drop_constraint(catalog, database, table, constraint, if_exists=if_exists)
