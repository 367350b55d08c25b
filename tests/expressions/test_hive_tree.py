"""What a Hive 4.0.1 client really sent, the resulting trees, and what remains unknown."""

from __future__ import annotations

import base64
import datetime
import gc
import tracemalloc
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import column

from hms_cache.config.sections import LimitsSettings
from hms_cache.expressions import FilterSyntaxError, KeyColumns, evaluate_expression, sql_prefilter
from hms_cache.expressions.hive_tree import parse_expression
from hms_cache.expressions.kryo import KryoError, KryoReader, read_expression
from hms_cache.expressions.kryo_classes import dialects
from hms_cache.expressions.tree import (
    And,
    Between,
    Column,
    Comparison,
    Constant,
    In,
    IsNull,
    IsTruth,
    Like,
    Not,
    Or,
    Unknown,
    walk,
)
from hms_cache.expressions.tree import ComparisonOperator as Op
from hms_cache.metadata.partition_names import escape_path_name
from tests.expressions.kryo_writer import COLUMN, CONSTANT, FUNCTION, TYPE, Writer, ascii_text, varint
from tests.expressions.recorded import recorded

DEFAULT = "__HIVE_DEFAULT_PARTITION__"
# The functions of the sample that are not among the supported ones.
NOT_UNDERSTOOD = ("substr(", "hh % 5", "year(dt)")


def samples() -> list[tuple[str, bytes, list[str], bool]]:
    """SQL, expression, the partitions in Hive 4.0.1's answer, and whether the list is complete."""
    path = Path(__file__).parent / "data" / "hive4_client_expressions.tsv"
    found = []
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        call, sql, encoded, partitions = line.split("\t")
        answered = [part for part in partitions.split(" | ") if part]
        whole = not partitions.endswith("in all") and call == "get_partitions_spec_by_expr"
        found.append((sql, base64.b64decode(encoded), answered, whole))
    return found


SAMPLES = samples()


def expression_of(sql_part: str) -> bytes:
    return next(expression for sql, expression, _, _ in SAMPLES if sql_part in sql)


def test_every_sample_is_read_and_all_but_the_odd_functions_understood() -> None:
    assert len(SAMPLES) == 52
    unknown = {sql for sql, expression, _, _ in SAMPLES if parse_expression(expression).has_unknown}
    assert len(unknown) == 3
    assert all(any(part in sql for part in NOT_UNDERSTOOD) for sql in unknown)


@pytest.mark.parametrize(
    ("sql", "tree"),
    [
        ("WHERE n = 1", Comparison(Op.EQUAL, Column("n"), Constant(1, "int"))),
        ("WHERE n IN (3, 33)", In(Column("n"), (Constant(3, "int"), Constant(33, "int")))),
        ("WHERE s IS NULL", IsNull(Column("s"))),
        ("WHERE hh BETWEEN 2 AND 10", Between(Column("hh"), Constant(2, "int"), Constant(10, "int"))),
        ("WHERE hh NOT BETWEEN 2 AND 10", Not(Between(Column("hh"), Constant(2, "int"), Constant(10, "int")))),
        ("WHERE ds LIKE '2024-02%'", Like(Column("ds"), Constant("2024-02%", "string"))),
        (
            "WHERE dt >= DATE '2024-02-01'",
            Comparison(Op.GREATER_OR_EQUAL, Column("dt"), Constant(datetime.date(2024, 2, 1), "date")),
        ),
        (
            "WHERE amount > 2.5 AND amount < 10.01",
            And(
                (
                    Comparison(Op.GREATER, Column("amount"), Constant(Decimal("2.5"), "decimal(2,1)")),
                    Comparison(Op.LESS, Column("amount"), Constant(Decimal("10.01"), "decimal(4,2)")),
                )
            ),
        ),
        (
            "WHERE ds = '2024-01-01' OR hh = 12",
            Or(
                (
                    Comparison(Op.EQUAL, Column("ds"), Constant("2024-01-01", "string")),
                    Comparison(Op.EQUAL, Column("hh"), Constant(12, "int")),
                )
            ),
        ),
        ("s = 'a/b=c d%:#'", Comparison(Op.EQUAL, Column("s"), Constant("a/b=c d%:#", "string"))),
    ],
)
def test_sample_means_tree(sql: str, tree: object) -> None:
    assert parse_expression(expression_of(sql)).tree == tree


