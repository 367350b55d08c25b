"""NumPy's answers equal those of the simple evaluator, row by row; columns keep their rows through append and take."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_cache.expressions import FilterBindError, KeyColumns, bind, evaluate, parse_filter
from hms_cache.expressions.key_columns import TextDictionary
from tests.expressions import reference
from tests.expressions.strategies import tables, tables_and_filters, text_of, values_of

DEFAULT = "__HIVE_DEFAULT_PARTITION__"
KEYS = [("dt", "string"), ("hr", "int"), ("d", "date")]
ROWS = [
    ["2024-01-01", "0", "2024-01-01"],
    ["2024-01-02", "1", "2024-02-29"],
    ["x_y", "01", DEFAULT],
    [DEFAULT, DEFAULT, "2024-1-5"],
    ["xzy", "-3", "2023-12-31"],
]


def selected(text: str, keys=KEYS, rows=ROWS) -> list[int]:
    mask = evaluate(bind(parse_filter(text), keys), KeyColumns.from_values(keys, rows))
    return np.flatnonzero(mask).tolist()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", [0, 1, 2, 3, 4]),
        ('dt = "2024-01-01" and hr = 0', [0]),
        ("hr = 1", [1, 2]),
        ("hr != 1", [0, 4]),
        ("not hr = 1", [0, 4]),
        ("not (hr = 1 or hr = 0)", [4]),
        ("(hr) in (1, -3)", [1, 2, 4]),
        ("(hr) not in (1, -3)", [0]),
        ("hr not between 0 and 0", [1, 2, 4]),
        ("0 < hr", [1, 2]),
        # The default partition of a string key is a text in SQL; that of an integer key is NULL.
        ('dt != "xzy"', [0, 1, 2, 3]),
        (f'dt = "{DEFAULT}"', [3]),
        (f'hr = "{DEFAULT}"', [3]),
        (f'hr != "{DEFAULT}"', [0, 1, 2, 4]),
        ('d > "2023-12-31"', [0, 1, 3]),
        ("d = 2024-01-05", [3]),
        ('d = "2024-1-5"', [3]),
        (f'd = "{DEFAULT}"', [2]),
        ('d >= "a"', []),
        ('d < "a" and d != "2024-01-01"', [1, 3, 4]),
        ('dt like "2024.*"', [0, 1]),
        ('dt like "2024%"', [0, 1]),
        (r'dt like "x\_y"', [2]),
        ('dt like "x_y"', [2, 4]),
        ('dt like ".*y"', [2, 4]),
        ('dt like "x.y"', [2, 4]),
        ('d like "2024-0.*"', [0, 1]),
        ("DT = 'x_y' and HR=1", [2]),
    ],
)
def test_rows_of_filter(text: str, rows: list[int]) -> None:
    assert selected(text) == rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nope = 1", "Specified key <nope> is not a partitioning key for the table"),
        ("hr = '1'", "Filtering is supported only on partition keys of type string"),
        ("(hr) in (1, 'x')", "Filtering is supported only on partition keys of type string"),
        ("dt = 1", "Filtering is supported only on partition keys of type string"),
        ("d > 1", "Filtering is supported only on partition keys of type string"),
        ("hr like '1%'", "Filtering is supported only on partition keys of type string"),
        ("dt like 1", "Filtering is supported only on partition keys of type string"),
        ("'x' like dt", "Value should be on the RHS for LIKE operator : Key <dt>"),
    ],
)
def test_what_does_not_fit_the_table_is_refused_as_in_hive(text: str, message: str) -> None:
    with pytest.raises(FilterBindError) as caught:
        bind(parse_filter(text), KEYS)
    assert str(caught.value) == message


def test_a_key_of_a_type_without_texts_is_refused() -> None:
    with pytest.raises(FilterBindError, match="Filter pushdown not supported for type binary"):
        bind(parse_filter("b = 'x'"), [("b", "binary")])


@settings(max_examples=200, deadline=None)
@given(tables_and_filters())
def test_masks_equal_the_plain_evaluation(case) -> None:
    keys, rows, tree = case
    mask = evaluate(bind(tree, keys), KeyColumns.from_values(keys, rows))
    assert mask.tolist() == [reference.truth(tree, keys, row) is True for row in rows], text_of(tree)


@settings(deadline=None)
@given(tables(), st.data())
def test_appended_and_taken_rows_are_the_same_rows(table, data) -> None:
    keys, rows = table
    cut = data.draw(st.integers(0, len(rows)))
    columns = KeyColumns.from_values(keys, rows[:cut])
    for _, hive_type in keys:
        assert hive_type
    appended = columns.append(rows[cut:])
    assert len(columns) == cut
    assert [appended.row(index) for index in range(len(appended))] == rows
    wanted = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8)) if rows else []
    taken = appended.take(wanted)
    assert [taken.row(index) for index in range(len(taken))] == [rows[index] for index in wanted]
    mask = np.array([index % 2 == 0 for index in range(len(rows))], np.bool_)
    assert [appended.take(mask).row(index) for index in range(len(rows[::2]))] == rows[::2]


@settings(deadline=None)
@given(tables_and_filters(), st.data())
def test_filters_of_appended_and_taken_rows_are_exact(case, data) -> None:
    """Values parsed for one version of a column must not be used incorrectly for the next."""
    keys, rows, tree = case
    bound = bind(tree, keys)
    columns = KeyColumns.from_values(keys, rows)
    evaluate(bound, columns)
    more = data.draw(st.lists(st.tuples(*(values_of(hive_type) for _, hive_type in keys)).map(list), max_size=5))
    every = rows + more
    appended = columns.append(more)
    expected = [reference.truth(tree, keys, row) is True for row in every]
    assert evaluate(bound, appended).tolist() == expected
    order = data.draw(st.permutations(range(len(every))))[: len(every) // 2]
    assert evaluate(bound, appended.take(list(order))).tolist() == [expected[index] for index in order]


def test_codes_widen_with_the_dictionary() -> None:
    keys = [("id", "int")]
    columns = KeyColumns.from_values(keys, [[str(value)] for value in range(256)])
    assert columns.columns[0].codes.dtype == np.uint8
    columns = columns.append([[str(value)] for value in range(256, 70_000)])
    assert columns.columns[0].codes.dtype == np.uint32
    assert evaluate(bind(parse_filter("id = 65537 or id < 3"), keys), columns).nonzero()[0].tolist() == [0, 1, 2, 65537]
    assert columns.take([5, 65_537]).columns[0].codes.dtype == np.uint8


def test_a_row_with_too_few_values_is_refused_and_none_is_the_default_partition() -> None:
    with pytest.raises(ValueError, match="every partition needs 3 values"):
        KeyColumns.from_values(KEYS, [["a", "1"]])
    columns = KeyColumns.from_values([("a", "string")], [["x"], [None]])
    assert columns.row(1) == [DEFAULT]
    assert evaluate(bind(parse_filter(f"a = '{DEFAULT}'"), columns.keys), columns).tolist() == [False, True]


def test_memory_is_codes_and_distinct_texts() -> None:
    columns = KeyColumns.from_values([("dt", "string")], [[f"2024-01-{row % 31:02}"] for row in range(100_000)])
    assert 100_000 <= columns.memory_bytes() <= 101_000


@settings(deadline=None)
@given(st.lists(st.text(max_size=4), unique=True), st.text(max_size=4))
def test_dictionary_finds_texts_in_code_point_order(texts: list[str], probe: str) -> None:
    ordered = sorted(texts)
    dictionary = TextDictionary.from_sorted(ordered)
    assert list(dictionary) == ordered
    assert dictionary.position(probe) == sum(text < probe for text in ordered)
    assert dictionary.find(probe) == (ordered.index(probe) if probe in ordered else None)
