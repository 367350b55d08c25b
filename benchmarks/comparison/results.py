"""The measurements, and whether the bars were met."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar. `passed` is None if this run could not judge it; `reached` contains the reason."""

    what: str
    target: str
    reached: str
    passed: bool | None


@dataclass(slots=True)
class Results:
    """Cells by (server, operation, clients), bars and further tables, in the order of the run."""

    rows: list[Row] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    sections: list[tuple[str, list[str], list[list[str]]]] = field(default_factory=list)
    """(title, column titles, rows) of tables that do not consist of cells."""
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def cell(self, server: str, operation: str, clients: int) -> Row | None:
        """Returns the measured cell, None if there is none."""
        for row in self.rows:
            if (row["server"], row["operation"], row["clients"]) == (server, operation, clients):
                return row
        return None

    def cells(self, server: str, operation: str) -> list[Row]:
        """Returns the cells of an operation for all numbers of clients."""
        return [row for row in self.rows if row["server"] == server and row["operation"] == operation]

    def bar(self, what: str, target: str, reached: str, passed: bool | None) -> None:
        """Adds a bar."""
        self.bars.append(Bar(what, target, reached, passed))

    def ratio_bar(self, what: str, least: float, ratios: Iterable[tuple[str, float]], of: str) -> None:
        """Adds a bar on ratios, each with its label: it is met if all of them are at least `least`."""
        found = list(ratios)
        if not found:
            self.bar(what, f"≥ {least:g} × {of}", "not measured", None)
            return
        text = ", ".join(f"{label} {ratio:,.1f} ×" if label else f"{ratio:,.1f} ×" for label, ratio in found)
        self.bar(what, f"≥ {least:g} × {of}", text, all(ratio >= least for _, ratio in found))


def cpu_us(row: Row) -> float:
    """CPU time of server and database for one call in µs; at least 0.1, because the clock of processes has ticks."""
    return max(0.1, float(row["server_cpu_us"] + row["database_cpu_us"]))