T_KEYS = [("ds", "string"), ("hh", "int"), ("dt", "date"), ("amount", "decimal(10,2)")]
T_ROWS = [
    ["2024-01-01", "1", "2024-01-01", "1.5"],
    ["2024-01-02", "2", "2024-01-02", "2.5"],
    ["2024-01-03", "3", "2024-01-03", "3.5"],
    ["2024-02-01", "10", "2024-02-01", "10"],
    ["2024-02-02", "11", "2024-02-02", "11"],
    ["x_y", "12", "2024-03-01", "0"],
]
_OF_T = [sample for sample in SAMPLES if " FROM t " in sample[0] and sample[3]]


@pytest.mark.parametrize("sample", _OF_T, ids=[sample[0] for sample in _OF_T])
def test_samples_select_the_partitions_that_hive_answered(sample: tuple[str, bytes, list[str], bool]) -> None:
    sql, expression, partitions, _ = sample
    parsed = parse_expression(expression)
    result = evaluate_expression(parsed.bind(T_KEYS), KeyColumns.from_values(T_KEYS, T_ROWS))
    ours = {"/".join(T_ROWS[row]) for row in result.mask.nonzero()[0].tolist()}
    assert set(partitions) <= ours
    assert result.has_unknown == parsed.has_unknown, sql
    assert result.has_unknown or set(partitions) == ours


def test_the_samples_of_one_table_are_enough_to_mean_something() -> None:
    assert len(_OF_T) >= 20


@pytest.mark.parametrize("sql", ["s IS NULL", "s = '__HIVE_DEFAULT_PARTITION__'"])
def test_the_default_partition_is_null_and_can_be_named(sql: str) -> None:
    keys, rows = [("s", "string")], [["a"], [DEFAULT], ["b"]]
    result = evaluate_expression(parse_expression(expression_of(sql)).bind(keys), KeyColumns.from_values(keys, rows))
    assert result.mask.tolist() == [False, True, False]
    assert not result.has_unknown


def test_a_text_that_is_no_value_of_its_type_is_kept_and_reported() -> None:
    keys = [("n", "int")]
    columns = KeyColumns.from_values(keys, [["1"], ["one"], [DEFAULT], ["2"]])
    result = evaluate_expression(parse_expression(expression_of("WHERE n = 1")).bind(keys), columns)
    assert result.mask.tolist() == [True, True, False, False]
    assert result.has_unknown


OF_TRUTH = {
    "OPTrue": [True, False, False],
    "OPFalse": [False, True, False],
    "OPNotTrue": [False, True, True],
    "OPNotFalse": [True, False, True],
}
"""What is selected of `ds = 'aa'` IS …, of the partitions aa, bb and the default one."""


@pytest.mark.parametrize("is_negated", [False, True])
@pytest.mark.parametrize(("function", "selected"), OF_TRUTH.items())
def test_a_predicate_is_true_or_false_or_neither(function: str, selected: list[bool], is_negated: bool) -> None:
    """They were unknown, so Hive got all partitions. These functions are never NULL, and NOT negates them."""
    writer = Writer()
    if is_negated:
        writer.begin_function(1)
    writer.begin_function(1)
    writer.equal("ds", "aa")
    writer.end_function(function, bytes(2))
    if is_negated:
        writer.end_function("OPNot", bytes(1))
    parsed = parse_expression(bytes(writer.data))
    assert not parsed.has_unknown
    keys = [("ds", "string")]
    columns = KeyColumns.from_values(keys, [["aa"], ["bb"], [DEFAULT]])
    result = evaluate_expression(parsed.bind(keys), columns)
    assert result.mask.tolist() == [one != is_negated for one in selected]
    assert not result.has_unknown
    condition = sql_prefilter(parsed.bind(keys), lambda _: column("value"))
    assert condition is None or (function, is_negated) in (("OPTrue", False), ("OPNotTrue", True))


@pytest.mark.parametrize(
    ("truth", "is_negated", "kept"),
    [
        (True, False, [True, True, False, False]),
        (True, True, [False, True, True, True]),
        (False, False, [False, True, False, True]),
        (False, True, [True, True, True, False]),
    ],
)
def test_of_what_is_not_known_to_be_true_the_contrary_is_not_known(
    truth: bool, is_negated: bool, kept: list[bool]
) -> None:
    keys = [("n", "int")]
    columns = KeyColumns.from_values(keys, [["1"], ["one"], [DEFAULT], ["2"]])
    parsed = parse_expression(expression_of("WHERE n = 1"))
    of_truth = IsTruth(parsed.tree, truth)
    requested = type(parsed)(Not(of_truth) if is_negated else of_truth, is_filter_text=False)
    result = evaluate_expression(requested.bind(keys), columns)
    assert (result.mask.tolist(), result.has_unknown) == (kept, True)


