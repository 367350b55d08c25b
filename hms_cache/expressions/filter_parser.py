"""Parses a filter text to a tree.

The language is Hive's (`PartitionFilter.g4` of 4.0, `Filter.g` of 2.3). It is used by Spark (`dt = "2024-01-01" and hr
= 0`, `dt like "x.*"`, `(hr) in (1, 2)`), by Iceberg and Trino in `get_table_names_by_filter`, and by Hive's MSCK as the
`expr` of partition calls. Less obvious rules, as in Hive:

* AND binds tighter than OR; keywords are case-insensitive.
* A backslash in a string prevents the next character from ending the string, and remains part of the value.
* Adjacent strings are joined with their inner quotes: `"a" "b"` is `a""b`.
* A date or timestamp, with or without its keyword, is checked against the calendar and is then an ordinary string.
* `a NOT IN (…)` and `NOT BETWEEN` consist of plain comparisons in Hive; here `Not` is used, which is equivalent in
  three-valued logic.
* Hive 4 ignores any text after a complete filter; here that is an error, because a truncated filter selects more.
"""

from __future__ import annotations

import datetime
import functools
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, NoReturn

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken, v_args
from lark.exceptions import VisitError

from hms_cache.config.sections import CatalogSettings
from hms_cache.expressions import tree
from hms_cache.expressions.errors import FilterLimitError, FilterSyntaxError
from hms_cache.values import frozen

ERROR_PREFIX = "Error parsing partition filter: "
DEFAULT_MAX_CHARACTERS = 1_048_576
"""Maximum length of a filter text. The longest that Spark sends in practice (1,000 values of an IN for each of a few
keys) has 100 kB; parsing takes some 4 µs per token, so a megabyte limits a call to about a second of CPU time."""
DEFAULT_MAX_DEPTH = 100
"""Maximum nesting of parentheses and NOTs. Binding and evaluation are recursive, with some 4 Python frames per level,
and the interpreter allows 1,000 frames. Generated filters have two or three levels, except for ORs in ORs: Spark and
Hudi write `((a = 1 or a = 2) or a = 3)`, with a thousand levels for as many values. These are merged and do not
count."""
MAX_PARENTHESES = 10_000
"""Maximum nesting of parentheses of any kind. In Hive 4.0.1, 500 levels exceed the stack of a thread."""
DEFAULT_MAX_COMPARISONS = 50_000_000
"""Maximum number of comparisons of a filter: for each part, the texts of its key that Python compares one by one (LIKE,
char), and a 64th of the partitions for NumPy's work. A thousand ORs on a million partitions are 16 million; 50 million
LIKEs take some 15 seconds of CPU time."""
_CACHED_TREES = 256
_LONGEST_CACHED_TEXT = 2_048
"""A tree takes some 30 bytes per character of its text, so the cached trees stay below 16 MB."""

_MIN_LONG, _MAX_LONG = -(1 << 63), (1 << 63) - 1
MAX_ESCAPES = 10_000
"""In one text, or quotes in one quoted name; no value of a partition has as many characters (its name has at most 767).
A regular expression holds the interpreter lock until it has scanned a text, 30 ns per escape; texts of maximum length
with escapes only blocked all other threads for 16 ms at a time."""
_NESTING = re.compile(
    rf"""'(?:[^'\\]++|\\.?){{0,{MAX_ESCAPES}}}+(?P<single>')?"""
    rf"""|"(?:[^"\\]++|\\.?){{0,{MAX_ESCAPES}}}+(?P<double>")?"""
    rf"""|`(?:``|[^`]++){{0,{MAX_ESCAPES}}}+(?P<back>`(?!`))?"""
    r"""|\(|\)|\b(?:not|and|or)\b""",
    re.IGNORECASE | re.DOTALL,
)
"""Nothing is scanned twice: an unterminated text extends to the end of the filter."""
_PART_OF_A_WORD = re.compile(r"\w{0,4}")
_QUOTES = "'\"`"
_WINDOW_CHARACTERS = 16_384
"""A search continues until it finds something, 20 to 40 ns per character, and holds the interpreter lock until then."""
_OPERATORS = {
    "=": tree.ComparisonOperator.EQUAL,
    "==": tree.ComparisonOperator.EQUAL,
    "<>": tree.ComparisonOperator.NOT_EQUAL,
    "!=": tree.ComparisonOperator.NOT_EQUAL,
    "<": tree.ComparisonOperator.LESS,
    "<=": tree.ComparisonOperator.LESS_OR_EQUAL,
    ">": tree.ComparisonOperator.GREATER,
    ">=": tree.ComparisonOperator.GREATER_OR_EQUAL,
}


