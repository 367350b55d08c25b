r"""A condition for the database that may select too many rows, but never too few.

If a table's partitions are not in memory, this reduces what the database returns, which is then filtered exactly by
`evaluate`. It does not depend on the database's types, collations or padding:

* Equality of text holds under every collation, if only ASCII texts are compared (other characters may not exist in the
  column's character set, which is an error in MySQL) without NUL, which PostgreSQL does not support.
* Order of text needs a binary collation (`text_order=True`): SQLite's, MySQL's `_bin` as in Hive's schema, PostgreSQL's
  `"C"` (pass the column with it). MySQL's padding with blanks changes the order of values that continue the bound with
  control characters, so bounds are inclusive, and a lower bound also admits texts that begin with it.
* Numbers and dates are compared with all spellings of the value (`1`, `01`, `+1`), ranges of dates by year.
* In an expression tree only text keys are used, since undecided rows must be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlalchemy import ColumnElement, and_, false, or_

from hms_cache.expressions import bound as nodes
from hms_cache.expressions.bound import Bound
from hms_cache.expressions.key_types import KeyKind, KeyValue, date_of
from hms_cache.expressions.name_prefilter import LONGEST_LIKE
from hms_cache.expressions.tree import ComparisonOperator

MAX_TERMS = 200
"""Maximum number of comparisons in one condition: SQLite parses a chain of ORs with one level per term, up to 1,000."""
MAX_LIST_VALUES = 1_000
"""Maximum number of values in an IN list: SQLite binds 32,766 values per statement, and long lists cost more than they
save."""

_LOWER = (ComparisonOperator.GREATER, ComparisonOperator.GREATER_OR_EQUAL)
_UPPER = (ComparisonOperator.LESS, ComparisonOperator.LESS_OR_EQUAL)


def sql_prefilter(
    bound: Bound, key_value_column: Callable[[int], ColumnElement[str]], text_order: bool = False
) -> ColumnElement[bool] | None:
    """A condition that holds for every row that `bound` selects or might select; None if none would be useful.

    `key_value_column(index)` is the stored text of a key (a join of PARTITION_KEY_VALS with that INTEGER_IDX).
    `text_order`: the column is compared byte by byte.
    """
    prefilter = _Prefilter(bound, key_value_column, text_order)
    condition = prefilter.condition(bound.root)
    return None if prefilter.terms > MAX_TERMS else condition


class _Prefilter:
    def __init__(self, bound: Bound, column: Callable[[int], ColumnElement[str]], text_order: bool) -> None:
        self._bound = bound
        self._column = column
        self._text_order = text_order
        self.terms = 0

    def condition(self, node: nodes.BoundNode) -> ColumnElement[bool] | None:
        match node:
            case nodes.BoundAnd(children):
                conditions = [c for c in map(self.condition, children) if c is not None]
                return and_(*conditions) if conditions else None
            case nodes.BoundOr(children):
                return self._any_of(map(self.condition, children))
            case nodes.BoundTruth(False):
                return false()
            case nodes.BoundComparison(index, kind, ComparisonOperator.EQUAL, value):
                return self._one_of(index, kind, [value])
            case nodes.BoundIn(index, kind, values, False):
                return self._one_of(index, kind, sorted(values))
            case nodes.BoundComparison(index, kind, comparison, value):
                return self._range(index, kind, comparison, value)
            case nodes.BoundNullTest(index, KeyKind.TEXT, False):
                return self._one_text_of(index, [self._bound.default_partition_name])
            case nodes.BoundLike(index, pattern, False):
                return self._begins_with(index, pattern.prefix)
            case _:
                return None

    def _any_of(self, conditions: Iterable[ColumnElement[bool] | None]) -> ColumnElement[bool] | None:
        found: list[ColumnElement[bool]] = []
        for condition in conditions:
            if condition is None:
                return None
            found.append(condition)
        return or_(*found)

    def _one_of(self, index: int, kind: KeyKind, values: list[KeyValue]) -> ColumnElement[bool] | None:
        if len(values) > MAX_LIST_VALUES:
            return None
        if kind is KeyKind.TEXT:
            return self._one_text_of(index, [str(value) for value in values])
        if self._bound.is_expression:
            return None
        if kind is KeyKind.INTEGER:
            return self._one_integer_of(index, [int(value) for value in values])
        if kind is KeyKind.DATE and len(values) <= MAX_TERMS:
            return or_(*(self._date(index, int(value)) for value in values))
        return None

    def _one_text_of(self, index: int, texts: list[str]) -> ColumnElement[bool] | None:
        if not all(map(_is_plain, texts)):
            return None
        self.terms += 1
        column = self._column(index)
        return column == texts[0] if len(texts) == 1 else column.in_(texts)

    def _one_integer_of(self, index: int, values: list[int]) -> ColumnElement[bool]:
        """`[+-]`, zeros, digits. For few values, padded spellings are listed separately."""
        column = self._column(index)
        spellings: list[ColumnElement[bool]] = [column.in_([str(value) for value in values])]
        if len(values) <= 5:
            for value in values:
                digits = str(abs(value))
                spellings += [column.like(f"{start}%{digits}") for start in _signs(value)]
        else:
            spellings += [column.like(f"{start}%") for start in ("0", "+", "-0")]
        self.terms += len(spellings)
        return or_(*spellings)

    def _date(self, index: int, days: int) -> ColumnElement[bool]:
        """The spellings accepted in the lenient mode: with or without leading zeros, with or without a time of day."""
        date = date_of(days)
        column = self._column(index)
        year, month, day = f"{date.year:04}", f"{date.month:02}", f"{date.day:02}"
        spellings = [column.like(f"{year}-{month}-{day}%")]
        if date.month < 10:
            spellings.append(column.like(f"{year}-{date.month}-%"))
        if date.day < 10:
            spellings.append(column.like(f"{year}-{month}-{date.day}%"))
        self.terms += len(spellings)
        return or_(*spellings)

    def _range(
        self, index: int, kind: KeyKind, comparison: ComparisonOperator, value: KeyValue
    ) -> ColumnElement[bool] | None:
        if not self._text_order or comparison not in _LOWER + _UPPER:
            return None
        if kind is KeyKind.DATE and not self._bound.is_expression:
            year = f"{date_of(int(value)).year:04}"
            self.terms += 1
            return self._column(index) >= year if comparison in _LOWER else self._column(index) <= year + "~"
        text = str(value)
        if kind is not KeyKind.TEXT or not text.isascii() or any(character < " " for character in text):
            return None
        self.terms += 1
        column = self._column(index)
        if comparison in _UPPER:
            return column <= text
        return or_(column >= text, column.startswith(text[:LONGEST_LIKE], autoescape=True))

    def _begins_with(self, index: int, prefix: str) -> ColumnElement[bool] | None:
        if not prefix or not _is_plain(prefix):
            return None
        self.terms += 1
        return self._column(index).startswith(prefix[:LONGEST_LIKE], autoescape=True)


def _is_plain(text: str) -> bool:
    """Whether every database can compare the text."""
    return text.isascii() and "\0" not in text


def _signs(value: int) -> tuple[str, ...]:
    """Prefixes of spellings other than the plain one."""
    if value > 0:
        return ("0", "+")
    return ("-0",) if value < 0 else ("0", "+", "-")
