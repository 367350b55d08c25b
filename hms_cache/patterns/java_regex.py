r"""Java's regular expressions (`java.util.regex.Pattern`, Java 8 to 21), matched in whole and in linear time.

An expression becomes a nondeterministic automaton, which is run with all its states at once; sets of states that were
met are remembered with what follows them. Time: the text's length times the automaton's states at most, and
the setting `limits.regex_steps` in any case.

Understood: characters, `.`, classes with ranges, unions, `&&` and `^` (Hive's manual has `[\x20-\x7E&&[^,]]*`),
`\d \w \s \h \v` and their opposites, POSIX classes, Unicode categories, `\Q…\E`, groups of all kinds, alternatives,
greedy and reluctant quantifiers (alike, where only the whole text counts), `^ $ \A \z \Z`, the flags `i` and `s` in
front. What needs memory of the text is refused with a `JavaRegexError`: back references, lookaround, possessive
quantifiers, word boundaries.
"""

from __future__ import annotations

import sys
import unicodedata
from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple, NoReturn, TypeAlias

from hms_cache.input_limits import exceeded, input_limits

MAX_DEPTH = 100
"""Nested groups: the reader and the maker of the automaton call themselves for each."""
MAX_REMEMBERED = 10_000
"""States in the remembered sets of one expression, and sets accepted or not: a megabyte. Beyond it all are
forgotten."""

