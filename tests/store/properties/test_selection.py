"""Conditions on properties, evaluated as by JEXL 3.3."""

from __future__ import annotations

import pytest

from hms_cache.store.properties.selection import SelectionError, matches, parse_expression, project

HAS = {"policy": "snappy", "fill": "93", "ratio": "0.5", "on": "true", "off": "false", "a.b": "dotted", "nothing": ""}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("policy == 'snappy'", True),
        ('policy eq "zlib"', False),
        ("policy != 'zlib' && fill > 92", True),
        ("fill ge 94 or ratio lt 1", True),
        ("fill > '1000'", True),
        ("!(fill < 9) and not off", True),
        ("on && !off", True),
        ("on == true", True),
        ("absent == null && policy ne null", True),
        ("absent > 5 || absent < 5 || absent == 5", False),
        ("policy =~ 's.*y' && policy !~ 's'", True),
        ("policy =~ ['zlib', 'snappy']", True),
        ("fill =~ [93]", True),
        ("policy =^ 'sn' && policy =$ 'py' && policy !^ 'x' && policy !$ 'x'", True),
        ("absent =^ 'x'", False),
        ("1 + 2 * 3 - 8 / 3 % 2 == 7", True),
        ("-fill + 100 == 7 && 7 mod 4 == 3 && 9 div 2 == 4 && -7 % 4 == -3", True),
        ("fill + ratio == 93.5", True),
        ("policy + 1 == 'snappy1'", True),
        ("empty absent && empty nothing && empty(nothing) && !empty policy && size(policy) == 6", True),
        ("a.b == 'dotted'", True),
        ("orange == null && nota == null && eqx == null", True),
        ("'it\\'s' == \"it's\"", True),
        ("1e2 == 100L && 1.5f == 1.5", True),
        ("policy", False),
        ("true", True),
        (" or ".join(["fill == 1"] * 400) + " or on", True),
        ("(" * 2000 + "on" + ")" * 2000 + " && on", True),
    ],
)
def test_conditions(expression: str, expected: bool) -> None:
    assert matches(parse_expression(expression), HAS) is expected


@pytest.mark.parametrize("expression", ["", "policy ==", "a = 'x'", "a b", "(a", "'a", "#", "x" * 10_001, "{a}"])
def test_what_cannot_be_read(expression: str) -> None:
    with pytest.raises(SelectionError):
        parse_expression(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "policy > 5",
        "fill / 0 == 1",
        "absent + 1 == 1",
        "policy =~ '('",
        "!" * 4000 + "on",
    ],
)
def test_what_cannot_be_evaluated(expression: str) -> None:
    with pytest.raises(SelectionError):
        matches(parse_expression(expression), HAS)


def test_projection() -> None:
    assert project(["policy", "absent"], HAS) == {"policy": "snappy"}
    assert project(["{'p': policy, 'n': fill + 1, 'o': fill > 5, 'x': absent}"], HAS) == {
        "p": "snappy",
        "n": "94",
        "o": "true",
    }
    assert project(["{:}", "fill"], HAS) == {"fill": "93"}
