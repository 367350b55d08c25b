"""The process of a demo's PySpark session."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hms_cache.cli.demo.java import java_home

_LOG = "spark.log"


@contextmanager
def start_spark(
    scratch: Path, script: str, *arguments: str, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Runs a script of this package in a separate process, with its log in ``scratch``; waits for it at the end.

    Raises `StartupError` if there is no Java.

    :param environment: variables in addition to those of this process.
    """
    environment = (
        os.environ | dict(environment or {}) | {"JAVA_HOME": str(java_home(scratch)), "PYSPARK_PYTHON": sys.executable}
    )
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
    environment.pop("SPARK_HOME", None)  # use the PySpark in this environment, not another Spark of the machine
    command = [sys.executable, "-m", f"hms_cache.cli.demo.{script}", *arguments]
    with (
        (scratch / _LOG).open("w") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, cwd=scratch
        ) as spark,
    ):
        yield spark


def log_tail(scratch: Path) -> str:
    """Returns the end of Spark's log."""
    return "\n".join((scratch / _LOG).read_text(errors="replace").splitlines()[-30:])
