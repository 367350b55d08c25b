"""A plan on disk: after a killed run, the next one continues with the next batch, without a listing.

Each line is JSON: the options of the plan, the batches, and the numbers of completed batches. A batch is checked again
before it is written, so an old plan does no harm.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hms_cache.errors import ConfigurationError
from hms_cache.jobs.repair.plan import Change
from hms_cache.values import frozen

_FORMAT = 1


@frozen
class Batch:
    """Changes of one kind to one table, written in one call."""

    catalog: str
    database: str
    table: str
    action: str
    changes: tuple[Change, ...]


class PlanFile:
    """The batches of a run and which are completed; in memory only without a path."""

    def __init__(self, path: Path | None, options: Mapping[str, Any]) -> None:
        """:param options: values that determine the plan, serializable as JSON."""
        self._path = path
        self._options = dict(options)
        self._batches: list[Batch] = []
        self._done: set[int] = set()

    def load(self) -> bool:
        """Whether the file contains an unfinished plan.

        Raises ConfigurationError if the file is invalid or was made with other options.
        """
        if self._path is None or not self._path.exists():
            return False
        try:
            lines = self._path.read_text(encoding="utf-8").split("\n")
            header = json.loads(lines[0])
            if header["format"] != _FORMAT:
                raise ValueError(f"format {header['format']}")
            entries = [json.loads(line) for line in lines[1:-1]]  # the last line is truncated or empty
            batches = [_batch(entry["batch"]) for entry in entries if "batch" in entry]
            done = {int(entry["done"]) for entry in entries if "done" in entry}
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(f"{self._path} is not a plan of a repair: {error}") from error
        if header["options"] != self._options:
            raise ConfigurationError(
                f"{self._path} was planned with other options; finish it with those, or remove the file"
            )
        if lines[-1]:
            os.truncate(self._path, self._path.stat().st_size - len(lines[-1].encode()))
        self._batches, self._done = batches, done
        return True

    def plan(self, batches: Sequence[Batch]) -> None:
        """Stores a new plan, atomically."""
        self._batches, self._done = list(batches), set()
        if self._path is None or not self._batches:
            return
        new = self._path.with_name(f"{self._path.name}.new")
        with new.open("w", encoding="utf-8") as file:
            file.write(json.dumps({"format": _FORMAT, "options": self._options}) + "\n")
            for one in self._batches:
                fields = [one.catalog, one.database, one.table, one.action, one.changes]
                file.write(json.dumps({"batch": fields}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)

    def remaining(self) -> Iterator[Batch]:
        """The batches that are not completed, in order; a batch is marked completed when the next one is requested."""
        for number, batch in enumerate(self._batches):
            if number in self._done:
                continue
            yield batch
            self._done.add(number)
            if self._path is not None:
                self._append(self._path, json.dumps({"done": number}) + "\n")

    @staticmethod
    def _append(path: Path, line: str) -> None:
        try:
            # Not created again: another run with the same plan has finished and removed it.
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        except FileNotFoundError:
            return
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(line)

    def finish(self) -> None:
        """Removes the plan: the next run plans again."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _batch(fields: Sequence[Any]) -> Batch:
    catalog, database, table, action, changes = fields
    return Batch(catalog, database, table, action, tuple(Change(*map(str, one)) for one in changes))
