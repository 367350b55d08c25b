"""Data sources for Spark: ``hms_catalog`` and ``hms_events``. `register` adds them to a session.

Importing the package does not import PySpark, because the readers are used without Spark, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_cache.client import Metastores

PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"
"""Spark's setting for filter push-down to Python sources, which is off by default. A source that accepts filters does
not run without it."""


def register(spark: SparkSession) -> None:
    """Registers the sources in this session, for ``spark.read.format(…)`` and SQL.

    If the option `auth` is missing, they authenticate like the session's own client of the metastore, by the session's
    settings at the time of this call.
    """
    from hms_cache.jobs.frame.session_keys import session_auth
    from hms_cache.jobs.sources.catalog import HmsCatalogSource
    from hms_cache.jobs.sources.events import HmsEventsSource

    auth = session_auth(spark)
    for source in (HmsCatalogSource, HmsEventsSource):
        spark.dataSource.register(_with(source, session_auth=auth) if auth else source)
    spark.conf.set(PUSH_DOWN, "true")


def with_tokens(source: type, metastores: Iterable[Metastores]) -> type:
    """Returns the source in a form that gives its tasks tokens of this process, which cancels them
    (`cancelling_tokens`). The process in which Spark plans would not cancel its own. Raises the same errors as
    `hms_cache.client.for_tasks`."""
    from hms_cache.client.delegation import tokens_to_transfer

    tokens = tokens_to_transfer(metastores)
    return _with(source, transferred_tokens=tokens) if tokens else source


@contextmanager
def events_with_tokens(spark: SparkSession, metastore: Metastores | str | None) -> Iterator[None]:
    """In the block, the source ``hms_events`` of this session is that of `with_tokens`."""
    from hms_cache.client import Metastores
    from hms_cache.jobs.sources.events import HmsEventsSource

    known = with_tokens(HmsEventsSource, [metastore] if isinstance(metastore, Metastores) else [])
    if known is HmsEventsSource:
        yield
        return
    spark.dataSource.register(known)
    try:
        yield
    finally:
        register(spark)


def _with(source: type, **values: Any) -> type:
    """Returns a subclass with these values: Spark plans a source in another process, which knows only the class."""
    return type(source.__name__, (source,), values)
