"""Operands that Hive never writes: numbers beyond each type, types with any parameters. An expression with them is
true, false or unknown for a partition, and never fails."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_cache.expressions import KeyColumns, evaluate_expression, tree
from hms_cache.expressions.expression_binding import bind_expression
from hms_cache.expressions.hive_tree import parse_expression
from hms_cache.expressions.kryo import KryoReader
from hms_cache.expressions.kryo_classes import dialects
from hms_cache.expressions.name_prefilter import name_patterns
from hms_cache.expressions.tree import Comparison, ComparisonOperator, Constant
from tests.expressions.test_hive_tree import DEFAULT, SAMPLES

BASES = ("string", "varchar", "char", "tinyint", "int", "bigint", "float", "double", "decimal", "date", "timestamp")
NUMBERS = ("", "0", "1", "38", "99", "2147483647", "9" * 19, "9" * 5_000, "-1", "x")
TYPES = st.one_of(
    st.sampled_from([*BASES, "boolean", "array<int>", ""]),
    st.builds(lambda base, first: f"{base}({first})", st.sampled_from(BASES), st.sampled_from(NUMBERS)),
    st.builds(lambda *numbers: "decimal({},{})".format(*numbers), st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)),
)
TEXTS = (
    *("0", "-0", "+1", "007", "1.50", "1e999", "-1e999", "1e-400", "9" * 19, "9" * 30, "9" * 38, "9" * 400, "nan"),
    *("0." + "1" * 38, "9" * 30 + "." + "1" * 10, "true", "", "x" * 300, "\0", "\u0663", "\U0001f600", DEFAULT),
    *("2024-01-01", "0001-01-01", "9999-12-31", "0000-00-00", "9999-12-31 23:59:59.999999999", "2262-04-12 00:00:00"),
)
CONSTANTS = (
    *(None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**63, 2**511, -(2**511), 0.5, float("inf"), float("-inf")),
    *(float("nan"), 1e308, Decimal("1e-1000"), Decimal("1e1000"), Decimal(2**511), Decimal("-0")),
    *(datetime.date.min, datetime.date.max, datetime.datetime.min, datetime.datetime.max),
)
KEYS = tuple((f"k{number}", name) for number, name in enumerate((*BASES, "boolean", "decimal(38,10)")))

OPERANDS: st.SearchStrategy[tree.Operand] = st.recursive(
    st.one_of(
        st.sampled_from([tree.Column(name) for name, _ in KEYS]),
        st.builds(Constant, st.sampled_from([*CONSTANTS, *TEXTS]), TYPES),
    ),
    lambda inner: st.builds(tree.Cast, inner, TYPES),
    max_leaves=3,
)
PREDICATES: st.SearchStrategy[tree.Predicate] = st.one_of(
    st.builds(Comparison, st.sampled_from(ComparisonOperator), OPERANDS, OPERANDS),
    st.builds(tree.In, OPERANDS, st.lists(OPERANDS, max_size=4).map(tuple)),
    st.builds(tree.Between, OPERANDS, OPERANDS, OPERANDS),
    st.builds(tree.Like, OPERANDS, OPERANDS),
    st.builds(tree.IsNull, OPERANDS),
    st.builds(tree.Truth, OPERANDS),
)
ROWS = [tuple(TEXTS[(row + 5 * key) % len(TEXTS)] for key in range(len(KEYS))) for row in range(len(TEXTS))]
COLUMNS = KeyColumns.from_values(KEYS, ROWS)


@settings(max_examples=2_000, deadline=None)
@given(PREDICATES, st.booleans())
def test_no_operand_makes_an_expression_fail(predicate: tree.Predicate, negated: bool) -> None:
    bound = bind_expression(tree.Not(predicate) if negated else predicate, KEYS)
    evaluate_expression(bound, COLUMNS)
    name_patterns(bound, KEYS)


@pytest.mark.parametrize(
    ("text", "type_name", "fits"),
    [
        ("9" * 33, "decimal(38,5)", True),
        ("9" * 34, "decimal(38,5)", False),
        ("-" + "1" * 28 + "." + "1" * 10, "decimal(38,10)", True),
        ("1" * 28 + "." + "1" * 11, "decimal(38,10)", False),
        ("1" * 28 + "." + "1" * 10 + "000", "decimal(38,10)", True),
        ("1200", "decimal(4,0)", True),
        ("1200", "decimal(3,0)", False),
        ("0.05", "decimal(2,2)", True),
        ("1", "decimal(2,2)", False),
        ("0", "decimal(2,2)", True),
    ],
)
def test_a_cast_to_decimal_is_exact_up_to_hives_38_digits(text: str, type_name: str, fits: bool) -> None:
    """Python's arithmetic has 28; what needs rounding is left to Hive."""
    cast = tree.Cast(tree.Column("s"), type_name)
    equal = Comparison(ComparisonOperator.EQUAL, cast, Constant(Decimal(text), "decimal(38,10)"))
    found = evaluate_expression(
        bind_expression(equal, [("s", "string")]), KeyColumns.from_values([("s", "string")], [(text,)])
    )
    assert found.mask.tolist() == [True] and found.has_unknown is not fits


def number(value: int) -> bytes:
    """As Kryo writes lengths and ids."""
    written = b""
    while value > 127:
        written += bytes([value & 127 | 128])
        value >>= 7
    return written + bytes([value])


def with_big_integer(size: int) -> bytes:
    """`n = 1` as Hive 4 sends it, with 1 as a decimal made from a BigInteger of this many bytes."""
    sample = next(expression for sql, expression, _, _ in SAMPLES if "WHERE n = 1" in sql)
    name = b"java.math.BigIntege" + bytes([ord("r") | 128])
    big = b"\x01\x05" + name + b"\x01" + number(size + 1) + b"\x7f" * size
    changed = sample.replace(b"\x07\x02\x02\x01\x05org", b"\x07" + big + b"\x01\x06org")
    changed = changed.replace(b"\x01\x06org.apache.hadoop.io", b"\x01\x07org.apache.hadoop.io")
    return changed.replace(b"in\xf4", b"decima\xec", 1)


def test_a_number_of_a_megabyte_is_not_read() -> None:
    """Python would convert it in quadratic time, and block all others for two minutes."""
    read = parse_expression(with_big_integer(64)).tree
    assert isinstance(read, Comparison) and read.right == Constant(int.from_bytes(b"\x7f" * 64, "big"), "decimal")
    for size in (65, 1_000_000):
        expression = parse_expression(with_big_integer(size))
        assert isinstance(expression.tree, tree.Unknown) and "a number is too long" in expression.tree.reason
        expression.bind(KEYS)


def test_a_decimal_is_read_as_it_is() -> None:
    digits = int("9" * 38)
    data = number(17) + digits.to_bytes(16, "big") + number(2 * 10)
    name = b"\x01\x00java.math.BigDecima" + bytes([ord("l") | 128]) + b"\x01"
    assert KryoReader(name + data, dialects()[0]).class_and_object() == Decimal((0, (9,) * 38, -10))
