"""Patterns of characters, "any character" and "any text": what SQL's LIKE and Hive's patterns of names come down to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum


class Wildcard(Enum):
    """What is no character of its own."""

    ONE = "one"
    MANY = "many"


class WildcardPattern:
    """A compiled pattern. Immutable; any thread may use it.

    The text between two MANY is looked for from left to right, and the first place is as good as any later one, so
    nothing is ever tried again. Time: the text's length times the pattern's over 64 at most, near the text's length
    where the pattern has no ONE.
    """

    __slots__ = ("_any_case", "_first", "_last", "_least", "_middle", "_needed", "prefix")

    def __init__(self, tokens: Iterable[str | Wildcard], *, any_case: bool = False) -> None:
        """`tokens`: characters and wildcards. `any_case`: upper and lower case are alike."""
        segments: list[list[str | None]] = [[]]
        for token in tokens:
            if token is Wildcard.MANY:
                if segments[-1] or len(segments) == 1:
                    segments.append([])
            elif isinstance(token, str):
                segments[-1].append(_folded(token) if any_case else token)
            else:
                segments[-1].append(None)
        self._any_case = any_case
        self._first = _Segment(segments[0])
        self._last = _Segment(segments[-1]) if len(segments) > 1 else None
        self._middle = tuple(_Segment(segment) for segment in segments[1:-1])
        self._least = sum(map(len, segments))
        self.prefix: str = "" if any_case else self._first.leading_text
        """A text that every match begins with."""
        plain = [one.longest_text for one in (self._first, *self._middle, self._last) if one is not None]
        self._needed = max(plain, key=len)
        """A text that is in every match, in lower case with `any_case`."""

    def select(self, texts: Sequence[str]) -> list[str]:
        """Those of the texts that match, in their order. What lacks the longest run of plain characters is left out
        before anything else is looked at: some 0.1 µs for each text."""
        needed, begin = self._needed, self._first.leading_text
        if needed:
            seen = zip(texts, self._comparable(texts), strict=True)
            texts = [text for text, folded in seen if needed in folded and folded.startswith(begin)]
        return [text for text in texts if self.matches(text)]

    def _comparable(self, texts: Sequence[str]) -> Sequence[str]:
        if not self._any_case:
            return texts
        together = "\0".join(texts)
        if together.isascii():
            lower = together.lower().split("\0")
            if len(lower) == len(texts):
                return lower
        return [_folded(text) for text in texts]

    def matches(self, text: str) -> bool:
        """Whether the pattern covers the whole text."""
        if len(text) < self._least:
            return False
        if self._any_case:
            text = _folded(text)
        if self._last is None:
            return len(text) == self._least and self._first.is_at(text, 0)
        end = len(text) - self._last.length
        if not self._first.is_at(text, 0) or not self._last.is_at(text, end):
            return False
        position = self._first.length
        for segment in self._middle:
            found = segment.find(text, position, end)
            if found < 0:
                return False
            position = found + segment.length
        return True


class _Segment:
    """Characters, and None for any, without a MANY among them."""

    __slots__ = ("_masks", "_pieces", "_tokens", "length")

    def __init__(self, tokens: list[str | None]) -> None:
        self.length = len(tokens)
        self._pieces = _pieces(tokens)
        self._tokens = tokens if None in tokens else []
        self._masks: tuple[dict[str, int], int] | None = None

    @property
    def leading_text(self) -> str:
        return self._pieces[0][1] if self._pieces and self._pieces[0][0] == 0 else ""

    @property
    def longest_text(self) -> str:
        return max((text for _, text in self._pieces), key=len, default="")

    def is_at(self, text: str, position: int) -> bool:
        return all(text.startswith(piece, position + offset) for offset, piece in self._pieces)

    def find(self, text: str, start: int, end: int) -> int:
        """The first place between `start` and `end`, -1 if there is none."""
        if end - start < self.length:
            return -1
        if not self._pieces:
            return start
        if not self._tokens:
            return text.find(self._pieces[0][1], start, end)
        # Shift-And (Baeza-Yates and Gonnet): bit i says that the segment's first i + 1 characters end here.
        masks, wild = self._masks or self._make_masks()
        state, last = 0, 1 << (self.length - 1)
        for position in range(start, end):
            state = (state << 1 | 1) & masks.get(text[position], wild)
            if state & last:
                return position - self.length + 1
        return -1

    def _make_masks(self) -> tuple[dict[str, int], int]:
        wild = sum(1 << index for index, token in enumerate(self._tokens) if token is None)
        masks: dict[str, int] = {}
        for index, token in enumerate(self._tokens):
            if token is not None:
                masks[token] = masks.get(token, wild) | 1 << index
        self._masks = masks, wild
        return self._masks


def _pieces(tokens: list[str | None]) -> list[tuple[int, str]]:
    """(offset, text) of the runs of plain characters."""
    pieces: list[tuple[int, list[str]]] = []
    for index, token in enumerate(tokens):
        if token is None:
            continue
        if index and tokens[index - 1] is not None:
            pieces[-1][1].append(token)
        else:
            pieces.append((index, [token]))
    return [(offset, "".join(characters)) for offset, characters in pieces]


def _folded(text: str) -> str:
    """In lower case, character by character: the length stays."""
    if text.isascii():
        return text.lower()
    return "".join(lower if len(lower := character.lower()) == 1 else character for character in text)
