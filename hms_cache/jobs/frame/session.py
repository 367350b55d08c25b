"""The Spark session of a job."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hms_cache.errors import StartupError
from hms_cache.jobs.frame import python_daemon

LOCAL_MASTER = "local[*]"
"""All cores of this machine: the default master."""

_SUBMITTED = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")
"""Set by spark-submit, or for Spark Connect: the master is already chosen."""


@contextmanager
def job_session(name: str, master: str | None, conf: Mapping[str, str]) -> Iterator[Any]:
    """A session with the project's data sources, stopped at the end.

    :param master: ``None``: the one chosen by spark-submit, else `LOCAL_MASTER`.
    :raises StartupError: PySpark or Java is missing.
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise StartupError("jobs need PySpark", remedy="pip install 'hms-cache[spark]'") from error
    from hms_cache.jobs.sources import register

    if master is None and not any(variable in os.environ for variable in _SUBMITTED):
        master = LOCAL_MASTER
    settings = {"spark.ui.showConsoleProgress": "false", "spark.sql.session.timeZone": "UTC"}
    if master is not None and master.startswith("local"):
        # Workers on this machine use this Python, not the python3 on the path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        settings["spark.python.daemon.module"] = python_daemon.MODULE
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        settings |= {"spark.ui.enabled": "false"}
    settings |= conf
    builder: Any = SparkSession.builder.appName(f"hms-cache {name}")
    if master is not None:
        builder = builder.master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except PySparkException as error:
        raise StartupError(f"Spark did not start: {error}", remedy="It needs Java 17 or 21 on the path.") from error
    try:
        register(spark)
        yield spark
    finally:
        spark.stop()
