"""A simple evaluator of filter trees, one row at a time, in SQL's three-valued logic: the oracle for the fast one.

It shares nothing with `hms_cache.expressions` except the tree.
"""

from __future__ import annotations

import datetime
import re
import struct
from decimal import Decimal

from hms_cache.expressions import tree as t

DEFAULT = "__HIVE_DEFAULT_PARTITION__"


def truth(node: t.Predicate, keys: list[tuple[str, str]], row: list[str]) -> bool | None:
    if isinstance(node, t.And):
        answers = [truth(child, keys, row) for child in node.children]
        return False if False in answers else None if None in answers else True
    if isinstance(node, t.Or):
        answers = [truth(child, keys, row) for child in node.children]
        return True if True in answers else None if None in answers else False
    if isinstance(node, t.Not):
        answer = truth(node.child, keys, row)
        return None if answer is None else not answer
    if isinstance(node, t.Comparison):
        sign = node.operator.value
        if isinstance(node.left, t.Column):
            return _compare(sign, *_pair(node.left, node.right, keys, row))
        key, literal = _pair(node.right, node.left, keys, row)
        return _compare(sign, literal, key)
    if isinstance(node, t.Between):
        low = _compare(">=", *_pair(node.operand, node.lower, keys, row))
        high = _compare("<=", *_pair(node.operand, node.upper, keys, row))
        return False if False in (low, high) else None if None in (low, high) else True
    if isinstance(node, t.In):
        answers = [_compare("=", *_pair(node.operand, value, keys, row)) for value in node.values]
        return True if True in answers else None if None in answers else False
    if isinstance(node, t.Like):
        position = [name.lower() for name, _ in keys].index(node.operand.name.lower())
        return _like(row[position], node.pattern.value)
    raise AssertionError(node)


def _pair(column, constant, keys, row):
    position = [name.lower() for name, _ in keys].index(column.name.lower())
    text, hive_type, literal = row[position], keys[position][1].split("(")[0], constant.value
    if literal == DEFAULT or hive_type in ("string", "varchar", "char"):
        return text, literal
    if hive_type in ("tinyint", "smallint", "int", "bigint"):
        return _integer(text), literal
    if hive_type == "date":
        wanted = _date(literal)
        return (text, literal) if wanted is None else (_date(text), wanted)
    if hive_type == "timestamp":
        wanted = _timestamp(literal)
        return (text, literal) if wanted is None else (_timestamp(text), wanted)
    if hive_type == "boolean":
        spelt = {"true": True, "false": False}
        return spelt.get(text.lower()), spelt[literal.lower()]
    convert = {"decimal": Decimal, "double": float, "float": _single}[hive_type]
    try:
        key = convert(text)
    except (ValueError, ArithmeticError):
        key = None
    return key, convert(str(literal))


def _compare(sign, left, right):
    if left is None or right is None:
        return None
    return {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[sign]


def _integer(text):
    if not re.fullmatch("[-+]?[0-9]+", text):
        return None
    return int(text) if -(2**63) <= int(text) < 2**63 else None


def _single(text):
    return struct.unpack("f", struct.pack("f", float(text)))[0]


def _date(text):
    parts = re.fullmatch(r"(\d\d\d\d)-(\d\d?)-(\d\d?)([ T].*)?", text, re.ASCII)
    try:
        return parts and datetime.date(int(parts[1]), int(parts[2]), int(parts[3]))
    except ValueError:
        return None


def _timestamp(text):
    for pattern in ("%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d"):
        try:
            return datetime.datetime.strptime(text, pattern)
        except ValueError:
            continue
    return None


def _like(text, pattern):
    """By dynamic programming over (text, pattern) suffixes instead of regular expressions."""
    tokens, position = [], 0
    while position < len(pattern):
        character, pair = pattern[position], pattern[position : position + 2]
        if len(pair) == 2 and character == "\\" and pair[1] in "%_\\.*":
            tokens.append(("is", pair[1]))
            position += 2
            continue
        if pair == ".*":
            tokens.append(("many", ""))
            position += 2
            continue
        if character == "%":
            tokens.append(("many", ""))
        elif character in "_.":
            tokens.append(("one", ""))
        else:
            tokens.append(("is", character))
        position += 1
    reachable = {0}
    for kind, character in tokens:
        if kind == "many":
            reachable = set(range(min(reachable), len(text) + 1)) if reachable else set()
        elif kind == "one":
            reachable = {at + 1 for at in reachable if at < len(text)}
        else:
            reachable = {at + 1 for at in reachable if at < len(text) and text[at] == character}
    return len(text) in reachable
