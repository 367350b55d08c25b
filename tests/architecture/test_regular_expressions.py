"""No text makes a regular expression run away: `re` compiles none of clients, and ours cannot backtrack far."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from lark import Lark

from hms_cache.store.properties.selection import _parser as selection_parser

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "hms_cache"
FUNCTIONS = {"compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
#: Globs that operators write, of which fnmatch makes expressions that never try a star again.
#: Rules for names of principals are operators', too, and those names are short.
#: In config/secrets.py: texts that are escaped.
OF_OPERATORS = {"authentication/local_names.py", "cache/policy.py", "config/secrets.py"}
#: What these read is the answer of a database to a question about its own schema, or of a program that we start.
OF_TRUSTED_TEXT = {"store/engine/inspection.py", "store/installation/check.py", "cli/demo/java.py", "app/database.py"}
SAMPLES = [*map(chr, range(128)), "é", "\u2028"]


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Those whose text names `re`: to parse the others takes seconds."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if "thrift_gen" not in path.parts and re.search(r"\bre\b", text := path.read_text(encoding="utf-8")):
            yield path.relative_to(PACKAGE).as_posix(), ast.parse(text)


def calls_of_re(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FUNCTIONS:
            value = node.func.value
            if isinstance(value, ast.Name) and value.id == "re":
                yield node


def made_while_running(tree: ast.Module) -> list[int]:
    """Lines that hand `re` a pattern which is not written in the module."""
    found = []
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            found += [call.lineno for call in calls_of_re(function) if not isinstance(call.args[0], ast.Constant)]
    return sorted(set(found))


def test_no_pattern_is_compiled_that_is_not_our_own() -> None:
    found = {name: lines for name, tree in modules() if (lines := made_while_running(tree))}
    assert set(found) == OF_OPERATORS, found


def test_nobody_imports_parts_of_re() -> None:
    """`from re import compile` would hide from the test above."""
    for name, tree in modules():
        assert not [
            node.lineno for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "re"
        ], name


def constant_expressions() -> Iterator[tuple[str, str, int]]:
    """(where, pattern, flags) of all that is compiled by us."""
    for name, tree in modules():
        if name in OF_TRUSTED_TEXT or name in OF_OPERATORS:
            continue
        if any(True for _ in calls_of_re(tree)):
            module = importlib.import_module("hms_cache." + name.removesuffix(".py").replace("/", "."))
            for variable, value in vars(module).items():
                if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                    yield f"{name}:{variable}", value.pattern, value.flags
        for call in calls_of_re(tree):
            if isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str):
                yield f"{name}:{call.lineno}", call.args[0].value, 0
    grammar = files("hms_cache.expressions").joinpath("filter_grammar.lark").read_text(encoding="utf-8")
    for where, lark in (("filter_grammar.lark", Lark(grammar, parser="lalr")), ("selection.py", selection_parser())):
        for terminal in lark.terminals:
            yield f"{where}:{terminal.name}", terminal.pattern.to_regexp(), 0


def weaknesses(pattern: str, flags: int = 0) -> list[str]:
    return list(_sequence(list(parser.parse(pattern, flags & ~re.DEBUG)), within_loop=False))


def _sequence(items: list[Any], within_loop: bool) -> Iterator[str]:
    loops: list[set[str]] = []
    for operation, argument in _flat(items):
        unbounded = _unbounded(operation, argument)
        if operation is codes.MAX_REPEAT or operation is codes.MIN_REPEAT:
            if unbounded and within_loop:
                yield "an unbounded repetition within another"
            yield from _sequence(list(argument[2]), within_loop or unbounded)
        elif operation is codes.POSSESSIVE_REPEAT:
            # What it took is never given back, so that an outer repetition cannot share it out anew.
            yield from _sequence(list(argument[2]), within_loop=False)
        else:
            for inner in _inner(operation, argument):
                yield from _sequence(inner, within_loop)
        characters = _characters([(operation, argument)])
        if unbounded:
            if any(earlier & characters for earlier in loops):
                yield "two unbounded repetitions that can share out the same text"
            if argument[0]:
                loops = [earlier for earlier in loops if earlier & characters]
            loops.append(characters)
        elif not _may_be_empty(operation, argument):
            loops = [earlier for earlier in loops if earlier & characters]


def _flat(items: list[Any]) -> Iterator[Any]:
    """The items with those of groups in the place of the group."""
    for operation, argument in items:
        if operation is codes.SUBPATTERN:
            yield from _flat(list(argument[3]))
        else:
            yield operation, argument


def _unbounded(operation: Any, argument: Any) -> bool:
    return operation in (codes.MAX_REPEAT, codes.MIN_REPEAT) and argument[1] is codes.MAXREPEAT


def _inner(operation: Any, argument: Any) -> list[list[Any]]:
    if operation is codes.SUBPATTERN:
        return [list(argument[3])]
    if operation is codes.BRANCH:
        return [list(branch) for branch in argument[1]]
    if operation in (codes.ASSERT, codes.ASSERT_NOT):
        return [list(argument[1])]
    if operation is codes.ATOMIC_GROUP:
        return [list(argument)]
    if operation in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        return [list(argument[2])]
    assert operation in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN, codes.AT), operation
    return []


def _may_be_empty(operation: Any, argument: Any) -> bool:
    if operation in (codes.AT, codes.ASSERT, codes.ASSERT_NOT):
        return True
    if operation in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        return bool(argument[0] == 0)
    inner = _inner(operation, argument)
    return bool(inner) and any(all(_may_be_empty(*item) for item in branch) for branch in inner)


def _characters(items: list[Any]) -> set[str]:
    """Of the samples, those that any part of it may match."""
    found: set[str] = set()
    for operation, argument in items:
        if operation is codes.LITERAL:
            found.add(chr(argument))
        elif operation is codes.NOT_LITERAL:
            found |= set(SAMPLES) - {chr(argument)}
        elif operation is codes.ANY:
            found |= set(SAMPLES)
        elif operation is codes.IN:
            found |= _class(argument)
        elif operation not in (codes.AT, codes.ASSERT, codes.ASSERT_NOT):
            for inner in _inner(operation, argument):
                found |= _characters(inner)
    return found


def _class(argument: Any) -> set[str]:
    found: set[str] = set()
    negated = False
    for operation, value in argument:
        if operation is codes.NEGATE:
            negated = True
        elif operation is codes.LITERAL:
            found.add(chr(value))
        elif operation is codes.RANGE:
            found |= {sample for sample in SAMPLES if value[0] <= ord(sample) <= value[1]}
        else:
            letter = {codes.CATEGORY_DIGIT: "d", codes.CATEGORY_SPACE: "s", codes.CATEGORY_WORD: "w"}
            opposite = {codes.CATEGORY_NOT_DIGIT: "D", codes.CATEGORY_NOT_SPACE: "S", codes.CATEGORY_NOT_WORD: "W"}
            found |= {sample for sample in SAMPLES if re.match("\\" + {**letter, **opposite}[value], sample)}
    return set(SAMPLES) - found if negated else found


def test_no_expression_of_ours_tries_a_text_twice() -> None:
    found = {
        (where, pattern): weak
        for where, pattern, flags in constant_expressions()
        if (weak := weaknesses(pattern, flags))
    }
    assert not found, "\n".join(f"{where}: {pattern}: {weak}" for (where, pattern), weak in found.items())


@pytest.mark.parametrize(
    "pattern", ["(a*)*b", "(?:a|b+)*c", "a*a*b", r"\s*(x)?\s*y", "([^/]+)=([^/]+)", "(a+)+", ".*,.*", "(?:ab*?)*c"]
)
def test_weak_expressions_are_found(pattern: str) -> None:
    assert weaknesses(pattern)


@pytest.mark.parametrize(
    "pattern", ["a*b*", r"\s*+(x)?\s*y", "[^=]+=[^=]+", "'(?:[^'\\\\]++|\\\\.)*+'", "(?:ab)*", r"\d+\.\d+"]
)
def test_sound_expressions_are_let_through(pattern: str) -> None:
    assert not weaknesses(pattern)


def test_expressions_are_found_at_all() -> None:
    assert len(list(constant_expressions())) > 50
    source = "import re\ndef f(p):\n    re.compile(p)\n    re.sub('a' + p, '', '')\n    re.match('a', p)\n"
    assert made_while_running(ast.parse(source)) == [3, 4]
