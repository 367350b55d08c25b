"""Texts that clients chose, made fit for a log: one line, which nobody can end, begin or turn around from within."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from hms_cache.config.secrets import MASK, is_secret_name

_LONGEST_TEXT = 1_000
"""Characters of a text in a struct: a line tells what was created, and holds `audit.LONGEST_FIELD_CHARACTERS`."""

_MOST_ELEMENTS = 200
"""Of a list or map in it."""

_USER_IN_URL = re.compile(r"(://)[^/@\s]{1,1000}@")

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


def struct_text(value: Any) -> str:
    """As ``repr``, of a struct that a client sent; without what is secret in it, and not much longer than a line.

    Masked are parameters under names of secrets, and users in URLs: a table of another database has its password.
    """
    if isinstance(value, str):
        cut = value if len(value) <= _LONGEST_TEXT else f"{value[:_LONGEST_TEXT]}…"
        return repr(_USER_IN_URL.sub(rf"\1{MASK}@", cut))
    if isinstance(value, dict):
        entries = [
            f"{struct_text(key)}: {repr(MASK) if is_secret_name(str(key)) else struct_text(one)}"
            for key, one in islice(value.items(), _MOST_ELEMENTS)
        ]
        return "{" + ", ".join(_left_out(entries, len(value))) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_left_out([struct_text(one) for one in value[:_MOST_ELEMENTS]], len(value))) + "]"
    if not hasattr(value, "thrift_spec"):
        return repr(value)
    fields = [f"{name}={struct_text(getattr(value, name))}" for name in value.__slots__]
    return f"{type(value).__name__}({', '.join(fields)})"


def _left_out(texts: list[str], count: int) -> list[str]:
    return [*texts, "…"] if count > len(texts) else texts