def test_what_is_unknown_keeps_only_what_the_rest_allows() -> None:
    """`ds = '…' AND year(dt) = 2024`: the known half still excludes."""
    known = parse_expression(expression_of("WHERE ds = '2024-01-02'")).tree
    odd = parse_expression(expression_of("substr(")).tree
    assert any(isinstance(node, Unknown) for node in walk(odd))
    parsed = parse_expression(expression_of("substr("))
    both = type(parsed)(And((known, odd)), is_filter_text=False)
    columns = KeyColumns.from_values(T_KEYS, T_ROWS)
    result = evaluate_expression(both.bind(T_KEYS), columns)
    assert result.mask.nonzero()[0].tolist() == [1]
    assert result.has_unknown
    nothing = type(parsed)(And((Comparison(Op.EQUAL, Column("ds"), Constant("no", "string")), odd)), False)
    result = evaluate_expression(nothing.bind(T_KEYS), columns)
    assert not result.mask.any()
    assert not result.has_unknown


def test_a_column_that_the_table_lacks_is_unknown() -> None:
    keys = [("other", "int")]
    columns = KeyColumns.from_values(keys, [["1"], ["2"]])
    result = evaluate_expression(parse_expression(expression_of("WHERE n = 1")).bind(keys), columns)
    assert result.mask.all()
    assert result.has_unknown


def test_mscks_plain_text() -> None:
    parsed = parse_expression(b'dt = "x" and (hr) in (1, 2)', plain_text=True)
    assert parsed.is_filter_text
    keys = [("dt", "string"), ("hr", "int")]
    columns = KeyColumns.from_values(keys, [["x", "2"], ["x", "3"]])
    result = evaluate_expression(parsed.bind(keys), columns)
    assert result.mask.tolist() == [True, False]
    assert not result.has_unknown
    with pytest.raises(FilterSyntaxError, match="not UTF-8"):
        parse_expression(b"\xff", plain_text=True)
    with pytest.raises(FilterSyntaxError):
        parse_expression(b"dt =", plain_text=True)


def test_msck_names_partitions_by_the_texts_of_their_values() -> None:
    keys = [("d", "date"), ("n", "int")]
    columns = KeyColumns.from_values(keys, [["2020-01-01", "1"], ["2020-1-1", "1"], ["2020-1-1", "01"]])
    bound = parse_expression(b"(d='2020-1-1' AND n='1')", plain_text=True).bind(keys)
    assert evaluate_expression(bound, columns).mask.tolist() == [False, True, False]


@pytest.mark.parametrize("value", ["2020-02-21 08:30:01", "a/b", "it's", "100%", "%41", 'a"b', "[^]", "\u00e9", "a=b"])
@pytest.mark.parametrize("shape", ["({0})", "({0}) OR ({1})", "NOT NOT ({0})"])
def test_msck_writes_values_as_directories_are_named(value: str, shape: str) -> None:
    keys = [("s", "string"), ("t", "timestamp")]
    columns = KeyColumns.from_values(keys, [[value, value], ["x", value], [value + ".", value]])
    escaped = escape_path_name(value)
    text = shape.format(f"s='{escaped}' AND t='{escaped}'", "s='y' AND t='y'")
    bound = parse_expression(text.encode(), plain_text=True).bind(keys)
    assert evaluate_expression(bound, columns).mask.tolist() == [True, False, False]


@pytest.mark.parametrize("broken", [b"", b"\x00", b"dt = 1", b"\x01\x00" + b"a" * 50, b"\xff" * 100])
def test_bytes_that_are_no_expression_are_unknown_as_a_whole(broken: bytes) -> None:
    parsed = parse_expression(broken)
    assert isinstance(parsed.tree, Unknown)
    result = evaluate_expression(parsed.bind(T_KEYS), KeyColumns.from_values(T_KEYS, T_ROWS))
    assert result.mask.all()
    assert result.has_unknown


def test_a_cut_expression_is_unknown_wherever_it_is_cut() -> None:
    for sql in ("WHERE n IN (3, 33)", "amount > 2.5", "(ds, hh) IN", "year(dt)"):
        expression = expression_of(sql)
        for length in range(len(expression)):
            with pytest.raises(KryoError):
                read_expression(expression[:length], id)