def _uncounted() -> None:
    """Default for refusals that are not counted."""


@frozen
class FilterLimits:
    """Limits of a filter: length (characters), depth (nested parentheses and NOTs), comparisons.

    `on_refusal` is called for each filter that exceeds a limit.
    """

    max_characters: int = DEFAULT_MAX_CHARACTERS
    max_depth: int = DEFAULT_MAX_DEPTH
    max_comparisons: int = DEFAULT_MAX_COMPARISONS
    on_refusal: Callable[[], None] = field(default=_uncounted, compare=False)

    @classmethod
    def of(cls, catalog: CatalogSettings, on_refusal: Callable[[], None] = _uncounted) -> FilterLimits:
        """The limits in the settings."""
        return cls(catalog.filter_max_characters, catalog.filter_max_depth, catalog.filter_max_comparisons, on_refusal)

    def refuse_comparisons(self) -> NoReturn:
        """Raises `FilterLimitError`: the filter needs more than `max_comparisons` comparisons."""
        self.on_refusal()
        raise FilterLimitError(
            f"{ERROR_PREFIX}it takes more than {self.max_comparisons} comparisons (catalog.filter_max_comparisons); "
            "ask for less at once"
        )


DEFAULT_LIMITS = FilterLimits()


def parse_filter(text: str, limits: FilterLimits = DEFAULT_LIMITS) -> tree.Predicate:
    """Parses a filter text; the empty text is `TRUE`, all partitions.

    Trees of recent short texts are cached. Raises `FilterSyntaxError` with Hive's text for an invalid filter,
    `FilterLimitError` if it exceeds `limits`.
    """
    if not text:
        return tree.TRUE
    try:
        if len(text) > limits.max_characters:
            raise FilterLimitError(
                f"{ERROR_PREFIX}the text has {len(text)} characters, the limit is {limits.max_characters} "
                "(catalog.filter_max_characters)"
            )
        if len(text) <= _LONGEST_CACHED_TEXT:
            return _parse_cached(text, limits.max_depth)
        return _parse(text, limits.max_depth)
    except FilterLimitError:
        limits.on_refusal()
        raise


@functools.lru_cache(maxsize=_CACHED_TREES)
def _parse_cached(text: str, max_depth: int) -> tree.Predicate:
    return _parse(text, max_depth)


def _parse(text: str, max_depth: int) -> tree.Predicate:
    _check_depth(text, max_depth)
    try:
        return _merged(_parser().parse(text))  # type: ignore[arg-type]
    except VisitError as error:
        raise FilterSyntaxError(f"{ERROR_PREFIX}{error.orig_exc}") from error
    except UnexpectedInput as error:
        raise FilterSyntaxError(ERROR_PREFIX + _describe(error)) from error


def _describe(error: UnexpectedInput) -> str:
    if isinstance(error, UnexpectedToken):
        token = error.token
        if token.type == "$END":
            return "lexer error: mismatched input '<EOF>'"
        return f"lexer error: line {token.line}:{(token.column or 1) - 1} mismatched input '{_shortened(str(token))}'"
    if isinstance(error, UnexpectedCharacters):
        return f"lexer error: line {error.line}:{error.column - 1} token recognition error at: '{error.char}'"
    return "lexer error: unexpected end"


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "…"


def _pieces(text: str) -> Iterator[re.Match[str]]:
    """The matches of `_NESTING` in the text, one window at a time."""
    start = 0
    while start < len(text):
        end = start + _WINDOW_CHARACTERS
        # A part of a word could look like a NOT, or hide one; longer windows avoid that.
        end = _PART_OF_A_WORD.match(text, end).end()  # type: ignore[union-attr]
        for match in _NESTING.finditer(text, start, end):
            if match.end() == end and match.group()[0] in _QUOTES:
                whole = _NESTING.match(text, match.start())
                assert whole is not None
                yield whole
                start = whole.end()
                break
            yield match
        else:
            start = end


