"""Random expressions generated, written and evaluated by Hive itself (4.0.1, 3.1.3, 2.3.10), read and evaluated here.

No partition may be missing that Hive keeps; where nothing is undecided, the answers must be equal; and supported forms
must not be undecided unnecessarily. Recorded answers are always compared, new ones if Java is installed.
"""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from hms_cache.expressions import KeyColumns, bind, evaluate, parse_filter
from tests.expressions import hive_filters, hive_java
from tests.expressions.recorded import RECORDED, HiveAnswers, compare, recorded

needs_java = pytest.mark.skipif(bool(hive_java.missing_tools()), reason="needs mvn, javac and java")


def check(answers: HiveAnswers, version: str, count: int) -> None:
    compared = compare(answers, hive_2=version.startswith("2."))
    assert compared.contradictions == []
    assert len(answers.expressions) == count
    assert compared.answered > 0.7 * count
    assert compared.exact > 0.8 * compared.answered


@pytest.mark.parametrize("version", RECORDED)
def test_recorded_answers_are_ours(version: str) -> None:
    check(recorded(version), version, 250)


def test_filters_select_the_partitions_that_hive_selects() -> None:
    """3,000 filters that a Hive 4.0.1 metastore on MariaDB answered.

    Where it refuses (LIKE together with integer keys), we answer. Where LIKE prevents SQL, it compares dates as text,
    and so treats the default partition as a late date; we do not.
    """
    content = hive_filters.recorded()
    keys = [(name, kind) for name, kind in content["keys"]]
    columns = KeyColumns.from_values(keys, content["rows"])
    compared = 0
    for text, hives in content["filters"]:
        ours = evaluate(bind(parse_filter(text), keys), columns).nonzero()[0].tolist()
        if isinstance(hives, str):
            assert hives == "Filtering is supported only on partition keys of type string"
            assert " like " in text
        elif not re.search(r"(?is)(?=.* like )(?=.*\bd\b)", text):
            compared += 1
            assert ours == hives, text
    assert compared > 2_500


@pytest.mark.java
@needs_java
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("version", "root_class", "time_zone"),
    [
        pytest.param("4.0.1", "true", "UTC", marks=pytest.mark.soak),
        pytest.param("4.0.1", "false", "UTC", marks=pytest.mark.soak),
        pytest.param("3.1.3", "true", "UTC", marks=pytest.mark.soak),
        pytest.param("2.3.10", "true", "UTC", marks=pytest.mark.soak),
        pytest.param("2.3.10", "true", "America/Los_Angeles", marks=pytest.mark.soak),
        pytest.param("2.3.10", "true", "Asia/Kolkata", marks=pytest.mark.soak),
        pytest.param("4.0.1", "true", "Pacific/Kiritimati", marks=pytest.mark.soak),
    ],
)
def test_fresh_answers_are_ours(version: str, root_class: str, time_zone: str) -> None:
    arguments = [str(len(time_zone)), "2000", "60", root_class]
    lines = hive_java.run(version, "ExpressionSamples", arguments, time_zone)
    check(HiveAnswers.from_lines(lines), version, 2000)


@pytest.mark.soak
@pytest.mark.java
@needs_java
@pytest.mark.timeout(600)
def test_the_table_of_classes_is_what_the_three_hives_say() -> None:
    table = files("hms_cache.expressions").joinpath("kryo_classes.tsv").read_text(encoding="ascii")
    assert table.splitlines() == hive_java.merged_classes()