def test_size_and_depth_are_bounded() -> None:
    with pytest.raises(KryoError, match=r"setting limits\.expression_bytes"):
        read_expression(b"\x00" * (LimitsSettings().expression_bytes + 1), id)
    # A list in a list in a list …: class, mark, one element of one class, no nulls.
    bomb = b"\x01\x00java.util.ArrayLis\xf4\x01\x82" + b"\x01\x00\x00\x01\x82" * 30_000
    reader = KryoReader(bomb, dialects()[0])
    with pytest.raises(KryoError, match="deep"):
        reader.read(reader.class_and_object())
    # A list whose length exceeds the data.
    with pytest.raises(KryoError, match="longer than the data"):
        KryoReader(b"\x01\x00java.util.ArrayLis\xf4\x01\x7f\xff\xff\x7f", dialects()[0]).class_and_object()


@pytest.mark.parametrize("inner", ["first", "last"])
def test_ors_in_ors_are_one_however_many(inner: str) -> None:
    """Hive's optimizer sends `a OR b OR c` as `(a OR b) OR c`: a thousand values are functions nested a thousand
    deep."""
    values = [f"v{number:04d}" for number in range(2_000)]
    writer = Writer()
    for value in values[:-1]:
        writer.begin_function()
        if inner == "last":
            writer.equal("ds", value)
    writer.equal("ds", values[-1])
    for value in reversed(values[:-1]):
        if inner == "first":
            writer.equal("ds", value)
        writer.end_function("OPOr", bytes(1))
    parsed = parse_expression(bytes(writer.data))
    assert isinstance(parsed.tree, Or)
    assert {child.right.value for child in parsed.tree.children} == set(values)  # type: ignore[union-attr]
    keys = [("ds", "string")]
    rows = [["v0000"], ["v1000"], ["v1999"], ["v2000"], ["other"]]
    result = evaluate_expression(parsed.bind(keys), KeyColumns.from_values(keys, rows))
    assert (result.mask.tolist(), result.has_unknown) == ([True, True, True, False, False], False)


def test_shared_objects_do_not_multiply() -> None:
    """AND of the same AND twice, forty deep, is 2 to the 40 nodes in some hundred bytes."""
    name = b"\x01\x00org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDes\xe3"
    lists, udf = b"\x01\x01java.util.ArrayLis\xf4", b"\x01\x02org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPAn\xe4"
    # Each level: object, list of two (not of one class): the next level, and a reference to it.
    data = name + b"\x01"
    number = 0
    tails = []
    for depth in range(40):
        data += (lists if depth == 0 else b"\x01\x01") + b"\x01\x03"
        data += b"\x01\x00\x01" if depth < 39 else b"\x00\x00"
        reference = number + 4
        tail = bytes([1, 0]) + varint(reference) if depth < 39 else b""
        tails.append(tail)
        number += 2
    for depth in reversed(range(40)):
        data += tails[depth]
        data += (udf if depth == 39 else b"\x01\x02") + b"\x01\x00" + b"\x00" + b"\x00"
    children = read_expression(data, lambda root: root.fields["children"])
    assert children[0] is children[1]
    assert isinstance(parse_expression(data).tree, Unknown)


def _circle(nulls: int) -> bytes:
    """An OR of itself and of nulls."""
    writer = Writer()
    writer.begin_function(1 + nulls)
    writer.again(FUNCTION, 0)
    writer.data += bytes(nulls)
    writer.end_function("OPOr", bytes(1))
    return bytes(writer.data)


def _same_structs(values: int, times: int) -> bytes:
    """`struct(ds, ds, …) IN (x, x, …)`, where x is one constant."""
    writer = Writer()
    writer.begin_function(1 + times)
    writer.begin_function(values)
    if values:
        writer.begin(COLUMN)
        writer.data += b"\x01" + ascii_text("ds") + bytes(4)
        writer.again(COLUMN, 4, values - 1)
    writer.end_function("Struct", b"")
    if values:
        writer.begin(CONSTANT)
        writer.begin("org.apache.hadoop.hive.serde2.typeinfo.StructTypeInfo")
        writer.data += b"\x00"
        writer.begin_list(values)
        writer.begin(TYPE)
        writer.data += b"\x01" + ascii_text("string")
        writer.again(TYPE, 10, values - 1)
        writer.begin_list(values)
        writer.data += bytes(values)
        writer.again(CONSTANT, 7, times - 1)
    else:
        writer.data += bytes(times)
    writer.end_function("In", bytes(2))
    return bytes(writer.data)


