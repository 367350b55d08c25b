"""Walks over the whole catalog of the primary with reads that cover all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from hms_cache.app.shadow.comparing import Answer
from hms_cache.app.shadow.metastore import Metastore
from hms_cache.app.shadow.mirror import Read
from hms_cache.batches import batches
from hms_cache.errors import HmsCacheError
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import METHODS

#: Number of partitions requested at a time, as many as Hive's clients request (metastore.batch.retrieve.max).
PARTITIONS_AT_ONCE: Final = 300


class WalkFailed(HmsCacheError):
    """The primary does not list its catalog."""


class CatalogWalk:
    """Requests the names from the primary, and yields the reads of the named objects. Uses calls that Hive 2.3 to 4.0
    all have."""

    def __init__(self, primary: Metastore, tables: Sequence[str] = ("*",)) -> None:
        """:param tables: patterns of ``database.table`` with ``*`` and ``?``."""
        self._primary = primary
        self._patterns = [pattern.lower() for pattern in tables]

    def reads(self) -> Iterator[Read]:
        """Yields every read, database by database. Raises `WalkFailed` and `NoAnswer`."""
        yield self._read("get_all_databases")
        yield self._read("get_all_functions")
        for database in self._names("get_all_databases"):
            tables = [
                table
                for table in self._names("get_all_tables", db_name=database)
                if any(fnmatchcase(f"{database}.{table}", pattern) for pattern in self._patterns)
            ]
            yield from self._database(database)
            for table in tables:
                yield from self._table(database, table)

    def _database(self, database: str) -> Iterator[Read]:
        yield self._read("get_database", name=database)
        yield self._read("get_all_tables", db_name=database)
        yield self._read("get_table_meta", db_patterns=database, tbl_patterns="*", tbl_types=[])
        yield self._read("get_functions", dbName=database, pattern="*")

    def _table(self, database: str, table: str) -> Iterator[Read]:
        request = ttypes.GetTableRequest(dbName=database, tblName=table)
        yield self._read("get_table_req", req=request)
        found = self._call("get_table_req", req=request)
        if found.kind != "value":
            return  # dropped since its name was read, or its storage handler fails
        row = found.content["table"]
        primary_keys = ttypes.PrimaryKeysRequest(db_name=database, tbl_name=table)
        yield self._read("get_primary_keys", request=primary_keys)
        foreign_keys = ttypes.ForeignKeysRequest(foreign_db_name=database, foreign_tbl_name=table)
        yield self._read("get_foreign_keys", request=foreign_keys)
        columns = [column["name"] for column in row.get("sd", {}).get("cols", [])]
        if not row.get("partitionKeys"):
            if columns:
                statistics = ttypes.TableStatsRequest(dbName=database, tblName=table, colNames=columns, engine="hive")
                yield self._read("get_table_statistics_req", request=statistics)
            return
        yield from self._partitions(database, table, columns)

    def _partitions(self, database: str, table: str, columns: list[str]) -> Iterator[Read]:
        yield self._read("get_partition_names", db_name=database, tbl_name=table, max_parts=-1)
        names = self._names("get_partition_names", db_name=database, tbl_name=table, max_parts=-1)
        for some in batches(names, PARTITIONS_AT_ONCE):
            yield self._read("get_partitions_by_names", db_name=database, tbl_name=table, names=some)
            if columns:
                request = ttypes.PartitionsStatsRequest(
                    dbName=database, tblName=table, colNames=columns, partNames=some, engine="hive"
                )
                yield self._read("get_partitions_statistics_req", request=request)

    def _names(self, method: str, **arguments: Any) -> list[str]:
        answer = self._call(method, **arguments)
        if answer.kind != "value":
            raise WalkFailed(f"{self._primary.endpoint} refuses {method}: {answer.content}: {answer.text}")
        return list(answer.content or ())

    def _call(self, method: str, **arguments: Any) -> Answer:
        return self._primary.call(method, self._arguments(method, **arguments))

    def _read(self, method: str, **arguments: Any) -> Read:
        return Read(method, self._arguments(method, **arguments))

    @staticmethod
    def _arguments(method: str, **arguments: Any) -> Any:
        return METHODS[method].args_class(**arguments)
