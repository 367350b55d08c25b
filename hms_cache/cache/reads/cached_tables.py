"""Tables and their names through the cache."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial

from hms_cache.cache.encoded_tables import EncodedTables
from hms_cache.cache.entries import Entry, Facet
from hms_cache.cache.reads.cached_entity import CachedEntity
from hms_cache.cache.reads.database_facets import (
    MatchingDatabases,
    database_names,
    of_database,
    of_each_database,
)
from hms_cache.cache.reads.reading import Bypass, Need, frozen_table
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.metadata.names import matching_names, normalize_identifier
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.read_version import ANY_VERSION, ReadVersion
from hms_cache.store.contract.tables import TableReads
from hms_cache.store.rows.statistics_validity import parse_write_ids
from hms_cache.store.tables.table_store import check_statistics_by_list
from hms_cache.thrift_gen.hive_metastore.ttypes import Table, TableMeta

TableNames = dict[str, TableMeta]

MAX_LOADED_TOGETHER = 300
"""Missing tables that one `get_tables` loads into the cache (Hive's batch size for listing clients). If more are
missing, the store answers in its fixed number of statements, so that a listing does not fill the cache."""


class CachedTables(CachedEntity[TableReads], TableReads):
    """`TableReads` from memory if possible, else from the store."""

    def get_table(
        self, table: TableName, *, version: ReadVersion = ANY_VERSION, statistics_engine: str | None = None
    ) -> Table:

        def from_memory(cache: SharedCache) -> Table | Need | Bypass:
            if statistics_engine is not None:
                return Bypass(Reason.UNSUPPORTED_FIELD)
            entry = self._reading.table_entry(cache, table, version)
            return _for_request(entry, version.valid_write_ids) if isinstance(entry, Entry) else entry

        def from_store() -> Table:
            return self._store.get_table(table, version=version, statistics_engine=statistics_engine)

        return self._reading.answer("table", from_memory, from_store, facet=Facet.TABLE, table=table, version=version)

    def get_tables(
        self, database: DatabaseName, names: Sequence[str], *, version: ReadVersion = ANY_VERSION
    ) -> list[Table]:
        keys = [TableName(*database, name) for name in dict.fromkeys(map(normalize_identifier, names))]
        policy = self._reading.policy

        def from_memory(cache: SharedCache) -> list[Table] | Need | Bypass:
            if version.valid_write_ids is not None or not all(policy.names_table(key) for key in keys):
                return Bypass(Reason.UNSUPPORTED_FIELD if version.valid_write_ids is not None else Reason.EXCLUDED)
            cached_names: TableNames | Need = of_database(cache, database, Facet.TABLE_NAMES)
            if not cached_names:
                return Bypass(Reason.INCOMPLETE)  # perhaps there is no such database: the store raises the error
            found: list[Entry] = []
            missing: list[LoadRequest] = []
            for key in keys:
                if not isinstance(cached_names, Need) and key.table not in cached_names:
                    continue
                entry = self._reading.table_entry(cache, key, version)
                if isinstance(entry, Bypass):
                    return entry
                if isinstance(entry, Need):
                    missing.extend(entry.requested)
                else:
                    found.append(entry)
            # Tables with an entry exist, whatever else is in the database. For others, the list of names decides.
            if isinstance(cached_names, Need) and (missing or not found):
                return cached_names
            if len(missing) > MAX_LOADED_TOGETHER:
                return Bypass(Reason.INCOMPLETE)
            if missing:
                return Need(tuple(missing))
            for entry in found:
                entry.reads += 1
            return EncodedTables(
                [frozen_table(entry) for entry in found], [entry.encoded_table or b"" for entry in found]
            )

        return self._reading.answer(
            "tables", from_memory, lambda: self._store.get_tables(database, names, version=version), facet=Facet.TABLE
        )

    def get_table_names(
        self, database: DatabaseName, pattern: str | None = None, table_type: str | None = None
    ) -> list[str]:

        def from_memory(cache: SharedCache) -> Callable[[], list[str]] | Need:
            cached: TableNames | Need = of_database(cache, database, Facet.TABLE_NAMES)
            return cached if isinstance(cached, Need) else partial(_matching, cached, pattern, table_type)

        return self._reading.answer_made(
            "table_names",
            from_memory,
            lambda: self._store.get_table_names(database, pattern, table_type),
            facet=Facet.TABLE_NAMES,
            subject=database,
        )

    def get_table_names_by_filter(self, database: DatabaseName, filter_text: str, limit: int = -1) -> list[str]:
        return self._reading.pass_through(
            "table_names_by_filter", lambda: self._store.get_table_names_by_filter(database, filter_text, limit)
        )

    def get_table_meta(
        self, catalog: str, database_pattern: str | None, table_pattern: str | None, table_types: Sequence[str] = ()
    ) -> list[TableMeta]:
        key = normalize_identifier(catalog)
        databases = MatchingDatabases(self._reading, key, database_pattern)

        def from_memory(cache: SharedCache) -> Callable[[], list[TableMeta]] | Need | Bypass:
            names = database_names(cache, key)
            if isinstance(names, Need):
                return names
            found = of_each_database(cache, key, databases.among(names), Facet.TABLE_NAMES)
            if not isinstance(found, list):
                return found
            return partial(_matching_meta, found, table_pattern, tuple(table_types))

        def from_store() -> list[TableMeta]:
            return self._store.get_table_meta(catalog, database_pattern, table_pattern, table_types)

        return self._reading.answer_made("table_meta", from_memory, from_store, facet=Facet.TABLE_NAMES)

    def get_materialized_view_names(self, catalog: str, database: str | None = None) -> list[tuple[str, str]]:
        return self._reading.pass_through(
            "materialized_views", lambda: self._store.get_materialized_view_names(catalog, database)
        )


def _matching(tables: TableNames, pattern: str | None, table_type: str | None) -> list[str]:
    """Runs without the cache's lock: a pattern takes 2 µs for each name. Lists of names are replaced, never changed."""
    if table_type is None:
        return matching_names(tables, pattern)
    return matching_names((name for name, meta in tables.items() if meta.tableType == table_type), pattern)


def _matching_meta(found: Sequence[TableNames], pattern: str | None, table_types: Sequence[str]) -> list[TableMeta]:
    """Like `_matching`, for several databases."""
    return [
        tables[name]
        for tables in found
        for name in matching_names(tables, pattern)
        if not table_types or tables[name].tableType in table_types
    ]


def _for_request(entry: Entry, valid_write_ids: str | None) -> Table | Bypass:
    """The table as the store would answer it to this request.

    A covered write-id list is sufficient to decide whether the statistics may be used: every write id valid in it is
    valid in the entry's tag, so none of them is aborted, and the transaction tables add nothing.
    """
    table = copy.copy(frozen_table(entry))
    if entry.is_transactional and valid_write_ids is not None:
        if parse_write_ids(valid_write_ids).is_no_list:
            return Bypass(Reason.UNSUPPORTED_FIELD)
        table.parameters = dict(table.parameters or {})
        check_statistics_by_list(table, valid_write_ids)
    return table
