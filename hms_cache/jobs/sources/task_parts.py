"""Parts of a source's rows with the access that the tasks which read them have: none of them has the user's ticket."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.datasource import InputPartition

from hms_cache.jobs.sources.origin import Origin
from hms_cache.values import frozen


@frozen
class TaskPart(InputPartition):  # type: ignore[misc]
    """A part, and where its task reads. In the part, not in the reader: Spark sends the reader of a stream to its
    workers once, and a delegation token does not live as long as a stream."""

    part: InputPartition
    origin: Origin


def for_tasks(parts: Sequence[InputPartition], origin: Origin) -> Sequence[InputPartition]:
    """The parts as tasks get them. Raises what `Origin.for_tasks` raises."""
    access = origin.for_tasks() if parts else origin
    return parts if access == origin else [TaskPart(part, access) for part in parts]


def in_task(partition: InputPartition, origin: Origin) -> tuple[InputPartition, Origin]:
    """What `for_tasks` has put together."""
    return (partition.part, partition.origin) if isinstance(partition, TaskPart) else (partition, origin)
