"""Makes answers of Spark comparable: removes what depends on directory, time and order."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.clients.spark.statements import STEPS, Step

Answers = list[dict[str, Any]]

_TIMES = (
    (re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d \w+ \d{4}"), "<time>"),
    (re.compile(r"\b[12]\d{9}\b"), "<seconds>"),
    (re.compile(r"\b[12]\d{12}\b"), "<milliseconds>"),
)
#: What a metastore since Hive 3 adds or withdraws where Spark's embedded one, of Hive 2.3, does not: it counts erasure
#: coded files, and as a client of 2.3 does not send that count, measures the files anew and claims no statistics.
#: Clients since Hive 3 say which bucketing they mean.
_SINCE_HIVE_3 = re.compile(r"^(numFilesErasureCoded|COLUMN_STATS_ACCURATE|bucketing_version)=")
_BUCKETING_ALONE = "TBLPROPERTIES (\n  'bucketing_version' = '2')\n"
_BUCKETING_FIRST = "  'bucketing_version' = '2',\n"
_ERASURE_CODED_FIRST = "  'numFilesErasureCoded' = '0',\n"
_PARAMETERS = re.compile(r"\[([^\[\]]*=[^\[\]]*)\]")
_PARAMETERS_BEFORE_SPARK_4 = re.compile(r"(?:^|(?<=: ))\{(.+=.+)\}$", re.MULTILINE)

#: Statements that a metastore since Hive 3 answers differently than Spark's embedded one, and its answer.
ANSWERS_SINCE_HIVE_3: dict[str, dict[str, Any]] = {
    "ALTER DATABASE other SET LOCATION '{scratch}/elsewhere2'": {"rows": []},
    "ALTER DATABASE other SET LOCATION '{scratch}/elsewhere'": {"rows": []},
}


def comparable(step: Step, answer: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """Rows or error of one answer."""
    text = json.dumps({name: answer[name] for name in ("rows", "error") if name in answer})
    text = text.replace(str(scratch), "<scratch>")
    for pattern, stands_for in _TIMES:
        text = pattern.sub(stands_for, text)
    made: dict[str, Any] = json.loads(text)
    if "rows" in made:
        rows = [[_comparable_cell(cell) for cell in row] for row in made["rows"] if not _is_of_the_client(row)]
        rows = [row for row in rows if row != ["Table Properties", "[]", ""]]
        made["rows"] = rows if step.ordered else sorted(rows)
    return made


def _comparable_cell(cell: str) -> str:
    cell = cell.replace(_BUCKETING_ALONE, "").replace(_BUCKETING_FIRST, "").replace(_ERASURE_CODED_FIRST, "")
    return _PARAMETERS.sub(_in_order, _PARAMETERS_BEFORE_SPARK_4.sub(_in_order, cell))


def _is_of_the_client(row: list[str]) -> bool:
    """Rows that depend on the client: of a datasource table's partition only one of 2.3 stores the table's options.

    And the count of erasure coded files, see `_SINCE_HIVE_3`.
    """
    return row[0] in ("bucketing_version", "numFilesErasureCoded") or (
        row[0] == "Storage Properties" and "path=" in row[1]
    )


def _in_order(found: re.Match[str]) -> str:
    """Parameters by name: Derby's order is arbitrary."""
    kept = [part for part in found.group(1).split(", ") if not _SINCE_HIVE_3.match(part)]
    return f"[{', '.join(sorted(kept))}]"


def differences(
    reference: Answers,
    reference_scratch: Path,
    answers: Answers,
    scratch: Path,
    otherwise: Mapping[str, dict[str, Any]] = ANSWERS_SINCE_HIVE_3,
    steps: tuple[Step, ...] = STEPS,
) -> list[str]:
    """Returns the differences from the reference, statement by statement.

    :param otherwise: the expected answers of statements that differ from the reference.
    """
    found = []
    for step, expected, answer in zip(steps, reference, answers, strict=True):
        wanted = otherwise.get(step.statement) or comparable(step, expected, reference_scratch)
        got = comparable(step, answer, scratch)
        if got != wanted:
            found.append(f"{step.statement}\n   Spark's own: {wanted}\n   this server: {got}")
    return found


def memory_table(answers: Answers) -> list[str]:
    """Returns for each kind of statement: calls, reads, reads answered from memory."""
    totals: dict[str, list[int]] = {}
    for step, answer in zip(STEPS, answers, strict=True):
        calls = answer["calls"]
        reads = sum(count for name, count in calls.items() if name.startswith("cache_reads."))
        total = totals.setdefault(step.kind, [0, 0, 0])
        total[0] += sum(count for name, count in calls.items() if "." not in name)
        total[1] += reads
        total[2] += calls.get("cache_reads.hit", 0)
    rows = [*totals.items(), ("all", [sum(column) for column in zip(*totals.values(), strict=True)])]
    head = f"{'statements':24}{'calls':>8}{'reads':>8}{'from memory':>14}"
    return [head, *(f"{kind:24}{calls:8}{reads:8}{hits:14}" for kind, (calls, reads, hits) in rows)]
