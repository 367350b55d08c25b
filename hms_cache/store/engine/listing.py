"""Limits the rows that one call reads for a list that grows with the database and has no limit in its request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from sqlalchemy import Select

from hms_cache.input_limits import exceeded, input_limits
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

T = TypeVar("T")


def limited(statement: Select[Any]) -> Select[Any]:
    """Adds a limit to the statement of a list: one row more than `limits.listed_rows`, to detect that there are too
    many."""
    return statement.limit(input_limits().listed_rows + 1)


def listed(rows: Sequence[T], what: str) -> Sequence[T]:
    """The rows of a list. Raises MetaException if there are more than `limits.listed_rows`.

    A truncated list would be taken for a complete one.
    """
    most = input_limits().listed_rows
    if len(rows) > most:
        raise MetaException(
            f"There are more than {most} {what}, which are not listed at once ({exceeded('listed_rows')})"
        )
    return rows
