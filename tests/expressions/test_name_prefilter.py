"""The patterns for names match the name of each partition that a filter selects."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings

from hms_cache.expressions import KeyColumns, bind, evaluate, evaluate_expression, name_patterns, parse_filter
from hms_cache.expressions.hive_tree import parse_expression
from hms_cache.metadata.partition_names import make_partition_name
from tests.expressions.recorded import recorded
from tests.expressions.strategies import tables_and_filters, text_of

KEYS = [("dt", "string"), ("hr", "int"), ("d", "date")]


def is_like(name: str, pattern: str) -> bool:
    """SQL's LIKE with the escape character `!`."""
    parts = re.findall(r"!(.)|(%)|(_)|(.)", pattern, re.DOTALL)
    expression = "".join(
        ".*" if percent else "." if underscore else re.escape(escaped or plain)
        for escaped, percent, underscore, plain in parts
    )
    return re.fullmatch(expression, name, re.DOTALL) is not None


def missed(keys: Any, rows: Any, selected: Any, patterns: tuple[str, ...]) -> list[str]:
    names = [make_partition_name([name for name, _ in keys], rows[number]) for number in selected]
    return [name for name in names if not any(is_like(name, pattern) for pattern in patterns)]


@settings(max_examples=250, deadline=None)
@given(tables_and_filters(max_rows=20))
def test_never_too_little(case: Any) -> None:
    keys, rows, tree = case
    bound = bind(tree, keys)
    patterns = name_patterns(bound, keys)
    if patterns is not None:
        selected = evaluate(bound, KeyColumns.from_values(keys, rows)).nonzero()[0].tolist()
        assert not missed(keys, rows, selected, patterns), text_of(tree)


def test_expressions_let_through_all_that_might_be_meant() -> None:
    answers = recorded("4.0.1")
    # Each key comes first in turn: patterns begin with the first key.
    for first in range(len(answers.keys)):
        order = [first, *(at for at in range(len(answers.keys)) if at != first)]
        keys = [answers.keys[at] for at in order]
        rows = [[row[at] for at in order] for row in answers.rows]
        columns = KeyColumns.from_values(keys, rows)
        for expression, _, _, text in answers.expressions:
            bound = parse_expression(expression).bind(keys)
            patterns = name_patterns(bound, keys)
            if patterns is not None:
                selected = evaluate_expression(bound, columns).mask.nonzero()[0].tolist()
                assert not missed(keys, rows, selected, patterns), text


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("dt = '2024-01-01'", ("dt=2024-01-01/%",)),
        ("dt = '2024-01-01' and hr = 3", ("dt=2024-01-01/%",)),
        ("hr > 3 and dt = 'a_b'", ("dt=a!_b/%",)),
        ("dt = 'a' and hr = 3 and d = '2024-01-01'", ("dt=a/%",)),
        ("(dt = 'a' or dt = 'b')", ("dt=a/%", "dt=b/%")),
        ("dt > 'a'", None),
        ("hr = 3", None),
        ("dt = 'a b'", None),
        ("dt = ''", None),
        ("dt = '__HIVE_DEFAULT_PARTITION__'", None),
    ],
)
def test_patterns(text: str, patterns: tuple[str, ...] | None) -> None:
    assert name_patterns(bind(parse_filter(text), KEYS), KEYS) == patterns


def test_a_date_is_looked_for_as_lenient_readings_spell_it() -> None:
    keys = [("d", "date")]
    found = name_patterns(bind(parse_filter("d = '2024-01-02'"), keys), keys)
    assert found is not None
    for value in ("2024-01-02", "2024-1-2", "2024-01-2", "2024-1-02"):
        assert any(is_like(f"d={value}", pattern) for pattern in found)
