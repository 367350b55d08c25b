"""Compiled statements that are kept for the next call with the same text.

SQLAlchemy keeps with each the values that it was first executed with. They are a client's: one request of 100 MB
per kind of statement would stay until the process ends.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy.util import LRUCache

STATEMENTS: Final = 500
"""As many as SQLAlchemy keeps by default; half as many again before the least used are dropped."""

LONGEST_VALUES: Final = 16 * 1024
"""Characters and bytes of all first values of one statement: 750 statements keep 12 MB at most. A statement that comes
with more is compiled (a millisecond), and kept when it comes with less."""


class StatementCache(LRUCache[Any, Any]):
    """For the execution option `compiled_cache` of one engine. Used from any thread."""

    def __init__(self) -> None:
        super().__init__(STATEMENTS)

    def __setitem__(self, key: Any, compiled: Any) -> None:
        """Keep the statement, unless its values are long."""
        values = [bound.value for bound in compiled.binds.values()]
        if compiled.cache_key is not None:
            values += [bound.value for bound in compiled.cache_key.bindparams]
        if length_of(values, LONGEST_VALUES) <= LONGEST_VALUES:
            super().__setitem__(key, compiled)


def length_of(values: list[Any], enough: int) -> int:
    """Characters, bytes and elements of values and lists of them; the count ends soon after it is `enough`."""
    length = 0
    for value in values:
        if isinstance(value, str | bytes):
            length += len(value)
        elif isinstance(value, list | tuple | set | frozenset):
            length += len(value) if len(value) > enough else length_of(list(value), enough)
        else:
            length += 1
        if length > enough:
            break
    return length
