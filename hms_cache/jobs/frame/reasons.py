"""Why something failed, in one line of a report: with the cause, not only what was tried."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

LONGEST = 1_000
"""Characters of a reason."""

_PYTHON = "Traceback (most recent call last)"
_TASK = re.compile(r"most recent failure: Lost task \S+ in stage \S+ \(TID \d+\) \([^)]*\): (.*)", re.DOTALL)
_SAYS_NOTHING = frozenset({"", "None", "null"})


def reason_of(error: BaseException) -> str:
    """What the error says and what the errors say that it comes from, to the first one; at most `LONGEST` characters.

    Of Spark's errors: those of the JVM, without their traces; of one in a Python worker the last line of its trace.
    """
    reasons: list[str] = []
    for text in _texts(error):
        if not any(text in reason for reason in reasons):
            reasons.append(text)
    # Spark's outer errors quote the inner ones: what is part of a later one is not said twice.
    told = [one for number, one in enumerate(reasons) if not any(one in later for later in reasons[number + 1 :])]
    return "; because ".join(told)[:LONGEST]


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
            yield type(now).__name__ if message in _SAYS_NOTHING else _essence(message)
        now = now.__cause__


def _java_texts(java: Any) -> Iterator[str]:
    for _ in range(20):  # a cause may be its own
        if java is None:
            return
        message = str(java.getMessage())
        yield str(java.getClass().getName()) if message in _SAYS_NOTHING else _essence(message)
        java = java.getCause()


def _essence(message: str) -> str:
    """Of a long message the line that tells."""
    if _PYTHON in message:
        for line in message.rpartition(_PYTHON)[2].splitlines()[1:]:
            if line.strip() and not line[0].isspace():
                return line.strip()
    task = _TASK.search(message)
    lines = (task[1] if task else message).strip().splitlines()
    return lines[0].strip() if lines else message
