"""What can be wrong with a filter. The store turns these into `MetaException`s with the same text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException


class FilterError(ValueError):
    """A filter that cannot be answered; its text is the one of Hive's `MetaException`."""


class FilterSyntaxError(FilterError):
    """Text that is not a filter."""


class FilterBindError(FilterError):
    """A filter that does not fit the table: an unknown key, a literal of the wrong type."""


class FilterLimitError(FilterError):
    """A filter too long, too deep or too much work."""


@contextmanager
def told_to_clients() -> Iterator[None]:
    """What is wrong with a filter becomes the MetaException that clients get."""
    try:
        yield
    except FilterError as error:
        raise MetaException(str(error)) from error
