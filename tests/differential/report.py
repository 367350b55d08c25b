"""Runs every scenario on Hive 4.0.1 and on this project's server, and writes the results to docs/compatibility.md.

``python -m tests.differential.report`` needs Java 17, Maven and MariaDB's binaries.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from tests.databases import start_mariadb
from tests.differential.comparison import Comparison, run
from tests.differential.metastores import Sides, java_metastore, our_metastore, own_database
from tests.differential.scenarios.every import SCENARIOS

DOCUMENT = Path(__file__).parents[2] / "docs" / "compatibility.md"
BEGIN = "<!-- begin: python -m tests.differential.report -->"
END = "<!-- end: python -m tests.differential.report -->"


def compared(sides: Sides) -> list[Comparison]:
    """Every call of every scenario."""
    comparisons: list[Comparison] = []
    for scenario in SCENARIOS.values():
        sides.java.empty()
        sides.ours.empty()
        comparisons.extend(run(scenario, sides.java, sides.ours))
    return comparisons


def as_text(comparisons: Iterable[Comparison]) -> str:
    """A table with a line per method, and the reasons for the differences below it, numbered."""
    methods: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        methods.setdefault(comparison.call.method, []).append(comparison)
    reasons: dict[str, int] = {}
    rows = []
    for method in sorted(methods, key=str.lower):
        of_method = methods[method]
        found = [comparison.reason or "not explained" for comparison in of_method if not comparison.is_equal]
        for reason in found:
            reasons.setdefault(reason, len(reasons) + 1)
        numbers = ", ".join(str(number) for number in sorted({reasons[reason] for reason in found}))
        rows.append(f"| `{method}` | {len(of_method)} | {len(of_method) - len(found)} | {len(found)} | {numbers} |")
    cases = sum(len(of_method) for of_method in methods.values())
    equal = sum(comparison.is_equal for of_method in methods.values() for comparison in of_method)
    lines = [
        f"{len(methods)} methods, {cases} cases, {equal} answered alike, {cases - equal} differently for a reason.",
        "",
        "| method | cases | alike | different | reasons |",
        "| --- | --- | --- | --- | --- |",
        *rows,
        "",
        *(f"{number}. {reason}" for reason, number in reasons.items()),
    ]
    return "\n".join(lines)


def write(text: str) -> None:
    """Replaces the text between the marks."""
    before, rest = DOCUMENT.read_text().split(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}")


def main() -> int:
    """Writes the table. Returns 1 if a difference has no reason."""
    with ExitStack() as stack:
        databases = start_mariadb()
        stack.callback(databases.stop)
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        java = stack.enter_context(java_metastore(own_database(databases, stack), root / "java"))
        ours = stack.enter_context(our_metastore(own_database(databases, stack), root / "ours"))
        comparisons = compared(Sides(java, ours))
    write(as_text(comparisons))
    unexplained = [comparison for comparison in comparisons if not comparison.is_as_expected]
    for comparison in unexplained:
        print(comparison)
    return bool(unexplained)


if __name__ == "__main__":
    sys.exit(main())
