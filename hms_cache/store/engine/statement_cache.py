"""A cache of compiled statements.

SQLAlchemy keeps with each statement the values of its first execution. These come from clients: a request of 100 MB per
kind of statement would stay in memory until the process ends.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy.util import LRUCache

STATEMENTS: Final = 500
"""SQLAlchemy's default. The least used are dropped when there are half as many again."""

LONGEST_VALUES: Final = 16 * 1024
"""Characters and bytes of all first values of one statement: 750 statements keep at most 12 MB. A statement with more
is compiled (a millisecond) but not kept."""


class StatementCache(LRUCache[Any, Any]):
    """The `compiled_cache` of one engine. Thread-safe."""

    def __init__(self) -> None:
        super().__init__(STATEMENTS)

    def __setitem__(self, key: Any, compiled: Any) -> None:
        """Keeps the statement unless its values are long."""
        values = [bound.value for bound in compiled.binds.values()]
        if compiled.cache_key is not None:
            values += [bound.value for bound in compiled.cache_key.bindparams]
        if length_of(values, LONGEST_VALUES) <= LONGEST_VALUES:
            super().__setitem__(key, compiled)


def length_of(values: list[Any], enough: int) -> int:
    """Number of characters, bytes and elements in values and lists of values. Stops counting soon after `enough`."""
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