def _same_function(times: int, function: str, *operands: str) -> bytes:
    """`f OR f OR f …`, where f is one function of a column and a constant."""
    writer = Writer()
    writer.begin_function(1 + times)
    writer.begin_function()
    writer.operands(*operands)
    if function == "OPEqualOrGreaterThan":
        writer.end_function(function, bytes(5))
    else:
        writer.end_function(
            "Bridge", b"\x00\x01" + ascii_text(f"org.apache.hadoop.hive.ql.udf.UDF{function}") + b"\x00"
        )
    writer.again(FUNCTION, 2, times)
    writer.end_function("OPOr", bytes(1))
    return bytes(writer.data)


@pytest.mark.parametrize(
    "data",
    [
        _circle(20_000),
        _same_structs(500, 20_000),
        _same_structs(0, 150_000),
        _same_function(20_000, "OPEqualOrGreaterThan", "ds", "a" * 20_000 + " "),
        _same_function(20_000, "OPEqualOrGreaterThan", "ds", "a" * 20_000 + " ", "char(10)"),
        _same_function(20_000, "OPEqualOrGreaterThan", "d" * 20_000, "aa"),
        _same_function(20_000, "OPEqualOrGreaterThan", "ds", "aa", "t" * 20_000),
        _same_function(20_000, "Like", "ds", "%a" * 10_000),
        _same_function(20_000, "f" * 20_000, "ds", "aa"),
    ],
    ids=["circle", "structs", "empty structs", "text", "padded text", "column", "type", "pattern", "function"],
)
def test_what_is_shared_costs_as_if_it_were_written_out(data: bytes) -> None:
    """Some kilobytes filled the memory of the server: an OR that contains itself, a struct or text used often."""
    tracemalloc.start()
    try:
        parsed = parse_expression(data)
        bound = parsed.bind(T_KEYS)
        sql_prefilter(bound, lambda index: column(f"k{index}"), text_order=True)
        result = evaluate_expression(bound, KeyColumns.from_values(T_KEYS, T_ROWS))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * LimitsSettings().expression_memory_bytes
    assert result.mask.all()
    assert result.has_unknown


def test_a_shared_text_of_some_length_is_understood() -> None:
    parsed = parse_expression(_same_function(100, "OPEqualOrGreaterThan", "ds", "b" * 1_000))
    assert not parsed.has_unknown
    assert len(list(walk(parsed.tree))) > 300


def test_objects_that_hold_each_other_do_not_stay() -> None:
    """Each request left megabytes until the cycle collector ran, after some ten thousand of them."""
    data = _circle(90_000)
    broken = data[:-1]
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(10):
            assert parse_expression(data).has_unknown
            assert parse_expression(broken).has_unknown
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert kept < 1 << 20


EXPRESSIONS = [expression for _, expression, _, _ in SAMPLES] + [
    expression for version in ("3.1.3", "2.3.10") for expression, _, _, _ in recorded(version).expressions[:60]
]


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_unknown_or_a_tree(data: bytes) -> None:
    parse_expression(data).bind(T_KEYS)


CHANGES = st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=4)


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(EXPRESSIONS), st.integers(0), CHANGES)
def test_changed_bytes_never_do_worse_than_unknown(expression: bytes, cut: int, changes: list[tuple[int, int]]) -> None:
    data = bytearray(expression)
    for position, value in changes:
        data[position % len(data)] = value
    if cut % 4 == 0:
        at = cut % len(data)
        data = data[:at] + data[at + 1 + cut % 20 :]
    bound = parse_expression(bytes(data)).bind(T_KEYS)
    evaluate_expression(bound, KeyColumns.from_values(T_KEYS, T_ROWS))


def test_memory_of_a_graph_is_bounded() -> None:
    """24 KiB that represent 1,000 lists of 15,000 nulls each: reading takes a limited amount of memory."""
    outer = varint(1) + varint(0) + ascii_text("java.util.Arrays$ArrayList") + varint(1) + varint(1_000)
    inner = varint(1) + varint(0) + varint(1) + varint(15_000) + varint(0)
    data = outer + varint(1) + varint(1) + ascii_text("java.lang.Object") + inner * 1_000 + bytes(20_000)
    tracemalloc.start()
    try:
        with pytest.raises(KryoError, match=f"more than {LimitsSettings().expression_memory_bytes} bytes"):
            read_expression(data, id)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * LimitsSettings().expression_memory_bytes
