"""Partitions added and dropped so that the catalog is what the directories say. No file is touched."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from thrift.Thrift import TException

from hms_cache.client import MetastoreClient
from hms_cache.jobs.files.directories import DirectoryLister
from hms_cache.metadata.partition_names import values_of_name
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddPartitionsRequest,
    DropPartitionsRequest,
    Partition,
    RequestPartsSpec,
    Table,
)


@dataclass(frozen=True, slots=True)
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
    """These were no longer as they had been found: looked at again just before, or done by somebody else."""

    failures: list[str] = field(default_factory=list)


def repair_table(client: MetastoreClient, table: Table, repairs: Sequence[Repair], batch_partitions: int) -> Outcome:
    """Adds and drops in batches, each one atomic. What the metastore refuses is told, and the next batch is tried."""
    outcome = Outcome()
    lister = DirectoryLister()
    for batch in _batches([one for one in repairs if one.action == "add"], batch_partitions):
        still = [one for one in batch if lister.files(one.location).files]
        outcome.unchanged += len(batch) - len(still)
        request = AddPartitionsRequest(
            dbName=table.dbName,
            tblName=table.tableName,
            parts=[_partition(table, one) for one in still],
            ifNotExists=True,
            needResult=True,
            catName=table.catName,
        )
        done = _done(client, "add_partitions_req", request, outcome) if still else 0
        outcome.added += done or 0
        outcome.unchanged += 0 if done is None else len(still) - done
    for batch in _batches([one for one in repairs if one.action == "drop"], batch_partitions):
        still = []
        for one in batch:
            now = lister.files(one.location)
            if not now.exists and now.problem is None:
                still.append(one)
        outcome.unchanged += len(batch) - len(still)
        drop = DropPartitionsRequest(
            dbName=table.dbName,
            tblName=table.tableName,
            parts=RequestPartsSpec(names=[one.partition for one in still]),
            deleteData=False,
            ifExists=True,
            needResult=True,
            catName=table.catName,
        )
        done = _done(client, "drop_partitions_req", drop, outcome) if still else 0
        outcome.dropped += done or 0
        outcome.unchanged += 0 if done is None else len(still) - done
    return outcome


def _done(client: MetastoreClient, method: str, request: object, outcome: Outcome) -> int | None:
    """How many the call itself added or dropped, which others may do at the same time; None if it failed."""
    try:
        return len(client.call(method, request).partitions or ())
    except TException as error:
        outcome.failures.append(str(getattr(error, "message", None) or error))
        return None


def _partition(table: Table, repair: Repair) -> Partition:
    """A partition of the table's own format at the directory."""
    descriptor = copy.deepcopy(table.sd)
    descriptor.location = repair.location
    return Partition(
        catName=table.catName,
        values=values_of_name(repair.partition),
        dbName=table.dbName,
        tableName=table.tableName,
        sd=descriptor,
        parameters={},
    )


def _batches(repairs: Sequence[Repair], size: int) -> Iterator[Sequence[Repair]]:
    for start in range(0, len(repairs), size):
        yield repairs[start : start + size]
