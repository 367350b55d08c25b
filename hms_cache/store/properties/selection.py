"""Selects property maps and properties: the subset of Apache JEXL that conditions on properties need.

Comparisons, ``&& || !`` and their words, arithmetic, ``=~`` (regular expression or list), ``=^`` and ``=$``, ``empty``,
``size()``, literals, lists and maps. A property that a map does not have is null. A text that contains a number is
compared with numbers as a number, as in JEXL. Facts: `PropertyManager.selectProperties` (Hive 4.0.1), JEXL 3.3.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedInput, v_args
from lark.exceptions import VisitError

from hms_cache.input_limits import exceeded, input_limits
from hms_cache.patterns.java_regex import JavaRegexError, java_regex

Properties = Mapping[str, str]
Expression = Callable[[Properties], Any]

_LONGEST_KEPT_TEXT = 1_000
_LARGEST_NUMBER_BITS = 4_096
_LONGEST_NUMBER = 1_000
"""Maximum length of a number in an expression, in characters."""

_KEYWORDS = "true|false|null|and|or|not|empty|size|eq|ne|le|ge|lt|gt|div|mod"
_PART = "[A-Za-z_$@][A-Za-z0-9_$@]*"

_GRAMMAR = rf"""
?start: disjunction
?disjunction: conjunction | conjunction (("||" | "or") conjunction)+ -> either
?conjunction: comparison | comparison (("&&" | "and") comparison)+ -> both
?comparison: sum | sum COMPARISON sum -> compare
?sum: product | product ((PLUS | MINUS) product)+ -> calculate
?product: unary | unary (FACTOR unary)+ -> calculate
?unary: atom | ("!" | "not") unary -> negate | MINUS unary -> minus | "empty" unary -> empty
?atom: NUMBER -> number | STRING -> string | "true" -> yes | "false" -> no | "null" -> nothing
    | NAME -> property | "size" "(" disjunction ")" -> size | "(" disjunction ")"
    | "[" "]" -> items | "[" disjunction ("," disjunction)* "]" -> items
    | "{{" ":" "}}" -> mapping | "{{" pair ("," pair)* "}}" -> mapping
pair: disjunction ":" disjunction
COMPARISON: "==" | "!=" | "<=" | ">=" | "=~" | "!~" | "=^" | "!^" | "=$" | "!$" | "<" | ">"
    | /(eq|ne|le|ge|lt|gt)(?![A-Za-z0-9_$])/
