"""Figures of a run as Markdown."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version

from benchmarks.report import revision


@dataclass(frozen=True, slots=True)
class Figure:
    """One measure, once."""

    measure: str
    unit: str
    size: int
    cores: int
    rows: int
    seconds: float
    cpu_seconds: float
    """CPU time of Spark: its JVM and its Python workers, without server and database."""

    store: str = ""
    """The object store with the files; empty for the file system."""

    @property
    def column(self) -> str:
        """Returns the column's title in the report."""
        return _column(self.cores, self.store)

    @property
    def rows_per_second(self) -> float:
        """Rows per second of the whole job, including planning and its report."""
        return self.rows / self.seconds


@dataclass(frozen=True, slots=True)
class Bar:
    """Maximum seconds of a measure."""

    measure: str
    size: int
    column: str
    max_s: float


BARS = (Bar("statistics", 1_000_000, "2 cores", 1_200),)


@dataclass(slots=True)
class Report:
    """All figures of a run so far, and omitted parts."""

    command: str
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def figure(self, measure: str, size: int, column: str) -> Figure | None:
        """Returns the figure of this cell, None if it was not measured."""
        found = (one for one in self.figures if (one.measure, one.size, one.column) == (measure, size, column))
        return next(found, None)

    def missed(self) -> list[str]:
        """Returns the missed bars as texts."""
        return [text for text, is_met in self._judged() if not is_met]

    def _judged(self) -> list[tuple[str, bool]]:
        found = []
        for bar in BARS:
            one = self.figure(bar.measure, bar.size, bar.column)
            if one is not None:
                what = f"{bar.measure}, {bar.size:,} {one.unit}, {bar.column}: {one.seconds:,.1f} s"
                found.append((f"{what} (at most {bar.max_s:,.0f})", one.seconds <= bar.max_s))
        return found

    def markdown(self, sizes: Sequence[int], cores: Sequence[int], stores: Sequence[str] = ()) -> str:
        """The tables: rows per second by size and cores, and how time grows from size to size. Of `stores` beside the
        file system there are figures of the first number of cores."""
        columns = [_column(count, "") for count in cores] + [_column(cores[0], store) for store in stores]
        lines = [
            f"`{self.command}` at {revision()}, {datetime.now(UTC):%Y-%m-%d}. {machine()}.",
            "",
            "Seconds are of the whole job, from planning to its report, in a session that runs already; server and "
            "database share the machine with Spark. CPU is Spark's own: JVM and Python workers. *Growth*: time, "
            "and CPU, beside those of the size above it.",
            "",
            "| | of | "
            + " | ".join(f"{column}: s | CPU s | rows/s | growth" for column in columns)
            + (" | gain |" if len(cores) > 1 else " |"),
            "|---|--:|" + "--:|--:|--:|--:|" * len(columns) + ("--:|" if len(cores) > 1 else ""),
        ]
        for name in dict.fromkeys(one.measure for one in self.figures):
            before: dict[str, Figure] = {}
            for size in sizes:
                row = {column: self.figure(name, size, column) for column in columns}
                if any(row.values()):
                    lines.append(_line(name, row, before, len(cores)))
                    before |= {column: one for column, one in row.items() if one is not None}
        notes = [f"{'met' if is_met else '**missed**'}: {text}" for text, is_met in self._judged()] + self.notes
        if notes:
            lines += ["", *(f"- {note}" for note in notes)]
        return "\n".join(lines) + "\n"


def _column(cores: int, store: str) -> str:
    return f"{cores} core{'s' * (cores > 1)}" + (f", {store}" if store else "")


def _line(name: str, row: dict[str, Figure | None], before: dict[str, Figure], local: int) -> str:
    """Returns a table row. The last column is the gain: the last of the first `local` columns divided by the first."""
    first = next(one for one in row.values() if one is not None)
    cells = [name, f"{first.rows:,} {first.unit}"]
    for column, one in row.items():
        if one is None:
            cells += [""] * 4
            continue
        smaller = before.get(column)
        growth = ""
        if smaller is not None:
            growth = f"× {one.seconds / smaller.seconds:.1f}, × {one.cpu_seconds / smaller.cpu_seconds:.1f}"
        cells += [f"{one.seconds:.1f}", f"{one.cpu_seconds:.1f}", f"{one.rows_per_second:,.0f}", growth]
    if local > 1:
        both = [one.seconds for one in list(row.values())[:local] if one is not None]
        cells.append(f"{both[0] / both[-1]:.2f}" if len(both) == local else "")
    return "| " + " | ".join(cells) + " |"


def machine() -> str:
    """Returns what the figures depend on; names of machines are left out."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB; Python {platform.python_version()}, "
        f"PySpark {version('pyspark')}, MariaDB"
    )