@dataclass(slots=True)
class _Level:
    """State between an open parenthesis (or the beginning) and the current place.

    The depths are those of the parentheses and NOTs in it, -1 if there are none. `ands` and `ors` exclude parentheses
    that contain only ANDs or only ORs, because the context determines whether these count.
    """

    nots: int = 0
    """Number of NOTs directly before the parenthesis."""
    connectives: frozenset[str] = frozenset()
    ands: int = -1
    ors: int = -1
    others: int = 0

    @property
    def depth(self) -> int:
        ands = self.ands + (self.connectives != _ANDS)
        ors = self.ors + (self.connectives != _ORS)
        return max(ands if self.ands >= 0 else 0, ors if self.ors >= 0 else 0, self.others)

    def take(self, inner: _Level) -> None:
        """Closes a parenthesis inside this level."""
        if not inner.nots and inner.connectives == _ANDS:
            self.ands = max(self.ands, inner.depth)
        elif not inner.nots and inner.connectives == _ORS:
            self.ors = max(self.ors, inner.depth)
        else:
            self.others = max(self.others, inner.nots + 1 + inner.depth)


_ANDS, _ORS = frozenset({"and"}), frozenset({"or"})


def _check_depth(text: str, max_depth: int) -> None:
    """Counts open parentheses, and consecutive NOTs before each, outside strings; also counts escapes in strings.

    Parentheses of ORs among ORs, and of ANDs among ANDs, do not count, since `_merged` removes them.
    """
    levels = [_Level()]
    nots = 0
    for match in _pieces(text):
        part = match.group()
        level = levels[-1]
        if part == "(":
            levels.append(_Level(nots))
            nots = 0
            if len(levels) > MAX_PARENTHESES:
                raise FilterLimitError(f"{ERROR_PREFIX}nested more than {MAX_PARENTHESES} deep")
        elif part == ")":
            if len(levels) > 1:
                levels.pop()
                levels[-1].take(level)
            nots = 0
        elif part[0] in "nN":
            nots += 1
            level.others = max(level.others, nots)
        else:
            nots = 0
            if part[0] not in _QUOTES:
                level.connectives |= {part.lower()}
            elif match.lastgroup is None and match.end() < len(text):
                raise FilterLimitError(f"{ERROR_PREFIX}a text in it has more than {MAX_ESCAPES} escapes")
        if levels[-1].others > max_depth:
            break
    else:
        while len(levels) > 1:
            levels[-2].take(levels.pop())
    if levels[-1].depth > max_depth:
        raise FilterLimitError(f"{ERROR_PREFIX}nested more than {max_depth} deep (catalog.filter_max_depth)")


def _merged(node: tree.Predicate) -> tree.Predicate:
    """The tree with nested ORs merged into one, and nested ANDs as well. Recurses to the depth that `_check_depth` has
    checked."""
    match node:
        case tree.Not(child):
            return tree.Not(_merged(child))
        case tree.And() | tree.Or():
            kind = type(node)
            parts: list[tree.Predicate] = []
            pending: list[tree.Predicate] = [node]
            while pending:
                current = pending.pop()
                if isinstance(current, kind):
                    pending.extend(reversed(current.children))
                else:
                    parts.append(_merged(current))
            return kind(tuple(parts))
    return node


_parser_lock = threading.Lock()
_parser_value: Lark | None = None


def _parser() -> Lark:
    """The LALR parser, created at first use. Parsing keeps its state on the stack and is thread-safe."""
    global _parser_value
    with _parser_lock:
        if _parser_value is None:
            grammar = files("hms_cache.expressions").joinpath("filter_grammar.lark").read_text(encoding="utf-8")
            _parser_value = Lark(grammar, parser="lalr", lexer="contextual", transformer=_TreeBuilder(), cache=False)
        return _parser_value


def _fail(message: str) -> NoReturn:
    raise FilterSyntaxError(ERROR_PREFIX + message)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


