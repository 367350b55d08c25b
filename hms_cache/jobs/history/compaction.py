"""Merges the files of a history, and deletes those of old days.

Each run creates a file for each day with events. The files of a past day are merged into files of the target size. A
merge consists of repeatable steps, and a journal records its state:

1. The merged files are written below ``_compaction/DAY``, which readers ignore.
2. ``_compaction/DAY.json`` lists them and the files that they replace. From here on the merge is committed:
   `read_history` reads the merged files.
3. The old files are deleted, the merged ones are moved to their place, and the journal is deleted last.

A run that finds a journal first finishes that merge; files below ``_compaction`` without a journal are deleted. Readers
that do not use `read_history` miss the day during step 3: no file system can do both in one step.
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
"""Name of the staging directory, which is next to those of the days."""

OPEN_DAY_FILES = 24
"""Number of files from which on the newest day is merged as well: it keeps growing, and each merge rewrites all of
it."""


@dataclass(slots=True)
class Compacted:
    """Result of a compaction."""

    days: int = 0
    files_before: int = 0
    files_after: int = 0
    days_deleted: int = 0


@frozen
class Journal:
    """A committed merge that is not finished."""

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
        """The final path of a merged file."""
        return f"day={self.day}/batch={self.batch}/{name}"

    @property
    def text(self) -> str:
        return json.dumps({"day": self.day, "batch": self.batch, "old": self.old, "new": self.new})

    @classmethod
    def of_text(cls, text: str) -> Journal:
        values = json.loads(text)
        return cls(values["day"], int(values["batch"]), tuple(values["old"]), tuple(values["new"]))


def journals(files: Files) -> list[Journal]:
    """The committed merges that are not finished."""
    found = [one.path for one in files.files(STAGING) if PurePosixPath(one.path).match(f"{STAGING}/*.json")]
    return [Journal.of_text(files.read(path)) for path in found]


def recover(files: Files) -> None:
    """Finishes interrupted merges: those with a journal are completed, the others are undone."""
    for journal in journals(files):
        _put_in_place(files, journal)
    files.delete(STAGING)


def compact(spark: SparkSession, files: Files, target_bytes: int) -> Compacted:
    """Merges the files of each past day into files of about the target size, if it has more than necessary.

    Must not run while a batch is written: a batch written again would exist in addition to the merged files.
    """
    done = Compacted()
    days = _days(files)
    for day in days:
        stored = files.files(f"day={day}")
        target_files = max(1, -(-sum(one.size_bytes for one in stored) // target_bytes))
        if len(stored) <= target_files or (day == days[-1] and len(stored) < OPEN_DAY_FILES):
            continue
        journal = _merge(spark, files, day, stored, target_files)
        _put_in_place(files, journal)
        done.days += 1
        done.files_before += len(stored)
        done.files_after += len(journal.new)
    files.delete(STAGING)
    return done


def delete_days(files: Files, keep_days: int) -> int:
    """Deletes all days except the newest and those less than `keep_days` older. Returns the number of deleted days. The
    newest day is kept because the history continues after its last event."""
    days = _days(files)
    if not days:
        return 0
    oldest = date.fromisoformat(days[-1]) - timedelta(days=keep_days - 1)
    old = [day for day in days if date.fromisoformat(day) < oldest]
    for day in old:
        files.delete(f"day={day}")
    return len(old)


def _days(files: Files) -> list[str]:
    """The days as ISO dates. Events without a time are in a directory with another name, which is kept."""
    found = []
    for name in files.directories():
        key, _, text = name.partition("=")
        try:
            if key == "day":
                found.append(date.fromisoformat(text).isoformat())
        except ValueError:
            continue
    return sorted(found)


def _merge(spark: SparkSession, files: Files, day: str, stored: Sequence[StoredFile], target_files: int) -> Journal:
    """Steps 1 and 2."""
    batches = [int(one.path.split("/")[1].removeprefix("batch=")) for one in stored]
    old = tuple(one.path for one in stored)
    staging = f"{STAGING}/{day}"
    files.delete(staging)
    columns = [name for name in HISTORY_TABLE.names if name not in ("day", "batch")]
    merged = spark.read.schema(HISTORY_TABLE).parquet(*(f"{files.root}/{path}" for path in old)).select(columns)
    merged = merged.repartitionByRange(target_files, "event_id") if target_files > 1 else merged.repartition(1)
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
    """Step 3; may be repeated. Raises OSError, before deleting anything, if merged files are in neither place."""
    merged = {PurePosixPath(one.path).name for one in files.files(journal.staging)}
    gone = [name for name in journal.new if name not in merged and not files.exists(journal.target(name))]
    if gone:
        if not all(files.exists(path) for path in journal.old):
            raise OSError(f"{files.root}: {len(gone)} files of {journal.path} are gone, among them {gone[0]}")
        # Another run on this history has deleted them as those of an uncommitted merge.
        files.delete(journal.path)
        files.delete(journal.staging)
        return
    for path in journal.old:
        files.delete(path)
    for name in journal.new:
        if name in merged:
            files.delete(journal.target(name))  # a partial copy, if the store moves files by copying
            files.move(f"{journal.staging}/{name}", journal.target(name))
    kept = f"batch={journal.batch}"
    for name in files.directories(f"day={journal.day}"):
        if name != kept and not files.files(f"day={journal.day}/{name}"):
            files.delete(f"day={journal.day}/{name}")
    files.delete(journal.path)
    files.delete(journal.staging)
