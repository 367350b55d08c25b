"""What SQL returns includes everything the filter selects, on SQLite, with text order and without."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, select
from sqlalchemy.pool import StaticPool

from hms_cache.expressions import (
    KeyColumns,
    bind,
    evaluate,
    evaluate_expression,
    parse_expression,
    parse_filter,
    sql_prefilter,
)
from tests.expressions.recorded import recorded
from tests.expressions.strategies import tables_and_filters, text_of

ENGINE = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
VALUES = Table("key_values", MetaData(), Column("id", Integer), *(Column(f"v{index}", String) for index in range(3)))
VALUES.create(ENGINE)
WIDE = Table(
    "wide_key_values", MetaData(), Column("id", Integer), *(Column(f"v{index}", String) for index in range(12))
)
WIDE.create(ENGINE)
KEYS = [("dt", "string"), ("hr", "int"), ("d", "date")]


def passed(condition, rows: list[list[str]]) -> set[int]:
    with ENGINE.connect() as connection:
        if rows:
            connection.execute(
                VALUES.insert(),
                [
                    {"id": number, **{f"v{index}": row[index] if index < len(row) else None for index in range(3)}}
                    for number, row in enumerate(rows)
                ],
            )
        found = set(connection.execute(select(VALUES.c.id).where(condition)).scalars())
        connection.rollback()
    return found


@settings(max_examples=150, deadline=None)
@given(tables_and_filters(max_rows=20))
def test_never_too_little(case) -> None:
    keys, rows, tree = case
    bound = bind(tree, keys)
    wanted = set(evaluate(bound, KeyColumns.from_values(keys, rows)).nonzero()[0].tolist())
    for text_order in (False, True):
        condition = sql_prefilter(bound, lambda index: VALUES.c[f"v{index}"], text_order)
        if condition is not None:
            assert wanted <= passed(condition, rows), text_of(tree)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("dt = 'b'", {1}),
        ("(dt) in ('a', 'b')", {0, 1}),
        ("hr = 1", {0, 1}),
        ("hr = 1 and dt > 'a'", {0, 1}),
        ("d = 2024-02-01", {1}),
        ("dt like 'a.*'", {0}),
        ("dt = 'a' or hr = 3", {0, 2}),
    ],
)
def test_most_rows_stay_in_the_database(text: str, ids: set[int]) -> None:
    rows = [["a", "1", "2024-01-01"], ["b", "01", "2024-02-01"], ["c", "3", "2024-03-01"], ["d", "11", "2023-01-01"]]
    condition = sql_prefilter(bind(parse_filter(text), KEYS), lambda index: VALUES.c[f"v{index}"])
    assert condition is not None
    assert passed(condition, rows) == ids


def test_ranges_need_text_order() -> None:
    bound = bind(parse_filter("dt > 'a' and d < 2024-01-01"), KEYS)
    assert sql_prefilter(bound, lambda index: VALUES.c[f"v{index}"]) is None
    condition = sql_prefilter(bound, lambda index: VALUES.c[f"v{index}"], text_order=True)
    rows = [["0", "1", "2023-01-01"], ["b", "1", "2023-01-01"], ["b", "1", "2025-01-01"]]
    assert condition is not None
    assert passed(condition, rows) == {1}


@pytest.mark.parametrize(
    "text",
    ["", "hr > 1", "dt != 'a'", "dt = 'é'", "dt like '%a'", "dt = 'a' or hr != 1", "not dt = 'a'"],
)
def test_nothing_is_asked_where_sql_could_not_know(text: str) -> None:
    assert sql_prefilter(bind(parse_filter(text), KEYS), lambda index: VALUES.c[f"v{index}"], True) is None


def test_long_chains_are_not_sent() -> None:
    text = " or ".join(f"dt like 'a{number}.*'" for number in range(201))
    assert sql_prefilter(bind(parse_filter(text), KEYS), lambda index: VALUES.c[f"v{index}"]) is None
    text = f"(dt) in ({','.join(repr(str(number)) for number in range(1001))})"
    assert sql_prefilter(bind(parse_filter(text), KEYS), lambda index: VALUES.c[f"v{index}"]) is None


def test_expressions_let_through_all_that_might_be_meant() -> None:
    answers = recorded("4.0.1")
    columns = KeyColumns.from_values(answers.keys, answers.rows)
    requested = 0
    with ENGINE.connect() as connection:
        rows = [{"id": n, **{f"v{i}": text for i, text in enumerate(row)}} for n, row in enumerate(answers.rows)]
        connection.execute(WIDE.insert(), rows)
        for expression, _, _, text in answers.expressions:
            bound = parse_expression(expression).bind(answers.keys)
            wanted = set(evaluate_expression(bound, columns).mask.nonzero()[0].tolist())
            condition = sql_prefilter(bound, lambda index: WIDE.c[f"v{index}"], text_order=True)
            if condition is not None:
                requested += 1
                assert wanted <= set(connection.execute(select(WIDE.c.id).where(condition)).scalars()), text
        connection.rollback()
    assert requested > 20