_LAST = sys.maxunicode
Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Code points: first and last of each run, ascending, apart from each other."""


class JavaRegexError(ValueError):
    """The text is no expression that is understood here, or matching takes too many steps."""


class _Set(NamedTuple):
    ranges: Ranges


class _Sequence(NamedTuple):
    parts: tuple[_Node, ...]


class _Choice(NamedTuple):
    alternatives: tuple[_Node, ...]


class _Repeat(NamedTuple):
    part: _Node
    least: int
    most: int | None


class _Edge(NamedTuple):
    at_end: bool


_Node: TypeAlias = _Set | _Sequence | _Choice | _Repeat | _Edge


@lru_cache(maxsize=16)
def java_regex(text: str) -> JavaRegex:
    """The compiled expression; recent ones are kept, in a few megabytes each at most. Raises `JavaRegexError`."""
    return JavaRegex(text)


class JavaRegex:
    """A compiled expression. Any thread may use it: what is remembered is put in whole."""

    def __init__(self, text: str, *, any_case: bool = False) -> None:
        """`any_case`: CASE_INSENSITIVE. Raises `JavaRegexError`."""
        most = input_limits().regex_characters
        if len(text) > most:
            setting = exceeded("regex_characters")
            raise JavaRegexError(f"a regular expression of more than {most} characters ({setting})")
        self.text = text
        self._program = _Program()
        root = _Reader(text, any_case).read()
        self._begin = self._program.add(root, self._program.accept, 0)
        self._start = self._closure([self._begin], at_start=True, at_end=False)
        self._following: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        self._remembered = 0
        self._accepting: dict[frozenset[int], bool] = {}

    def matches(self, text: str) -> bool:
        """Whether the expression matches the whole text. Raises `JavaRegexError` beyond `limits.regex_steps`."""
        if not text:
            states = self._closure([self._begin], at_start=True, at_end=True)
            return self._program.accept in states
        states, following, steps = self._start, self._following, 0
        most = input_limits().regex_steps
        for character in text:
            known = following.get((states, character))
            if known is None:
                steps += len(states) + 1
                if steps > most:
                    setting = exceeded("regex_steps")
                    raise JavaRegexError(f"matching {self.text[:200]!r} takes more than {most} steps ({setting})")
                known = self._step(states, character)
                self._remembered += len(known) + 1
                if self._remembered > MAX_REMEMBERED:
                    following.clear()
                    self._remembered = len(known) + 1
                following[states, character] = known
            if not known:
                return False
            states = known
        return self._accepts(states)

    def _step(self, states: frozenset[int], character: str) -> frozenset[int]:
        point = ord(character)
        sets, targets = self._program.sets, self._program.targets
        return self._closure(
            [targets[state][0] for state in states if _contains(sets[state], point)], at_start=False, at_end=False
        )

    def _accepts(self, states: frozenset[int]) -> bool:
        known = self._accepting.get(states)
        if known is None:
            known = self._program.accept in self._closure(list(states), at_start=False, at_end=True)
            if len(states) + len(self._accepting) * 10 > MAX_REMEMBERED:
                self._accepting.clear()
            self._accepting[states] = known
        return known

    def _closure(self, states: list[int], at_start: bool, at_end: bool) -> frozenset[int]:
        """The states and all that follow without a character."""
        program, seen = self._program, set(states)
        while states:
            state = states.pop()
            edge = program.edges[state]
            if program.sets[state] is not None or (edge is not None and not (at_end if edge else at_start)):
                continue
            for target in program.targets[state]:
                if target not in seen:
                    seen.add(target)
                    states.append(target)
        return frozenset(seen)


def _contains(ranges: Ranges | None, point: int) -> bool:
    if not ranges:
        return False
    index = bisect_right(ranges, (point, _LAST)) - 1
    return index >= 0 and point <= ranges[index][1]


class _Program:
    """The automaton: of each state the characters that lead on (None: none needed), where to, and the edge it needs."""

    def __init__(self) -> None:
        self.sets: list[Ranges | None] = []
        self.targets: list[tuple[int, ...]] = []
        self.edges: list[bool | None] = []
        self._made = 0
        self._most = input_limits().regex_states
        self.accept = self._state(())

    def _state(self, targets: tuple[int, ...], ranges: Ranges | None = None, edge: bool | None = None) -> int:
        self.sets.append(ranges)
        self.targets.append(targets)
        self.edges.append(edge)
        return len(self.sets) - 1

    def add(self, node: _Node, after: int, depth: int) -> int:
        """The state from which a text that the node matches leads to `after`."""
        self._made += 1
        if self._made > self._most:
            setting = exceeded("regex_states")
            raise JavaRegexError(f"a regular expression of more than {self._most} states ({setting})")
        match node:
            case _Set(ranges):
                return self._state((after,), ranges)
            case _Edge(at_end):
                return self._state((after,), edge=at_end)
            case _Sequence(parts):
                for part in reversed(parts):
                    after = self.add(part, after, depth + 1)
                return after
            case _Choice(alternatives):
                return self._state(tuple(self.add(each, after, depth + 1) for each in alternatives))
            case _Repeat(part, least, most):
                return self._repeat(part, least, most, after, depth)

    def _repeat(self, part: _Node, least: int, most: int | None, after: int, depth: int) -> int:
        if most is None:
            loop = self._state(())
            self.targets[loop] = (self.add(part, loop, depth + 1), after)
            entry = loop
        else:
            entry, out = after, after
            for _ in range(most - least):
                entry = self._state((self.add(part, entry, depth + 1), out))
        for _ in range(least):
            entry = self.add(part, entry, depth + 1)
        return entry


# Sets of characters


def _union(*sets: Ranges) -> Ranges:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(run for ranges in sets for run in ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return tuple(merged)


def _complement(ranges: Ranges) -> Ranges:
    found, next_free = [], 0
    for first, last in ranges:
        if first > next_free:
            found.append((next_free, first - 1))
        next_free = last + 1
    if next_free <= _LAST:
        found.append((next_free, _LAST))
    return tuple(found)


def _intersection(left: Ranges, right: Ranges) -> Ranges:
    return _complement(_union(_complement(left), _complement(right)))


def _of(text: str) -> Ranges:
    return _union(*(((ord(character), ord(character)),) for character in text))


def _span(first: str, last: str) -> Ranges:
    return ((ord(first), ord(last)),)


_LOWER, _UPPER, _DIGIT = _span("a", "z"), _span("A", "Z"), _span("0", "9")
_ALPHA = _union(_LOWER, _UPPER)
_ALNUM = _union(_ALPHA, _DIGIT)
_PUNCTUATION = _of("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_VERTICAL = _of("\n\v\f\r\x85\u2028\u2029")
_HORIZONTAL = _union(_of(" \t\xa0\u1680\u180e\u202f\u205f\u3000"), _span("\u2000", "\u200a"))
_NO_LINE_END = _complement(_of("\n\r\x85\u2028\u2029"))
_ANY: Ranges = ((0, _LAST),)
_CLASSES = {"d": _DIGIT, "w": _union(_ALNUM, _of("_")), "s": _of(" \t\n\v\f\r"), "h": _HORIZONTAL, "v": _VERTICAL}
_POSIX = {
    "Lower": _LOWER,
    "Upper": _UPPER,
    "ASCII": _span("\x00", "\x7f"),
    "Alpha": _ALPHA,
    "Digit": _DIGIT,
    "Alnum": _ALNUM,
    "Punct": _PUNCTUATION,
    "Graph": _union(_ALNUM, _PUNCTUATION),
    "Print": _union(_ALNUM, _PUNCTUATION, _of(" ")),
    "Blank": _of(" \t"),
    "Cntrl": _union(_span("\x00", "\x1f"), _of("\x7f")),
    "XDigit": _union(_DIGIT, _span("a", "f"), _span("A", "F")),
    "Space": _CLASSES["s"],
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_CATEGORIES = frozenset(
    (
        *("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"),
        *("Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn", "L", "M", "N", "P", "S", "Z", "C"),
    )
)


@lru_cache(maxsize=64)
def _category(name: str) -> Ranges:
    """All characters of a Unicode category, by its first letter or whole."""
    runs: list[tuple[int, int]] = []
    for point in range(_LAST + 1):
        if unicodedata.category(chr(point)).startswith(name):
            if runs and runs[-1][1] == point - 1:
                runs[-1] = runs[-1][0], point
            else:
                runs.append((point, point))
    return tuple(runs)


def _in_any_case(ranges: Ranges) -> Ranges:
    """Java's CASE_INSENSITIVE: letters of ASCII only."""
    swapped = [
        (max(first, low) + shift, min(last, low + 25) + shift)
        for first, last in ranges
        for low, shift in ((65, 32), (97, -32))
        if first <= low + 25 and last >= low
    ]
    return _union(ranges, tuple(sorted(swapped)))


