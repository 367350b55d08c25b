"""Random tables and filters that Hive's grammar can express, and the printer of filters."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from hms_cache.expressions import tree as t

DEFAULT = "__HIVE_DEFAULT_PARTITION__"
TYPES = [
    "string",
    "varchar(20)",
    "char(4)",
    "tinyint",
    "int",
    "bigint",
    "date",
    "timestamp",
    "double",
    "float",
    "decimal(10,2)",
    "boolean",
]

_spellable = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
small_texts = st.text(alphabet="ab%_.*\\é😀 ~/=-0A", max_size=5)
integer_texts = st.one_of(
    st.integers(-20, 20).map(str),
    st.sampled_from(["01", "007", "+5", "-0", "00", "x", "", "1.0", " 1", str(2**63 - 1), str(2**63), str(-(2**63))]),
)
date_texts = st.one_of(
    st.dates().map(str),
    st.sampled_from(
        ["2024-01-01", "2024-02-29", "2023-02-29", "2024-1-5", "2024-01-01 10:00:00", "2024-12-31", "0001-01-01", "no"]
    ),
)
timestamp_texts = st.one_of(
    st.datetimes().map(lambda moment: moment.isoformat(" ")),
    st.sampled_from(["2024-01-01 00:00:00", "2024-01-01 00:00:00.0", "2024-01-01 10:00:00.5", "2024-01-01", "nope"]),
)
number_texts = st.sampled_from(["0", "1", "1.0", "1.50", "1.5", "-2.25", "0.1", "1e2", "100", "abc", ".5", "5."])


def values_of(hive_type: str) -> st.SearchStrategy[str]:
    base = hive_type.split("(")[0]
    texts = {
        "date": date_texts,
        "timestamp": timestamp_texts,
        "boolean": st.sampled_from(["true", "false", "TRUE", "maybe"]),
    }
    if base in ("string", "varchar", "char"):
        chosen: st.SearchStrategy[str] = small_texts
    elif base in ("tinyint", "smallint", "int", "bigint"):
        chosen = integer_texts
    else:
        chosen = texts.get(base, number_texts)
    return st.one_of(chosen, chosen, chosen, st.just(DEFAULT))


def _quotable(text: str) -> bool:
    return bool(_spellable.fullmatch(quoted(text)))


def quoted(text: str) -> str:
    return f"'{text}'" if '"' in text else f'"{text}"'


def literals_of(hive_type: str) -> st.SearchStrategy[t.Constant]:
    base = hive_type.split("(")[0]
    if base in ("string", "varchar", "char"):
        plain: st.SearchStrategy[object] = small_texts.filter(_quotable)
    elif base in ("tinyint", "smallint", "int", "bigint"):
        plain = st.one_of(st.integers(-20, 20), st.sampled_from([2**63 - 1, -(2**63)]))
    elif base == "date":
        plain = st.one_of(date_texts, st.sampled_from(["2024-01-01", "2024-01-05", "zz"]))
    elif base == "timestamp":
        plain = timestamp_texts
    elif base == "boolean":
        plain = st.sampled_from(["true", "false", "False"])
    else:
        plain = st.one_of(st.integers(-3, 3), st.sampled_from(["1.5", "1.50", "0.1", "-2.25", "1e2"]))
    return st.one_of(plain, plain, plain, st.just(DEFAULT)).map(t.Constant)


names = st.sampled_from(["dt", "hr", "date", "In", "x_1", "2nd", "a b", "tick`y", "not_a", "TIMESTAMP"])


@st.composite
def tables(draw, max_rows: int = 12) -> tuple[list[tuple[str, str]], list[list[str]]]:
    chosen = draw(st.lists(names, min_size=1, max_size=3, unique_by=str.lower))
    keys = [(name, draw(st.sampled_from(TYPES))) for name in chosen]
    row = st.tuples(*(values_of(hive_type) for _, hive_type in keys)).map(list)
    return keys, draw(st.lists(row, max_size=max_rows))


@st.composite
def leaves(draw, keys: list[tuple[str, str]]) -> t.Predicate:
    name, hive_type = draw(st.sampled_from(keys))
    column = t.Column(draw(st.sampled_from([name, name.upper(), name.lower()])))
    literal = literals_of(hive_type)
    kinds = ["compare", "compare", "reverse", "in", "between"]
    if hive_type.split("(")[0] in ("string", "varchar", "char", "date", "timestamp"):
        kinds.append("like")
    kind = draw(st.sampled_from(kinds))
    if kind == "compare":
        return t.Comparison(draw(st.sampled_from(list(t.ComparisonOperator))), column, draw(literal))
    if kind == "reverse":
        return t.Comparison(draw(st.sampled_from(list(t.ComparisonOperator))), draw(literal), column)
    if kind == "in":
        return t.In(column, tuple(draw(st.lists(literal, min_size=1, max_size=4))))
    if kind == "between":
        return t.Between(column, draw(literal), draw(literal))
    pattern = draw(small_texts.filter(_quotable))
    return t.Like(column, t.Constant(pattern))


def filters(keys: list[tuple[str, str]]) -> st.SearchStrategy[t.Predicate]:
    def grown(children: st.SearchStrategy[t.Predicate]) -> st.SearchStrategy[t.Predicate]:
        several = st.lists(children, min_size=2, max_size=3).map(tuple)
        return st.one_of(several.map(t.And), several.map(t.Or), children.map(t.Not))

    return st.recursive(leaves(keys), grown, max_leaves=6)


@st.composite
def tables_and_filters(draw, max_rows: int = 12):
    keys, rows = draw(tables(max_rows))
    return keys, rows, draw(filters(keys))


def text_of(node: t.Node) -> str:
    """The filter in Hive's language, in various spellings that depend on the contents."""
    match node:
        case t.And(children):
            return " and ".join(_wrapped(child) for child in children)
        case t.Or(children):
            return " OR ".join(_wrapped(child) for child in children)
        case t.Not(t.In(operand, values)):
            return f"({text_of(operand)}) not in ({', '.join(map(text_of, values))})"
        case t.Not(t.Between(operand, lower, upper)):
            return f"{text_of(operand)} Not Between {text_of(lower)} and {text_of(upper)}"
        case t.Not(child):
            return f"not {_wrapped(child)}"
        case t.Comparison(operator, left, right):
            return f"{text_of(left)} {operator.value} {text_of(right)}"
        case t.In(operand, values):
            return f"({text_of(operand)}) IN ({','.join(map(text_of, values))})"
        case t.Between(operand, lower, upper):
            return f"{text_of(operand)} BETWEEN {text_of(lower)} AND {text_of(upper)}"
        case t.Like(operand, pattern):
            return f"{text_of(operand)} like {text_of(pattern)}"
        case t.Column(name):
            return name if re.fullmatch("[A-Za-z0-9_]+", name) else "`" + name.replace("`", "``") + "`"
        case t.Constant(value):
            return quoted(value) if isinstance(value, str) else str(value)
    raise AssertionError(node)


def _wrapped(node: t.Predicate) -> str:
    return f"({text_of(node)})" if isinstance(node, t.And | t.Or) else text_of(node)
