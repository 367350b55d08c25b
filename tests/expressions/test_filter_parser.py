"""Filter text to trees: the texts clients send, Hive's special cases, refusals, limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_cache.expressions import (
    FilterError,
    FilterLimitError,
    FilterLimits,
    FilterSyntaxError,
    KeyColumns,
    bind,
    evaluate,
    filter_parser,
    parse_filter,
)
from hms_cache.expressions.filter_parser import MAX_ESCAPES
from hms_cache.expressions.tree import (
    TRUE,
    And,
    Between,
    Column,
    Comparison,
    Constant,
    In,
    Like,
    Not,
    Or,
    Predicate,
)
from hms_cache.expressions.tree import ComparisonOperator as Op
from tests.expressions.strategies import tables_and_filters, text_of


def compare(name: str, operator: Op, value: object) -> Comparison:
    return Comparison(operator, Column(name), Constant(value))  # type: ignore[arg-type]


def equal(name: str, value: object) -> Comparison:
    return compare(name, Op.EQUAL, value)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("", TRUE),
        ('dt = "2024-01-01" and hr = 0', And((equal("dt", "2024-01-01"), equal("hr", 0)))),
        ('dt like "x.*"', Like(Column("dt"), Constant("x.*"))),
        ("(hr) in (1, 2)", In(Column("hr"), (Constant(1), Constant(2)))),
        ("(hr) NOT IN (1, -2)", Not(In(Column("hr"), (Constant(1), Constant(-2))))),
        ("hr in (1)", In(Column("hr"), (Constant(1),))),
        ("a=1 or b=2 and c=3", Or((equal("a", 1), And((equal("b", 2), equal("c", 3)))))),
        ("(a=1 or b=2) and c=3", And((Or((equal("a", 1), equal("b", 2))), equal("c", 3)))),
        ("not a=1 and b=2", And((Not(equal("a", 1)), equal("b", 2)))),
        ("NOT (a=1 OR b=2)", Not(Or((equal("a", 1), equal("b", 2))))),
        ("5 < hr", Comparison(Op.LESS, Constant(5), Column("hr"))),
        ("hr == - 5", equal("hr", -5)),
        ("a <> 'x' ", compare("a", Op.NOT_EQUAL, "x")),
        ("a != 'x'", compare("a", Op.NOT_EQUAL, "x")),
        ("a>='x'", compare("a", Op.GREATER_OR_EQUAL, "x")),
        ("d between 2024-01-01 and 2024-02-01", Between(Column("d"), Constant("2024-01-01"), Constant("2024-02-01"))),
        ("d not between 1 and 2", Not(Between(Column("d"), Constant(1), Constant(2)))),
        ("date = date '2024-01-01'", equal("date", "2024-01-01")),
        ("date = DATE 2024-01-01", equal("date", "2024-01-01")),
        ("ts < timestamp '2024-01-01 10:00:00'", compare("ts", Op.LESS, "2024-01-01 10:00:00")),
        ("ts < 2024-01-01 10:00:00", compare("ts", Op.LESS, "2024-01-01 10:00:00")),
        ("`a b``c` = 1", equal("a b`c", 1)),
        ("2024_x = 1", equal("2024_x", 1)),
        ("1a = 007", equal("1a", 7)),
        # Keywords as keys, which Hive's lexers treat as keywords.
        ("timestamp = 'x'", equal("timestamp", "x")),
        ("in = 1", equal("in", 1)),
        # A backslash keeps a quote from ending the string and stays; neighbours keep their inner quotes.
        (r'a = "x\"y"', equal("a", r"x\"y")),
        (r"a = 'x\\'", equal("a", r"x\\")),
        ('a = "1" "2"', equal("a", '1""2')),
        ("a = 'x\ny'", equal("a", "x\ny")),
        (
            "(struct(a, b)) in (const struct(1, 'x'), struct(2, 'y'))",
            Or((And((equal("a", 1), equal("b", "x"))), And((equal("a", 2), equal("b", "y"))))),
        ),
        ("(struct(a)) not in (const struct(1))", Not(Or((And((equal("a", 1),)),)))),
    ],
)
def test_text_means_tree(text: str, tree: object) -> None:
    assert parse_filter(text) == tree


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=", "lexer error: mismatched input '<EOF>'"),
        ("  ", "lexer error: mismatched input '<EOF>'"),
        ("(a=1", "lexer error: mismatched input '<EOF>'"),
        ("a=1 garbage", "lexer error: line 1:4 mismatched input 'garbage'"),
        ('a = "x', "lexer error: line 1:4 token recognition error at: '\"'"),
        ("a <=> 1", "Unsupported comparison operator: <=>"),
        ("a = 9223372036854775808", 'For input string: "9223372036854775808"'),
        ("d = date '2024-02-30'", "Text '2024-02-30' could not be parsed as a date"),
        ("d = 2024-13-01", "Text '2024-13-01' could not be parsed as a date"),
        ("t = timestamp '2024-01-01 25:00:00'", "Text '2024-01-01 25:00:00' could not be parsed as a timestamp"),
        ("(struct(a,b)) in (struct(1))", "Struct key [a, b] and value [1] sizes do not match."),
    ],
)
def test_what_is_no_filter_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse_filter(text)
    assert str(caught.value) == "Error parsing partition filter: " + message


def test_limits_are_errors_with_the_numbers() -> None:
    limits = FilterLimits(max_characters=20, max_depth=3)
    assert parse_filter("(((a=1)))", limits) == equal("a", 1)
    with pytest.raises(FilterLimitError, match="more than 3 deep"):
        parse_filter("((((a=1))))", limits)
    with pytest.raises(FilterLimitError, match="21 characters, the limit is 20"):
        parse_filter("a = 'aaaaaaaaaaaaaaa'", limits)


def test_nots_count_as_depth_only_where_they_nest() -> None:
    limits = FilterLimits(max_depth=4)
    assert isinstance(parse_filter(" and ".join(["(a) not in (1)"] * 50), limits), And)
    assert isinstance(parse_filter("not not not not a=1", limits), Not)
    with pytest.raises(FilterLimitError):
        parse_filter("not not not not not a=1", limits)


def test_depth_at_the_default_limit_is_parsed_and_beyond_refused() -> None:
    assert parse_filter("(" * 99 + "a=1" + ")" * 99) == equal("a", 1)
    parse_filter("not " * 100 + "a=1")
    for text in ("(" * 100_000, "not " * 100_000 + "a=1", "(" * 101 + "a=1" + ")" * 101):
        with pytest.raises(FilterLimitError):
            parse_filter(text)


def test_the_deepest_filter_is_evaluated() -> None:
    text = "".join(f"(a {'=' if level % 2 else '!='} {level} {'or' if level % 2 else 'and'} " for level in range(99))
    text += "a = 5" + ")" * 99
    keys = [("a", "int")]
    bound = bind(parse_filter(text), keys)
    columns = KeyColumns.from_values(keys, [[str(value)] for value in range(120)])
    expected = [_nested(value, 0) for value in range(120)]
    assert evaluate(bound, columns).tolist() == expected
    assert any(expected)
    assert not all(expected)


def _nested(value: int, level: int) -> bool:
    if level == 99:
        return value == 5
    if level % 2:
        return value == level or _nested(value, level + 1)
    return value != level and _nested(value, level + 1)


def nested_to_the_left(connective: str, parts: Sequence[str]) -> str:
    """As programs write conditions combined in pairs: `((a and b) and c)`."""
    return "(" * (len(parts) - 1) + parts[0] + "".join(f" {connective} {part})" for part in parts[1:])


def nested_to_the_right(connective: str, parts: Sequence[str]) -> str:
    return "".join(f"({part} {connective} " for part in parts[:-1]) + parts[-1] + ")" * (len(parts) - 1)


def halved(connective: str, parts: Sequence[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return f"({halved(connective, parts[:middle])} {connective} {halved(connective, parts[middle:])})"


NESTINGS = [nested_to_the_left, nested_to_the_right, halved]


@pytest.mark.parametrize("nested", NESTINGS)
@pytest.mark.parametrize("connective", ["or", "and"])
def test_ors_in_ors_and_ands_in_ands_are_one_however_deep(nested: Callable[..., str], connective: str) -> None:
    parts = [f"a = {number}" for number in range(1_000)]
    expected = parse_filter(f" {connective} ".join(parts))
    assert parse_filter(nested(connective, parts)) == expected
    kind = Or if connective == "or" else And
    assert expected == kind(tuple(equal("a", number) for number in range(1_000)))


@pytest.mark.parametrize("nested", NESTINGS)
def test_the_days_of_a_year_as_programs_write_them(nested: Callable[..., str]) -> None:
    """Each is an AND in an OR, two levels, and the ORs are one."""
    days = [f"(m = {number % 12 + 1} and (d = {number % 31 + 1}))" for number in range(365)]
    assert parse_filter(nested("or", days), FilterLimits(max_depth=4)) == parse_filter(" or ".join(days))


@pytest.mark.parametrize(
    "text",
    [
        "not (a=0 or {})",
        "(a=0 or (a=1 and {}))",
        "(a=0 or not (a=1 or {}))",
        "((a=0 or {}) and a=1)",
        "(a=0 and a=1 or {})",
        "({})",
    ],
)
def test_what_is_not_one_or_stays_limited_in_depth(text: str) -> None:
    deep = "a=9"
    for _ in range(101):
        deep = text.replace("{}", deep)
    with pytest.raises(FilterLimitError, match="nested more than 100 deep"):
        parse_filter(deep)


@pytest.mark.parametrize("end", ["", "a = 1", "a = 1" + ")" * 1_000_000])
@pytest.mark.parametrize("start", ["(", "(a = 1 or ", "a = 1 and ("])
def test_parentheses_without_end_are_refused(start: str, end: str) -> None:
    with pytest.raises(FilterLimitError, match="nested more than"):
        parse_filter((start * 100_000)[:1_000_000] + end, FilterLimits(max_characters=4_000_000))


def test_a_long_list_is_parsed() -> None:
    tree = parse_filter(f"(hr) in ({','.join(map(str, range(20_000)))})")
    assert isinstance(tree, In)
    assert len(tree.values) == 20_000


@pytest.mark.parametrize(("quote", "escape"), [("'", "\\'"), ('"', '\\"'), ("'", "a\\\\"), ("`", "``"), ("`", "a``")])
def test_no_text_has_so_many_escapes_that_all_threads_wait_for_it(quote: str, escape: str) -> None:
    """A regular expression reads a text at once, and nothing else runs meanwhile."""
    refused: list[None] = []
    limits = FilterLimits(on_refusal=lambda: refused.append(None))
    few = quote + "".join([escape] * (MAX_ESCAPES // 2 - 1)) + quote
    many = quote + "".join([escape] * (MAX_ESCAPES + 1))
    whole = "{} = 1" if quote == "`" else "p = {}"
    assert isinstance(parse_filter(whole.format(few), limits), Comparison)
    for end in (quote, ""):
        for before in ("", f"{quote}x{quote} = 1 or " if quote == "`" else f"p = {quote}x{quote} or "):
            with pytest.raises(FilterLimitError, match=f"more than {MAX_ESCAPES} escapes"):
                parse_filter(before + whole.format(many + end), limits)
    assert len(refused) == 4


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "a = 1",
                " or ",
                " and ",
                "not ",
                "(",
                ")",
                " " * 30,
                "x" * 40,
                "p = '",
                "'",
                '"',
                "`",
                "\\'",
                "nota",
                "or_",
                ")or(",
                "1",
                "é",
            ]
        ),
        max_size=40,
    ),
    st.integers(1, 60),
)
def test_what_is_found_does_not_depend_on_windows(pieces: list[str], window_characters: int) -> None:
    text = "".join(pieces)
    found = [match.span() for match in filter_parser._NESTING.finditer(text)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filter_parser, "_WINDOW_CHARACTERS", window_characters)
        assert [match.span() for match in filter_parser._pieces(text)] == found


def test_many_threads_parse_at_once() -> None:
    texts = [f"a = {number} and (b) in ({number}, {number + 1}) or not c like 'x{number}.*'" for number in range(400)]
    expected = [parse_filter(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: parse_filter(text + " "), texts)) == expected


@settings(deadline=None)
@given(tables_and_filters(max_rows=0))
def test_printed_trees_are_parsed_back(case) -> None:
    _, _, tree = case
    assert parse_filter(text_of(tree)) == without_neighbours(tree)


def without_neighbours(node: Predicate) -> Predicate:
    """ORs directly below an OR belong to it, and so do ANDs below an AND."""
    if isinstance(node, Not):
        return Not(without_neighbours(node.child))
    if not isinstance(node, And | Or):
        return node
    children: list[Predicate] = []
    for child in map(without_neighbours, node.children):
        children += child.children if isinstance(child, type(node)) else [child]
    return type(node)(tuple(children))


@settings(deadline=None)
@given(st.text(alphabet="ab1 =<>!()'\"`\\,-.%andotriNLIKEbew\n", max_size=60))
def test_no_text_does_worse_than_a_filter_error(text: str) -> None:
    try:
        parse_filter(text)
    except FilterError as error:
        assert str(error).startswith("Error parsing partition filter: ")
