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
    """Of Spark: its JVM and its Python workers, without server and database."""

    @property
    def rows_per_second(self) -> float:
        """Of the whole job, with planning and its report."""
        return self.rows / self.seconds


@dataclass(slots=True)
class Report:
    """All figures of a run so far, and what was left out."""

    command: str
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def figure(self, measure: str, size: int, cores: int) -> Figure | None:
        """The figure of this cell, if it was measured."""
        found = (one for one in self.figures if (one.measure, one.size, one.cores) == (measure, size, cores))
        return next(found, None)

    def markdown(self, sizes: Sequence[int], cores: Sequence[int]) -> str:
        """The tables: rows per second by size and cores, and how time grows from size to size."""
        lines = [
            f"`{self.command}` at {revision()}, {datetime.now(UTC):%Y-%m-%d}. {machine()}.",
            "",
            "Seconds are of the whole job, from planning to its report, in a session that runs already; server and "
            "database share the machine with Spark. CPU is Spark's own: JVM and Python workers. *Growth*: time, "
            "and CPU, beside those of the size above it.",
            "",
            "| | of | "
            + " | ".join(f"{count} core{'s' * (count > 1)}: s | CPU s | rows/s | growth" for count in cores)
            + (" | gain |" if len(cores) > 1 else " |"),
            "|---|--:|" + "--:|--:|--:|--:|" * len(cores) + ("--:|" if len(cores) > 1 else ""),
        ]
        for name in dict.fromkeys(one.measure for one in self.figures):
            before: dict[int, Figure] = {}
            for size in sizes:
                row = {count: self.figure(name, size, count) for count in cores}
                if any(row.values()):
                    lines.append(_line(name, size, row, before))
                    before = {count: one for count, one in row.items() if one is not None}
        if self.notes:
            lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines) + "\n"


def _line(name: str, size: int, row: dict[int, Figure | None], before: dict[int, Figure]) -> str:
    first = next(one for one in row.values() if one is not None)
    cells = [name, f"{first.rows:,} {first.unit}"]
    for count, one in row.items():
        if one is None:
            cells += [""] * 4
            continue
        smaller = before.get(count)
        growth = ""
        if smaller is not None:
            growth = f"× {one.seconds / smaller.seconds:.1f}, × {one.cpu_seconds / smaller.cpu_seconds:.1f}"
        cells += [f"{one.seconds:.1f}", f"{one.cpu_seconds:.1f}", f"{one.rows_per_second:,.0f}", growth]
    if len(row) > 1:
        both = [one.seconds for one in row.values() if one is not None]
        cells.append(f"{both[0] / both[-1]:.2f}" if len(both) == len(row) else "")
    return "| " + " | ".join(cells) + " |"


def machine() -> str:
    """What the figures depend on; no names of machines."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB; Python {platform.python_version()}, "
        f"PySpark {version('pyspark')}, MariaDB"
    )
