"""Errors in filters. The store converts them to `MetaException`s with the same text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException


class FilterError(ValueError):
    """A filter that cannot be evaluated; the text is that of Hive's `MetaException`."""


class FilterSyntaxError(FilterError):
    """The text is not a filter."""


class FilterBindError(FilterError):
    """The filter does not fit the table: an unknown key, or a literal of the wrong type."""


class FilterLimitError(FilterError):
    """The filter is too long, nested too deeply, or needs too much work."""


@contextmanager
def filter_errors_for_clients() -> Iterator[None]:
    """Converts an error in a filter to the MetaException for clients."""
    try:
        yield
    except FilterError as error:
        raise MetaException(str(error)) from error