PLUS: "+"
MINUS: "-"
FACTOR: "*" | "/" | "%" | /(div|mod)(?![A-Za-z0-9_$])/
NUMBER: /\d+(\.\d+)?([eE][+-]?\d+)?[lLhHdDfFbB]?/
STRING: /'(?:\\.|[^'\\]++)*+'|"(?:\\.|[^"\\]++)*+"/
NAME: /(?!(?:{_KEYWORDS})\b){_PART}(?:\.{_PART})*+/
%import common.WS
%ignore WS
"""

_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_WORDS = {"eq": "==", "ne": "!=", "le": "<=", "ge": ">=", "lt": "<", "gt": ">", "div": "/", "mod": "%"}


class SelectionError(ValueError):
    """The expression cannot be parsed or evaluated."""


def parse_expression(text: str) -> Expression:
    """Parses an expression to a function of a map's properties, which raises SelectionError for unsuitable types.

    :raises SelectionError: it cannot be parsed.
    """
    most = input_limits().properties_expression_characters
    if len(text) > most:
        setting = exceeded("properties_expression_characters")
        raise SelectionError(f"an expression of {len(text)} characters; at most {most} are read ({setting})")
    return _parsed_and_kept(text) if len(text) <= _LONGEST_KEPT_TEXT else _parsed(text)


def _parsed(text: str) -> Expression:
    try:
        parsed: Any = _parser().parse(text)
    except UnexpectedInput as error:
        raise SelectionError(f"parsing error in '{text[:200]}' at column {getattr(error, 'column', 1)}") from error
    except VisitError as error:
        raise SelectionError(f"'{text[:200]}': {error.orig_exc}") from error

    def evaluate(has: Properties) -> Any:
        try:
            return parsed(has)
        except RecursionError as error:
            raise SelectionError("an expression with too many parentheses") from error
        except SelectionError:
            raise
        except (ArithmeticError, TypeError, ValueError) as error:
            raise SelectionError(f"'{text[:200]}' cannot be evaluated: {error}") from error

    return evaluate


_parsed_and_kept = lru_cache(maxsize=128)(_parsed)


def matches(expression: Expression, properties: Properties) -> bool:
    """Whether the expression is true for the map; any other result than true counts as false.

    :raises SelectionError: types do not fit.
    """
    return expression(properties) is True


def project(names: list[str], properties: Properties) -> dict[str, str]:
    """The named properties that the map has. A map literal among the names adds its entries."""
    found: dict[str, str] = {}
    for name in names:
        if name in properties:
            found[name] = properties[name]
        elif name.lstrip().startswith("{"):
            value = parse_expression(name)(properties)
            try:
                found.update({str(key): _shown(each) for key, each in value.items() if each is not None})
            except (AttributeError, ValueError) as error:
                raise SelectionError(f"{name[:200]!r} cannot be shown as a map: {error}") from error
    return found


@lru_cache(maxsize=1)
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", transformer=_Builder())


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(value: Any) -> float | int:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (int, float)):
        return value
    try:
        return int(value)
    except (TypeError, ValueError):
        pass
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise SelectionError(f"{value!r} cannot be taken as a number") from error


def _is_true(value: Any) -> bool:
    if isinstance(value, str):
        return value.lower() == "true"
    return bool(value)


def _compare(operator: str, left: Any, right: Any) -> bool:
    if operator in ("==", "!="):
        return _equal(left, right) is (operator == "==")
    if operator in ("=~", "!~"):
        return _matches(left, right) is (operator == "=~")
    if operator in ("=^", "!^", "=$", "!$"):
        if left is None or right is None:
            return False
        test = str.startswith if operator[1] == "^" else str.endswith
        return test(str(left), str(right)) is (operator[0] == "=")
    if left is None or right is None:
        return False
    if not (isinstance(left, str) and isinstance(right, str)):
        left, right = _number(left), _number(right)
    answers = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}
    return bool(answers[operator])


def _equal(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is right
    if isinstance(left, bool) or isinstance(right, bool):
        return _is_true(left) is _is_true(right)
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    if isinstance(left, (int, float)) or isinstance(right, (int, float)):
        return _number(left) == _number(right)
    return bool(left == right)


def _matches(value: Any, pattern: Any) -> bool:
    if isinstance(pattern, (list, dict)):
        return any(_equal(value, each) for each in pattern)
    if value is None or pattern is None:
        return value is pattern
    try:
        return java_regex(str(pattern)).matches(str(value))
    except JavaRegexError as error:
        raise SelectionError(f"no regular expression: {error}") from error


def _calculate(operator: str, left: Any, right: Any) -> Any:
    if left is None or right is None:
        raise SelectionError("null cannot be calculated with")
    if operator == "+" and (isinstance(left, str) or isinstance(right, str)):
        try:
            return _number(left) + _number(right)
        except SelectionError:
            text = f"{left}{right}"
            most = input_limits().properties_text_characters
            if len(text) > most:
                setting = exceeded("properties_text_characters")
                raise SelectionError(f"a text of more than {most} characters ({setting})") from None
            return text
    a, b = _number(left), _number(right)
    if operator in "/%" and b == 0:
        raise SelectionError("/ by zero")
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    if operator == "*":
        if isinstance(a, int) and isinstance(b, int) and a.bit_length() + b.bit_length() > _LARGEST_NUMBER_BITS:
            raise SelectionError("a number that is too large")
        return a * b
    # Java truncates integer division towards zero, and a remainder has the sign of the dividend.
    is_whole = isinstance(a, int) and isinstance(b, int)
    if operator == "/":
        return math.trunc(a / b) if is_whole else a / b
    return int(math.fmod(a, b)) if is_whole else math.fmod(a, b)


@v_args(inline=True)
class _Builder(Transformer[Token, Expression]):
    """Creates a function for each node."""

    def either(self, *operands: Expression) -> Expression:
        return lambda has: any(_is_true(operand(has)) for operand in operands)

    def both(self, *operands: Expression) -> Expression:
        return lambda has: all(_is_true(operand(has)) for operand in operands)

    def negate(self, operand: Expression) -> Expression:
        return lambda has: not _is_true(operand(has))

    def minus(self, sign: Token, operand: Expression) -> Expression:
        return lambda has: -_number(operand(has))

    def compare(self, left: Expression, operator: Token, right: Expression) -> Expression:
        name = _WORDS.get(str(operator), str(operator))
        return lambda has: _compare(name, left(has), right(has))

    def calculate(self, first: Expression, *rest: Any) -> Expression:
        steps = [
            (_WORDS.get(str(sign), str(sign)), operand) for sign, operand in zip(rest[::2], rest[1::2], strict=True)
        ]

        def evaluate(has: Properties) -> Any:
            value = first(has)
            for operator, operand in steps:
                value = _calculate(operator, value, operand(has))
            return value

        return evaluate

    def empty(self, operand: Expression) -> Expression:
        return lambda has: operand(has) in (None, "", [], {})

    def size(self, operand: Expression) -> Expression:
        return lambda has: len(operand(has) or "")

    def number(self, token: Token) -> Expression:
        text = token.rstrip("lLhHdDfFbB")
        if len(text) > _LONGEST_NUMBER:
            raise SelectionError(f"a number of {len(text)} characters")
        value: float | int = int(text) if text.isdigit() else float(text)
        return lambda has: value

    def string(self, token: Token) -> Expression:
        value = _ESCAPED.sub(r"\1", token[1:-1])
        return lambda has: value

    def yes(self) -> Expression:
        return lambda has: True

    def no(self) -> Expression:
        return lambda has: False

    def nothing(self) -> Expression:
        return lambda has: None

    def property(self, token: Token) -> Expression:
        name = str(token)
        return lambda has: has.get(name)

    def items(self, *items: Expression) -> Expression:
        return lambda has: [item(has) for item in items]

    def pair(self, key: Expression, value: Expression) -> Any:
        return key, value

    def mapping(self, *pairs: Any) -> Expression:
        return lambda has: {key(has): value(has) for key, value in pairs}
