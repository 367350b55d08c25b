"""The files of a history put together, and those of old days deleted.

Each run leaves a file for each day it has events of; a day that is over is merged into files of a size. A merge is
done in steps that may be done again, and a journal says which one is the next:

1. The merged files are written below ``_compaction/DAY``, which readers pass over.
2. ``_compaction/DAY.json`` names them and those that they replace. From here on the merge counts: `read_history` reads
   the merged files.
3. The old files are deleted, the merged ones moved to their place, the journal deleted last.

A run that finds a journal ends that merge first; what is below ``_compaction`` without one is deleted. Whoever reads
the files without `read_history` misses the day while step 3 lasts: no file system has a step for both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import PurePosixPath

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hms_cache.jobs.history.files import Files, StoredFile
from hms_cache.jobs.history.transform import HISTORY_TABLE
from hms_cache.values import frozen

STAGING = "_compaction"
"""Beside the days."""

OPEN_DAY_FILES = 24
"""Files at which the newest day is merged, too: it goes on growing, and each merge writes all of it again."""


@dataclass(slots=True)
class Compacted:
    """What was done."""

    days: int = 0
    files_before: int = 0
    files_after: int = 0
    days_deleted: int = 0


@frozen
class Journal:
    """A merge that counts and is not ended."""

    day: str
    batch: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    """Names of files in the staging directory of the day."""

    @property
    def staging(self) -> str:
        return f"{STAGING}/{self.day}"

    @property
    def path(self) -> str:
        return f"{STAGING}/{self.day}.json"

    def target(self, name: str) -> str:
        """Where a merged file belongs."""
        return f"day={self.day}/batch={self.batch}/{name}"

    @property
    def text(self) -> str:
        return json.dumps({"day": self.day, "batch": self.batch, "old": self.old, "new": self.new})

    @classmethod
    def of_text(cls, text: str) -> Journal:
        told = json.loads(text)
        return cls(told["day"], int(told["batch"]), tuple(told["old"]), tuple(told["new"]))


def journals(files: Files) -> list[Journal]:
    """The merges that count and are not ended."""
    found = [one.path for one in files.files(STAGING) if PurePosixPath(one.path).match(f"{STAGING}/*.json")]
    return [Journal.of_text(files.read(path)) for path in found]


def recover(files: Files) -> None:
    """Ends merges that were begun: those with a journal are done, the others undone."""
    for journal in journals(files):
        _put_in_place(files, journal)
    files.delete(STAGING)


def compact(spark: SparkSession, files: Files, target_bytes: int) -> Compacted:
    """Merges each day that is over into files of about this size, where it has more of them than that takes.

    Only when no batch is being written: a batch that is written again would stand beside what it was merged into.
    """
    done = Compacted()
    days = _days(files)
    for day in days:
        stored = files.files(f"day={day}")
        wanted = max(1, -(-sum(one.size_bytes for one in stored) // target_bytes))
        if len(stored) <= wanted or (day == days[-1] and len(stored) < OPEN_DAY_FILES):
            continue
        journal = _merge(spark, files, day, stored, wanted)
        _put_in_place(files, journal)
        done.days += 1
        done.files_before += len(stored)
        done.files_after += len(journal.new)
    files.delete(STAGING)
    return done


def delete_days(files: Files, keep_days: int) -> int:
    """Deletes all days but the newest and those less than so many days older; how many. The newest one stays: a
    history knows by its events where it goes on."""
    days = _days(files)
    if not days:
        return 0
    oldest = date.fromisoformat(days[-1]) - timedelta(days=keep_days - 1)
    old = [day for day in days if date.fromisoformat(day) < oldest]
    for day in old:
        files.delete(f"day={day}")
    return len(old)


def _days(files: Files) -> list[str]:
    """Days by their ISO dates. Events without a time are in a directory of another name, and stay."""
    found = []
    for name in files.directories():
        key, _, text = name.partition("=")
        try:
            if key == "day":
                found.append(date.fromisoformat(text).isoformat())
        except ValueError:
            continue
    return sorted(found)


def _merge(spark: SparkSession, files: Files, day: str, stored: Sequence[StoredFile], wanted: int) -> Journal:
    """Steps 1 and 2."""
    batches = [int(one.path.split("/")[1].removeprefix("batch=")) for one in stored]
    old = tuple(one.path for one in stored)
    staging = f"{STAGING}/{day}"
    files.delete(staging)
    columns = [name for name in HISTORY_TABLE.names if name not in ("day", "batch")]
    merged = spark.read.schema(HISTORY_TABLE).parquet(*(f"{files.root}/{path}" for path in old)).select(columns)
    merged = merged.repartitionByRange(wanted, "event_id") if wanted > 1 else merged.repartition(1)
    merged.sortWithinPartitions("event_id").write.parquet(f"{files.root}/{staging}")
    written = files.files(staging)
    journal = Journal(day, max(batches), old, tuple(PurePosixPath(one.path).name for one in written))
    rows = spark.read.parquet(f"{files.root}/{staging}").agg(F.count("*"), F.count_distinct("event_id")).collect()[0]
    before = spark.read.schema(HISTORY_TABLE).parquet(*(f"{files.root}/{path}" for path in old)).count()
    if rows[0] != before or rows[1] != before:
        raise OSError(f"{files.root}/{staging} holds {rows[0]} rows with {rows[1]} events, of {before}: not merged")
    files.write(journal.path, journal.text)
    return journal


def _put_in_place(files: Files, journal: Journal) -> None:
    """Step 3; again if it was begun. Raises OSError, before anything is deleted, if merged files are in neither
    place."""
    merged = {PurePosixPath(one.path).name for one in files.files(journal.staging)}
    gone = [name for name in journal.new if name not in merged and not files.exists(journal.target(name))]
    if gone:
        if not all(files.exists(path) for path in journal.old):
            raise OSError(f"{files.root}: {len(gone)} files of {journal.path} are gone, among them {gone[0]}")
        # Another run on this history has deleted them as the rest of a merge that does not count.
        files.delete(journal.path)
        files.delete(journal.staging)
        return
    for path in journal.old:
        files.delete(path)
    for name in journal.new:
        if name in merged:
            files.delete(journal.target(name))  # half of a copy, where a move is one
            files.move(f"{journal.staging}/{name}", journal.target(name))
    kept = f"batch={journal.batch}"
    for name in files.directories(f"day={journal.day}"):
        if name != kept and not files.files(f"day={journal.day}/{name}"):
            files.delete(f"day={journal.day}/{name}")
    files.delete(journal.path)
    files.delete(journal.staging)
