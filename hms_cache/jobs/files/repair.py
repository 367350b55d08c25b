"""Adds and drops partitions so that the catalog matches the directories. Files are not changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from thrift.Thrift import TException

from hms_cache.batches import batches
from hms_cache.client import MetastoreClient
from hms_cache.jobs.files.directories import DirectoryLister, canonical
from hms_cache.jobs.frame.partition_calls import (
    add_partitions,
    drop_partitions,
    is_named_by,
    new_partition,
    table_now,
)
from hms_cache.jobs.sources.metastore_reader import in_catalog
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.partition_names import PartitionNaming
from hms_cache.thrift_gen.hive_metastore.ttypes import GetPartitionsByNamesRequest, Table
from hms_cache.values import frozen


@frozen
class Repair:
    """A partition to add or to drop."""

    action: str
    """``add`` or ``drop``."""

    partition: str
    location: str


@dataclass(slots=True)
class Outcome:
    """What a repair did to one table."""

    added: int = 0
    dropped: int = 0
    unchanged: int = 0
    """Partitions whose state had changed since they were found, by the check before the call or by somebody else
    meanwhile."""

    failures: list[str] = field(default_factory=list)


def repair_table(client: MetastoreClient, name: TableName, repairs: Sequence[Repair], batch_partitions: int) -> Outcome:
    """Adds and drops partitions in batches, each one atomic. Refusals of the metastore are reported, and the next batch
    is tried.

    Listing directories takes long, so the table, its partitions and the directories are checked again before each
    batch.
    """
    outcome = Outcome()
    lister = DirectoryLister()
    for action, repair in (("add", _add), ("drop", _drop)):
        for batch in batches([one for one in repairs if one.action == action], batch_partitions):
            try:
                table = table_now(client, name)
                if table is None:
                    outcome.unchanged += len(batch)
                else:
                    repair(client, lister, table, batch, outcome)
            except TException as error:
                outcome.failures.append(str(getattr(error, "message", None) or error))
    return outcome


def _add(
    client: MetastoreClient, lister: DirectoryLister, table: Table, batch: Sequence[Repair], outcome: Outcome
) -> None:
    of_table = [one for one in batch if is_named_by(table, one.partition, one.location)]
    still = [one for one in of_table if lister.files(one.location).files]
    outcome.unchanged += len(batch) - len(still)
    if still:
        done = add_partitions(client, table, [new_partition(table, one.partition, one.location) for one in still])
        outcome.added += done
        outcome.unchanged += len(still) - done


def _drop(
    client: MetastoreClient, lister: DirectoryLister, table: Table, batch: Sequence[Repair], outcome: Outcome
) -> None:
    where = _where_now(client, table, [one.partition for one in batch])
    here = [one for one in batch if where.get(one.partition) == one.location]
    still = [one for one in here if _is_gone(lister, one.location, table.sd.location)]
    outcome.unchanged += len(batch) - len(still)
    if still:
        done = drop_partitions(client, table, [one.partition for one in still], deletes_data=False)
        outcome.dropped += done
        outcome.unchanged += len(still) - done


def _where_now(client: MetastoreClient, table: Table, names: Sequence[str]) -> dict[str, str]:
    """The current locations of the partitions that still exist."""
    naming = PartitionNaming([key.name for key in table.partitionKeys])
    request = GetPartitionsByNamesRequest(
        db_name=in_catalog(table.catName or DEFAULT_CATALOG, table.dbName), tbl_name=table.tableName, names=list(names)
    )
    found = client.call("get_partitions_by_names_req", request).partitions
    return {naming.name(one.values): canonical(one.sd.location or "") for one in found if one.sd is not None}


def _is_gone(lister: DirectoryLister, location: str, root: str) -> bool:
    now = lister.files(location)
    return not now.exists and now.problem is None and not lister.is_away(location, root)