class _Reader:
    """Reads one expression, by recursive descent."""

    def __init__(self, text: str, any_case: bool) -> None:
        self._text = text
        self._position = 0
        self._any_case, self._any_character = any_case, False
        self._depth = 0

    def read(self) -> _Node:
        node = self._choice()
        if self._position < len(self._text):
            self._fail("an unmatched ')'")
        return node

    def _fail(self, what: str) -> NoReturn:
        raise JavaRegexError(f"{self._text[:200]!r} at {self._position}: {what}")

    def _peek(self, length: int = 1) -> str:
        return self._text[self._position : self._position + length]

    def _take(self) -> str:
        if self._position >= len(self._text):
            self._fail("the expression ends too early")
        self._position += 1
        return self._text[self._position - 1]

    def _skip(self, text: str) -> bool:
        if self._text.startswith(text, self._position):
            self._position += len(text)
            return True
        return False

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail(f"nested more than {MAX_DEPTH} deep")

    def _choice(self) -> _Node:
        self._deeper()
        flags = self._any_case, self._any_character
        alternatives = [self._sequence()]
        while self._skip("|"):
            alternatives.append(self._sequence())
        self._any_case, self._any_character = flags
        self._depth -= 1
        return alternatives[0] if len(alternatives) == 1 else _Choice(tuple(alternatives))

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
        while self._position < len(self._text) and self._peek() not in "|)":
            if self._skip("\\Q"):
                end = self._text.find("\\E", self._position)
                quoted = self._text[self._position : end if end >= 0 else None]
                self._position = len(self._text) if end < 0 else end + 2
                if quoted:
                    parts.extend(self._character(character) for character in quoted[:-1])
                    parts.append(self._quantified(self._character(quoted[-1])))
                continue
            if self._skip("\\E"):
                continue
            part = self._atom()
            if part is not None:
                parts.append(self._quantified(part))
        return parts[0] if len(parts) == 1 else _Sequence(tuple(parts))

    def _atom(self) -> _Node | None:
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return self._set(self._class())
        if character == ".":
            return _Set(_ANY if self._any_character else _NO_LINE_END)
        if character in "^$":
            return _Edge(at_end=character == "$")
        if character in "*+?{":
            self._fail(f"a dangling {character!r}")
        if character != "\\":
            return self._character(character)
        if self._peek() and self._peek() in "AzZ":
            return _Edge(at_end=self._take() != "A")
        return self._set(self._escaped())

    def _character(self, character: str) -> _Node:
        return self._set(_of(character))

    def _set(self, ranges: Ranges) -> _Node:
        return _Set(_in_any_case(ranges) if self._any_case else ranges)

    def _group(self) -> _Node | None:
        if self._skip("?"):
            if self._skip("<") and self._peek().isalpha():
                while self._take() != ">":
                    continue
            elif not self._skip(":"):
                return self._flags()
        node = self._choice()
        if not self._skip(")"):
            self._fail("a group that is not closed")
        return node

    def _flags(self) -> _Node | None:
        """`(?i)` for the rest of the group, `(?i:…)` for its own."""
        kept, value = (self._any_case, self._any_character), True
        while (character := self._take()) not in ":)":
            if character == "-":
                value = False
            elif character == "i":
                self._any_case = value
            elif character == "s":
                self._any_character = value
            else:
                self._fail(f"(?{character} is not supported")
        if character == ")":
            return None
        node = self._choice()
        if not self._skip(")"):
            self._fail("a group that is not closed")
        self._any_case, self._any_character = kept
        return node

    def _quantified(self, part: _Node) -> _Node:
        """With the quantifiers that follow; as Java, a second one (`a{2}{3}`) applies to the whole."""
        for _ in range(MAX_DEPTH):
            if self._skip("*"):
                least, most = 0, None
            elif self._skip("+"):
                least, most = 1, None
            elif self._skip("?"):
                least, most = 0, 1
            elif self._skip("{"):
                least, most = self._bounds()
            else:
                return part
            if self._peek() == "+":
                self._fail("possessive quantifiers are not supported")
            self._skip("?")
            part = _Repeat(part, least, most)
        return self._fail("too many quantifiers")

    def _bounds(self) -> tuple[int, int | None]:
        least = self._number()
        most: int | None = least
        if self._skip(","):
            most = None if self._peek() == "}" else self._number()
        if not self._skip("}") or (most is not None and most < least):
            self._fail("no such repetition")
        return least, most

    def _number(self) -> int:
        start = self._position
        while (digit := self._peek()) and digit in "0123456789":
            self._position += 1
        if not 0 < self._position - start <= 9:
            self._fail("no number")
        return min(int(self._text[start : self._position]), input_limits().regex_states + 1)

    def _class(self) -> Ranges:
        """What follows `[`, to the `]`: `&&` binds weakest, a class within is part of the union."""
        self._deeper()
        is_complement = self._skip("^")
        whole: Ranges | None = None
        parts: list[Ranges] = []
        is_first = True
        while is_first or self._peek() != "]":
            if self._skip("&&"):
                joined = _union(*parts)
                whole = joined if whole is None else _intersection(whole, joined) if parts else whole
                parts = []
            else:
                parts.append(self._class_part())
            is_first = False
        self._position += 1
        self._depth -= 1
        joined = _union(*parts)
        if whole is not None:
            joined = _intersection(whole, joined) if parts else whole
        if self._any_case:
            joined = _in_any_case(joined)
        return _complement(joined) if is_complement else joined

    def _class_part(self) -> Ranges:
        character = self._take()
        if character == "[":
            return self._class()
        first = self._escaped() if character == "\\" else _of(character)
        if self._peek() != "-" or self._peek(2) in ("-]", "-[", "-") or not _is_single(first):
            return first
        self._position += 1
        character = self._take()
        last = self._escaped() if character == "\\" else _of(character)
        if not _is_single(last) or last[0][0] < first[0][0]:
            self._fail("no such range")
        return ((first[0][0], last[0][0]),)

    def _escaped(self) -> Ranges:
        """What a backslash begins."""
        character = self._take()
        if character.lower() in _CLASSES:
            ranges = _CLASSES[character.lower()]
            return ranges if character.islower() else _complement(ranges)
        if character in "pP":
            ranges = self._property()
            return ranges if character == "p" else _complement(ranges)
        if character in _CONTROLS:
            return _of(_CONTROLS[character])
        if character == "x" and self._skip("{"):
            end = self._text.find("}", self._position)
            return self._point(max(end - self._position, 0), 16, skip=1)
        if character in "xu":
            return self._point(2 if character == "x" else 4, 16)
        if character == "0":
            digits = len(self._peek(3)) - len(self._peek(3).lstrip("01234567"))
            return self._point(digits if self._peek() and self._peek() in "0123" else min(digits, 2), 8)
        if character == "c":
            return _of(chr(ord(self._take()) ^ 64))
        if character.isascii() and character.isalnum():
            self._fail(f"\\{character} is not supported")
        return _of(character)

    def _point(self, length: int, base: int, skip: int = 0) -> Ranges:
        digits = self._peek(length)
        allowed = "0123456789abcdefABCDEF"[: 8 if base == 8 else None]
        if not 0 < length == len(digits) <= 6 or digits.strip(allowed) or (point := int(digits, base)) > _LAST:
            self._fail("no character")
        self._position += length + skip
        return ((point, point),)

    def _property(self) -> Ranges:
        name = self._take()
        if name == "{":
            end = self._text.find("}", self._position)
            if end < 0:
                self._fail("a property that is not closed")
            name = self._text[self._position : end]
            self._position = end + 1
        if name in _POSIX:
            return _POSIX[name]
        category = name.removeprefix("Is")
        if category not in _CATEGORIES:
            self._fail(f"unknown character property {name[:40]!r}")
        return _category(category)


def _is_single(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]
