"""Hive's answers to its own random expressions, live or recorded, and the comparison with ours.

`python -m tests.expressions.recorded` records `data/hive-*.tsv.gz` again.
"""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from hms_cache.expressions import KeyColumns, evaluate_expression
from hms_cache.expressions.hive_tree import parse_expression
from tests.expressions import hive_java

DATA = Path(__file__).parent / "data"
RECORDED_ARGUMENTS = ("11", "250", "40")
RECORDED = {
    **{version: (version, "true") for version in hive_java.HIVE_VERSIONS},
    "4.0.1-without-class": ("4.0.1", "false"),
}
"""Of each record, the Hive, and whether it writes the class of an expression's root if it can."""
# Hive 2.3 treats the text 'false' of a boolean as true, and does not recognize its default partition by name.
_HIVE_2_QUIRKS = re.compile(r"\bo\b|__HIVE_DEFAULT_PARTITION__")


@dataclass
class HiveAnswers:
    """The output of `ExpressionSamples`."""

    keys: list[tuple[str, str]] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    expressions: list[tuple[bytes, str, set[int], str]] = field(default_factory=list)

    @classmethod
    def from_lines(cls, lines: Iterable[str]) -> HiveAnswers:
        read = cls()
        for line in lines:
            kind, *parts = line.rstrip("\n").split("\t")
            if kind == "key":
                read.keys.append((parts[0], parts[1]))
            elif kind == "row":
                read.rows.append(parts)
            else:
                encoded, unknown, kept, text = parts
                rows = {int(row) for row in kept.split(",") if row}
                read.expressions.append((base64.b64decode(encoded), unknown, rows, text))
        return read


@dataclass
class Comparison:
    """How many of Hive's answers there were, how many of them ours were exactly, and which contradict."""

    answered: int = 0
    exact: int = 0
    contradictions: list[str] = field(default_factory=list)


def compare(answers: HiveAnswers, hive_2: bool) -> Comparison:
    columns = KeyColumns.from_values(answers.keys, answers.rows)
    compared = Comparison()
    for expression, unknown, hives, text in answers.expressions:
        result = evaluate_expression(parse_expression(expression).bind(answers.keys), columns)
        if unknown == "failed" or (hive_2 and _HIVE_2_QUIRKS.search(text)):
            continue
        compared.answered += 1
        ours = set(result.mask.nonzero()[0].tolist())
        if not hives <= ours:
            compared.contradictions.append(f"{text}: lacks {[answers.rows[row] for row in sorted(hives - ours)][:3]}")
        elif result.has_unknown:
            continue
        elif ours != hives:
            compared.contradictions.append(f"{text}: adds {[answers.rows[row] for row in sorted(ours - hives)][:3]}")
        else:
            compared.exact += 1
    return compared


def recorded(version: str) -> HiveAnswers:
    with gzip.open(DATA / f"hive-{version}.tsv.gz", "rt", encoding="utf-8") as lines:
        return HiveAnswers.from_lines(lines)


if __name__ == "__main__":
    for each, (hive, root_class) in RECORDED.items():
        text = "\n".join(hive_java.run(hive, "ExpressionSamples", [*RECORDED_ARGUMENTS, root_class])) + "\n"
        (DATA / f"hive-{each}.tsv.gz").write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))