@v_args(inline=True)
class _TreeBuilder(Transformer[Token, Any]):
    """Builds nodes while the parser reduces, so that no parse tree has to be walked recursively."""

    def or_expression(self, *children: tree.Predicate) -> tree.Predicate:
        return tree.Or(children)

    def and_expression(self, *children: tree.Predicate) -> tree.Predicate:
        return tree.And(children)

    def not_(self, child: tree.Predicate) -> tree.Predicate:
        return tree.Not(child)

    def comparison(self, key: tree.Column, operator: Token, constant: tree.Constant) -> tree.Predicate:
        return tree.Comparison(self._operator(operator), key, constant)

    def reverse_comparison(self, constant: tree.Constant, operator: Token, key: tree.Column) -> tree.Predicate:
        return tree.Comparison(self._operator(operator), constant, key)

    def _operator(self, token: Token) -> tree.ComparisonOperator:
        operator = _OPERATORS.get(str(token))
        if operator is None:
            _fail(f"Unsupported comparison operator: {token}")
        return operator

    def like(self, key: tree.Column, _like: Token, constant: tree.Constant) -> tree.Predicate:
        return tree.Like(key, constant)

    def reverse_like(self, constant: tree.Constant, _like: Token, key: tree.Column) -> tree.Predicate:
        return tree.Like(constant, key)

    def between(self, key: tree.Column, lower: tree.Constant, upper: tree.Constant) -> tree.Predicate:
        return tree.Between(key, lower, upper)

    def not_between(self, key: tree.Column, lower: tree.Constant, upper: tree.Constant) -> tree.Predicate:
        return tree.Not(tree.Between(key, lower, upper))

    def in_(self, key: tree.Column, values: tuple[tree.Constant, ...]) -> tree.Predicate:
        return tree.In(key, values)

    def not_in(self, key: tree.Column, values: tuple[tree.Constant, ...]) -> tree.Predicate:
        return tree.Not(tree.In(key, values))

    def in_structs(
        self, keys: tuple[tree.Column, ...], structs: tuple[tuple[tree.Constant, ...], ...]
    ) -> tree.Predicate:
        for struct in structs:
            if len(struct) != len(keys):
                names = ", ".join(key.name for key in keys)
                values = ", ".join(str(constant.value) for constant in struct)
                _fail(f"Struct key [{names}] and value [{values}] sizes do not match.")
        alternatives = tuple(
            tree.And(
                tuple(
                    tree.Comparison(tree.ComparisonOperator.EQUAL, key, value)
                    for key, value in zip(keys, struct, strict=True)
                )
            )
            for struct in structs
        )
        return tree.Or(alternatives)

    def not_in_structs(
        self, keys: tuple[tree.Column, ...], structs: tuple[tuple[tree.Constant, ...], ...]
    ) -> tree.Predicate:
        return tree.Not(self.in_structs(keys, structs))

    def keys(self, *keys: tree.Column) -> tuple[tree.Column, ...]:
        return keys

    def structs(self, *structs: tuple[tree.Constant, ...]) -> tuple[tuple[tree.Constant, ...], ...]:
        return structs

    def struct(self, values: tuple[tree.Constant, ...]) -> tuple[tree.Constant, ...]:
        return values

    def constants(self, *constants: tree.Constant) -> tuple[tree.Constant, ...]:
        return constants

    def plain_key(self, name: Token) -> tree.Column:
        return tree.Column(str(name))

    def quoted_key(self, name: Token) -> tree.Column:
        return tree.Column(str(name)[1:-1].replace("``", "`"))

    def string(self, *parts: Token) -> tree.Constant:
        return tree.Constant(_unquoted("".join(parts)))

    def integer(self, digits: Token) -> tree.Constant:
        return self._integer(str(digits))

    def negative_integer(self, _minus: Token, digits: Token) -> tree.Constant:
        return self._integer("-" + digits)

    def _integer(self, text: str) -> tree.Constant:
        # 19 digits represent every bigint. Java allows leading zeros; the length limit keeps int() cheap.
        if len(text) > 4096 or not _MIN_LONG <= (value := int(text)) <= _MAX_LONG:
            _fail(f'For input string: "{_shortened(text)}"')
        return tree.Constant(value)

    def date(self, text: Token) -> tree.Constant:
        value = _unquoted(str(text))
        if not _is_calendar(value, "%Y-%m-%d", 10):
            _fail(f"Text '{_shortened(value)}' could not be parsed as a date")
        return tree.Constant(value)

    def timestamp(self, text: Token) -> tree.Constant:
        value = _unquoted(str(text))
        if not _is_calendar(value, "%Y-%m-%d %H:%M:%S", 19):
            _fail(f"Text '{_shortened(value)}' could not be parsed as a timestamp")
        return tree.Constant(value)


def _is_calendar(text: str, pattern: str, length: int) -> bool:
    if len(text) != length:
        return False
    try:
        datetime.datetime.strptime(text, pattern)
    except ValueError:
        return False
    return True
