"""The cause of a failure, in one line of a report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

LONGEST = 1_000
"""Maximum number of characters."""

_PYTHON = "Traceback (most recent call last)"
_TASK = re.compile(r"most recent failure: Lost task \S+ in stage \S+ \(TID \d+\) \([^)]*\): (.*)", re.DOTALL)
_EMPTY_MESSAGES = frozenset({"", "None", "null"})


def reason_of(error: BaseException) -> str:
    """The messages of the error and of its causes, down to the first cause; at most `LONGEST` characters.

    For errors of Spark, the messages of the JVM without stack traces; for one in a Python worker the last line of its
    traceback.
    """
    reasons: list[str] = []
    for text in _texts(error):
        if not any(text in reason for reason in reasons):
            reasons.append(text)
    # Spark's outer errors quote the inner ones: a message contained in a later one is omitted.
    shown = [one for number, one in enumerate(reasons) if not any(one in later for later in reasons[number + 1 :])]
    return "; because ".join(shown)[:LONGEST]


def _texts(error: BaseException) -> Iterator[str]:
    seen: set[int] = set()
    now: BaseException | None = error
    while now is not None and id(now) not in seen:
        seen.add(id(now))
        java = getattr(now, "java_exception", None) or getattr(now, "_origin", None)
        if java is not None:
            yield from _java_texts(java)
        else:
            message = str(now.message if hasattr(now, "message") else now)
            yield type(now).__name__ if message in _EMPTY_MESSAGES else _essence(message)
        now = now.__cause__


def _java_texts(java: Any) -> Iterator[str]:
    for _ in range(20):  # a cause may be its own cause
        if java is None:
            return
        message = str(java.getMessage())
        yield str(java.getClass().getName()) if message in _EMPTY_MESSAGES else _essence(message)
        java = java.getCause()


def _essence(message: str) -> str:
    """The decisive line of a long message."""
    if _PYTHON in message:
        for line in message.rpartition(_PYTHON)[2].splitlines()[1:]:
            if line.strip() and not line[0].isspace():
                return line.strip()
    task = _TASK.search(message)
    lines = (task[1] if task else message).strip().splitlines()
    return lines[0].strip() if lines else message
