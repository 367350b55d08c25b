"""Writes the batches of a repair through the metastore, so that every cache is updated."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from thrift.Thrift import TException

from hms_cache.client import MetastoreClient, OutcomeUnknownError
from hms_cache.jobs.files.directories import canonical
from hms_cache.jobs.frame.partition_calls import (
    add_partitions,
    drop_partitions,
    is_named_by,
    new_partition,
    root_of,
    table_now,
)
from hms_cache.jobs.frame.reasons import reason_of
from hms_cache.jobs.repair.catalog_partitions import CatalogPartitions
from hms_cache.jobs.repair.directories import Directories
from hms_cache.jobs.repair.plan import ADD, DROP, EXPIRE, Change, missing, retention_s
from hms_cache.jobs.repair.plan_file import Batch
from hms_cache.jobs.sources.scope import shown_name
from hms_cache.metadata.object_names import TableName
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, Table

_ATTEMPTS = 3


@dataclass(slots=True)
class Outcome:
    """Results of batches. `failures`: table, partition, reason."""

    done: dict[str, int] = field(default_factory=lambda: {ADD: 0, DROP: 0, EXPIRE: 0})
    unchanged: int = 0
    """Changes that were no longer applicable or already done by somebody else; skipped."""

    uncertain: int = 0
    """Changes done by this run or by somebody else: the connection broke, and a retry found them done."""

    failures: list[tuple[str, str, str]] = field(default_factory=list)


class RepairWriter:
    """Writes batches, each in one atomic call."""

    def __init__(
        self, client: MetastoreClient, known: CatalogPartitions, directories: Directories, pool: ThreadPoolExecutor
    ) -> None:
        self._client = client
        self._catalog_partitions = known
        self._directories = directories
        self._pool = pool
        self.outcome = Outcome()

    def write(self, batch: Batch) -> None:
        """Checks each directory again, then writes what still needs to be done; refusals are reported.

        Raises MetastoreUnavailableError; OutcomeUnknownError if the connection breaks three times.
        """
        table_name = TableName(batch.catalog, batch.database, batch.table)
        table = table_now(self._client, table_name)
        if table is None:
            self.outcome.unchanged += len(batch.changes)
            return
        name = shown_name(table_name)
        unknown: list[tuple[Change, str]] = []
        reason = self._missing_root(table)
        if reason is not None:
            self.outcome.failures += [(name, change.name, reason) for change in batch.changes]
            return
        root = root_of(table)
        if batch.action == EXPIRE:
            still = self._still_expired(table, batch.changes)
        elif batch.action == DROP:
            still, unknown = missing(self._where_now(table, batch.changes), self._directories, self._pool, root)
        else:
            of_table = [change for change in batch.changes if is_named_by(table, *change)]
            gone, unknown = missing(of_table, self._directories, self._pool, root)
            left = {*gone, *(change for change, _ in unknown)}
            still = [change for change in of_table if change not in left]
        self.outcome.failures += [(name, change.name, reason) for change, reason in unknown]
        self.outcome.unchanged += len(batch.changes) - len(still) - len(unknown)
        if still:
            self._call(table, name, batch.action, still)

    def _missing_root(self, table: Table) -> str | None:
        """The reason to write nothing: the table's own directory does not exist now, or this cannot be determined. An
        unmounted file system has no partitions either, and files of partitions dropped now would remain."""
        try:
            if self._directories.exists(root_of(table)):
                return None
        except (OSError, MetaException) as error:
            return reason_of(error)
        return f"the table's directory {table.sd.location} does not exist"

    def _where_now(self, table: Table, changes: Sequence[Change]) -> list[Change]:
        """The partitions that still exist, with their current locations."""
        locations = self._catalog_partitions.locations(table, [change.name for change in changes])
        return [Change(place.name, canonical(place.location)) for place in locations]

    def _still_expired(self, table: Table, changes: Sequence[Change]) -> list[Change]:
        """The partitions that are still expired: since the plan was made, one may have been added again, or the
        retention may have changed."""
        try:
            kept_s = retention_s(table)
        except ValueError:
            return []
        if kept_s is None:
            return []
        created_before_s = time.time() - kept_s
        locations = self._catalog_partitions.locations(table, [change.name for change in changes])
        expired = {place.name for place in locations if 0 < place.created_s < created_before_s}
        return [change for change in changes if change.name in expired]

    def _call(self, table: Table, name: str, action: str, changes: Sequence[Change]) -> None:
        """Sends a batch; a refused batch is halved until the refused changes are isolated.

        Retries after a broken connection: existing partitions are not added again, and missing ones not dropped again.
        Only changes confirmed by the metastore as made by this call count as done, because other runs may work on the
        same table.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                done = self._send(table, action, changes)
                self.outcome.done[action] += done
                if attempt == 1:
                    self.outcome.unchanged += len(changes) - done
                else:
                    self.outcome.uncertain += len(changes) - done
                return
            except OutcomeUnknownError:
                if attempt == _ATTEMPTS:
                    raise
            except TException as error:
                if len(changes) == 1:
                    self.outcome.failures.append((name, changes[0].name, reason_of(error)))
                    return
                break
        half = len(changes) // 2
        self._call(table, name, action, changes[:half])
        self._call(table, name, action, changes[half:])

    def _send(self, table: Table, action: str, changes: Sequence[Change]) -> int:
        """Returns the number of partitions that this call added or dropped."""
        if action == ADD:
            new = [new_partition(table, change.name, change.location) for change in changes]
            return add_partitions(self._client, table, new)
        names = [change.name for change in changes]
        return drop_partitions(self._client, table, names, deletes_data=action == EXPIRE)
