"""Partitions added and dropped so that the catalog is what the directories say. No file is touched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from thrift.Thrift import TException

from hms_cache.batches import batches
from hms_cache.client import MetastoreClient
from hms_cache.jobs.files.directories import DirectoryLister
from hms_cache.jobs.frame.partition_calls import add_partitions, drop_partitions, new_partition
from hms_cache.thrift_gen.hive_metastore.ttypes import Table
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
    """These were no longer as they had been found: looked at again just before, or done by somebody else."""

    failures: list[str] = field(default_factory=list)


def repair_table(client: MetastoreClient, table: Table, repairs: Sequence[Repair], batch_partitions: int) -> Outcome:
    """Adds and drops in batches, each one atomic. What the metastore refuses is told, and the next batch is tried."""
    outcome = Outcome()
    lister = DirectoryLister()
    for batch in batches([one for one in repairs if one.action == "add"], batch_partitions):
        still = [one for one in batch if lister.files(one.location).files]
        new = [new_partition(table, one.partition, one.location) for one in still]
        outcome.added += _done(outcome, batch, still, partial(add_partitions, client, table, new))
    for batch in batches([one for one in repairs if one.action == "drop"], batch_partitions):
        still = [one for one in batch if _is_gone(lister, one.location, table.sd.location)]
        names = [one.partition for one in still]
        drop = partial(drop_partitions, client, table, names, deletes_data=False)
        outcome.dropped += _done(outcome, batch, still, drop)
    return outcome


def _is_gone(lister: DirectoryLister, location: str, root: str) -> bool:
    now = lister.files(location)
    return not now.exists and now.problem is None and not lister.is_away(location, root)


def _done(outcome: Outcome, batch: Sequence[Repair], still: Sequence[Repair], call: Callable[[], int]) -> int:
    """How many the call itself added or dropped. The outcome has the rest: those that are not as they had been found,
    those that somebody else was faster with, and why the call failed."""
    outcome.unchanged += len(batch) - len(still)
    if not still:
        return 0
    try:
        done = call()
    except TException as error:
        outcome.failures.append(str(getattr(error, "message", None) or error))
        return 0
    outcome.unchanged += len(still) - done
    return done
