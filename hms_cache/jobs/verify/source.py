"""The data source ``hms_differences``: differences between the answers of servers and the database, as rows.

Options: ``servers`` (URIs, separated by blanks), ``auth`` (at all of them), ``database``, ``tables``, ``rechecks``,
``recheck_wait_s``, ``tables_per_slice``, ``partitions_per_slice``, ``sample`` and ``sample_index``.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from hms_cache.batches import batches
from hms_cache.client import Metastores
from hms_cache.client.delegation import TransferredToken, use_transferred
from hms_cache.errors import ConfigurationError
from hms_cache.jobs.sources.catalog_reader import PartitionRange, packed
from hms_cache.jobs.sources.database_reader import DatabaseReader
from hms_cache.jobs.sources.fields import LONG, STRING, fields, required
from hms_cache.jobs.sources.metastore_reader import MetastoreReader
from hms_cache.jobs.sources.options import SliceSize, positive
from hms_cache.jobs.sources.origin import Origin
from hms_cache.jobs.sources.scope import TableScope
from hms_cache.jobs.sources.task_parts import TaskPart, for_tasks
from hms_cache.jobs.verify.comparison import Recheck, compare_unit
from hms_cache.jobs.verify.objects import Unit
from hms_cache.values import frozen

SLICE_SIZE = SliceSize(tables=100, partitions=5_000)
"""A task holds this twice, or three times during a recheck: some 50 MB."""

SCHEMA = StructType(
    [
        *required(STRING, "server", "catalog", "database"),
        *fields(STRING, "table", "partition"),
        # database, tables, table, partitions, partition or statistics; null in a row that only counts.
        *fields(STRING, "kind"),
        # different, undecided, or compared: the row of each task with the number of its objects.
        *required(STRING, "outcome"),
        *fields(STRING, "field", "held", "stored"),
        *fields(LONG, "compared"),
        # For a finding: the newest event at the last check.
        *fields(LONG, "event_id"),
    ]
)


@frozen
class Sample:
    """A part of the catalog, a different one for each index, so that `parts` consecutive ones cover everything. An
    object stays in the same part while it exists. Serialized to Spark's workers."""

    parts: int = 1
    index: int = 0

    @classmethod
    def of_rate(cls, rate: float, index: int) -> Sample:
        """Creates a sample with a rate above 0 and at most 1. Raises ConfigurationError."""
        if not 0 < rate <= 1:
            raise ConfigurationError(f"a sample is a part above 0 and at most 1, not {rate:g}")
        return cls(math.ceil(1 / rate - 1e-9), index)

    def admits(self, *names: str) -> bool:
        """Whether the object with these names belongs to this part."""
        if self.parts == 1:
            return True
        digest = hashlib.blake2b("\0".join(names).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.parts == self.index % self.parts


EVERYTHING = Sample()


def _part(some: PartitionRange) -> tuple[str, ...]:
    """Identifies a part of a large table; empty for a whole table, which is sampled together with the table itself."""
    return () if some.ids is None else (str(some.ids[0]),)


class HmsDifferencesSource(DataSource):  # type: ignore[misc]
    """See the module."""

    transferred_tokens: ClassVar[Mapping[Metastores, TransferredToken]] = {}
    """See `hms_cache.jobs.sources.with_tokens`."""

    @classmethod
    def name(cls) -> str:
        return "hms_differences"

    def schema(self) -> StructType:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        use_transferred(self.transferred_tokens)
        servers = str(self.options.get("servers") or "").split()
        database = self.options.get("database")
        if not servers or not database:
            raise ConfigurationError("verify needs at least one server (thrift://host:port) and the database's URL")
        return HmsDifferencesReader(
            [Metastores.of_texts(server, self.options.get("auth")) for server in servers],
            database,
            TableScope.of_text(self.options.get("tables")),
            Recheck(positive(self.options, "rechecks", 3), float(self.options.get("recheck_wait_s") or 2.0)),
            Sample.of_rate(float(self.options.get("sample") or 1.0), int(self.options.get("sample_index") or 0)),
            SLICE_SIZE.changed_by(self.options),
        )


class HmsDifferencesReader(DataSourceReader):  # type: ignore[misc]
    """Plans units, and compares a unit. Serialized to Spark's workers."""

    def __init__(
        self,
        servers: Sequence[Metastores | str],
        database: str,
        scope: TableScope,
        recheck: Recheck,
        sample: Sample = EVERYTHING,
        slice_size: SliceSize = SLICE_SIZE,
    ) -> None:
        self._servers = list(servers)
        self._database = database
        self._scope = scope
        self._recheck = recheck
        self._sample = sample
        self._slice_size = slice_size

    def partitions(self) -> Sequence[InputPartition]:
        """For each server, the units of all databases and tables that exist in the database or on the server."""
        return [part for server in self._servers for part in for_tasks(self._of_server(server), Origin(server))]

    def _of_server(self, server: Metastores | str) -> list[InputPartition]:
        units: list[InputPartition] = []
        with closing(DatabaseReader(self._database)) as reader, closing(MetastoreReader(server)) as client:
            catalogs = {*reader.catalog_names(), *client.catalog_names()}
            for catalog in filter(self._scope.admits, sorted(catalogs)):
                databases = {*reader.database_names(catalog), *client.database_names(catalog)}
                for database in sorted(databases):
                    if self._scope.admits(catalog, database):
                        units.extend(self._units(reader, client, str(server), catalog, database))
        return units

    def _units(
        self, reader: DatabaseReader, client: MetastoreReader, server: str, catalog: str, database: str
    ) -> Iterator[Unit]:
        names = {*reader.table_names(catalog, database), *client.table_names(catalog, database)}
        admitted = sorted(name for name in names if self._scope.admits(catalog, database, name))
        tables = [name for name in admitted if self._sample.admits(catalog, database, name)]
        if not self._scope.patterns:
            yield Unit(server, catalog, database, whole_database=True)
        for names_together in batches(tables, self._slice_size.tables):
            yield Unit(server, catalog, database, tables=tuple(names_together))
        planned = reader.partition_ranges(catalog, database, admitted, self._slice_size.partitions)
        ranges = [one for one in planned if self._sample.admits(catalog, database, one.table.table, *_part(one))]
        for some in packed(ranges, self._slice_size):
            yield Unit(server, catalog, database, ranges=some)

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        whole, access = (partition.part, partition.origin) if isinstance(partition, TaskPart) else (partition, None)
        unit: Unit = whole
        origin = access or Origin(next(one for one in self._servers if str(one) == unit.server))
        with closing(DatabaseReader(self._database)) as database, origin.reading() as server:
            compared, findings = compare_unit(server, database, unit, self._recheck)
        place = (unit.server, unit.catalog, unit.database)
        yield (*place, None, None, None, "compared", None, None, None, compared, None)
        for finding in findings:
            key = finding.key
            yield (
                *place,
                key.table or None,
                key.partition or None,
                key.kind,
                finding.outcome,
                finding.field,
                finding.held,
                finding.stored,
                None,
                finding.event_id,
            )
