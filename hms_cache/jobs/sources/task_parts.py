"""Parts of a source's rows together with the access that their tasks need: tasks do not have the user's ticket."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.datasource import InputPartition

from hms_cache.jobs.sources.origin import Origin
from hms_cache.values import frozen


@frozen
class TaskPart(InputPartition):  # type: ignore[misc]
    """A part and the origin from which its task reads. The origin is stored in the part, not in the reader: Spark sends
    the reader of a stream to its workers once, and a delegation token may expire before the stream ends."""

    part: InputPartition
    origin: Origin


def for_tasks(parts: Sequence[InputPartition], origin: Origin) -> Sequence[InputPartition]:
    """Adds the access to the parts. Raises the exceptions of `Origin.for_tasks`."""
    access = origin.for_tasks() if parts else origin
    return parts if access == origin else [TaskPart(part, access) for part in parts]


def in_task(partition: InputPartition, origin: Origin) -> tuple[InputPartition, Origin]:
    """Returns the part and its origin, as combined by `for_tasks`."""
    return (partition.part, partition.origin) if isinstance(partition, TaskPart) else (partition, origin)
