"""The reason of a failure: its cause is reported once, without tracebacks."""

from __future__ import annotations

import pytest
from thrift.Thrift import TApplicationException

from hms_cache.jobs.frame.reasons import LONGEST, reason_of
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException


class Java:
    """A Throwable, as py4j shows it."""

    def __init__(self, message: str | None, cause: Java | None = None, name: str = "java.io.IOException") -> None:
        self._message, self._cause, self._name = message, cause, name

    def getMessage(self) -> str | None:
        return self._message

    def getCause(self) -> Java | None:
        return self._cause

    def getClass(self) -> Java:
        return self

    def getName(self) -> str:
        return self._name


class OfSpark(Exception):
    """As PySpark wraps one of the JVM."""

    def __init__(self, java: Java) -> None:
        super().__init__("An error occurred while calling o12.collect")
        self.java_exception = java


_TASK = (
    "Job aborted due to stage failure: Task 0 in stage 4.0 failed 1 times, most recent failure: Lost task 0.0 in "
    "stage 4.0 (TID 6) (10.0.0.1 executor driver): "
)
_WORKER = """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    raise OSError(7)
OSError: the disk is full

\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1)
"""


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MetaException("no such column"), "no such column"),
        (MetaException(), "MetaException"),
        (TApplicationException(6, "Internal error"), "Internal error"),
        (FileNotFoundError(), "FileNotFoundError"),
        (OfSpark(Java(_TASK + _WORKER)), "OSError: the disk is full"),
        (
            OfSpark(Java(f"{_TASK}java.io.FileNotFoundException: s3a://b/f\n\tat java.lang.Thread.run()")),
            "java.io.FileNotFoundException: s3a://b/f",
        ),
        (
            OfSpark(Java("Encountered error while reading file s3a://b/f.", Java("s3a://b/f is not a Parquet file"))),
            "Encountered error while reading file s3a://b/f.; because s3a://b/f is not a Parquet file",
        ),
        (OfSpark(Java("java.io.IOException: broken", Java("broken"))), "java.io.IOException: broken"),
        (OfSpark(Java("while it was read", Java(None))), "while it was read; because java.io.IOException"),
        (MetaException("x" * 5_000), "x" * LONGEST),
    ],
)
def test_the_cause_is_told(error: Exception, told: str) -> None:
    assert reason_of(error) == told


def test_errors_that_python_raises_from_others() -> None:
    outer, inner = OSError("could not list"), ValueError("bad name")
    outer.__cause__, inner.__cause__ = inner, outer
    assert reason_of(outer) == "could not list; because bad name"
