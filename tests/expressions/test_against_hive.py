"""Random expressions made, written and answered by Hive itself (4.0.1, 3.1.3, 2.3.10), read and answered here.

Never may a partition be missing that Hive keeps; where nothing is undecided the answers must be equal; and the forms
that are understood must not be undecided without need. Recorded answers are always compared, fresh ones where there is
Java.
"""

from __future__ import annotations

from importlib.resources import files

import pytest

from tests.expressions import hive_java
from tests.expressions.recorded import HiveAnswers, compare, recorded

needs_java = pytest.mark.skipif(bool(hive_java.missing_tools()), reason="needs mvn, javac and java")


def check(answers: HiveAnswers, version: str, count: int) -> None:
    compared = compare(answers, hive_2=version.startswith("2."))
    assert compared.contradictions == []
    assert len(answers.expressions) == count
    assert compared.answered > 0.7 * count
    assert compared.exact > 0.8 * compared.answered


@pytest.mark.parametrize("version", hive_java.HIVE_VERSIONS)
def test_recorded_answers_are_ours(version: str) -> None:
    check(recorded(version), version, 250)


@pytest.mark.java
@needs_java
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("version", "time_zone"),
    [
        ("4.0.1", "UTC"),
        ("3.1.3", "UTC"),
        ("2.3.10", "UTC"),
        ("2.3.10", "America/Los_Angeles"),
        ("2.3.10", "Asia/Kolkata"),
        ("4.0.1", "Pacific/Kiritimati"),
    ],
)
def test_fresh_answers_are_ours(version: str, time_zone: str) -> None:
    arguments = [str(len(time_zone)), "2000", "60"]
    lines = hive_java.run(version, "ExpressionSamples", arguments, time_zone)
    check(HiveAnswers.from_lines(lines), version, 2000)


@pytest.mark.java
@needs_java
@pytest.mark.timeout(600)
def test_the_table_of_classes_is_what_the_three_hives_say() -> None:
    table = files("hms_cache.expressions").joinpath("kryo_classes.tsv").read_text(encoding="ascii")
    assert table.splitlines() == hive_java.merged_classes()
