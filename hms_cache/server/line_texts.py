"""Escapes texts from clients for the log, so that they can neither end or begin a line nor change its direction."""

from __future__ import annotations

import re

#: C0 and C1 controls, Unicode's own line ends, marks that change the direction of what follows, halves of surrogate
#: pairs (which no output can encode), and the backslash, with which escapes begin.
_UNSAFE = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
_NAMED = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


def escaped(text: str) -> str:
    """``text`` as a field of a line: nothing in it ends the field or the line. Reads back as a text of Python's."""
    return _UNSAFE.sub(lambda found: _escape(found[0]), text)


def single_line(text: str) -> str:
    """``text`` as one line of a log: as :func:`escaped`, but tabs and backslashes stay."""
    return _UNSAFE.sub(lambda found: found[0] if found[0] in "\t\\" else _escape(found[0]), text)


def _escape(character: str) -> str:
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
