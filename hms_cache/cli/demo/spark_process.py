"""The process that a demo's PySpark session runs in."""

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
    """A script of this package in a process of its own, its log in ``scratch``. Waited for at the end. `environment`:
    beside ours.

    Raises `StartupError` when there is no Java.
    """
    environment = (
        os.environ | dict(environment or {}) | {"JAVA_HOME": str(java_home(scratch)), "PYSPARK_PYTHON": sys.executable}
    )
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
    environment.pop("SPARK_HOME", None)  # the PySpark installed beside us, not another Spark of the machine
    command = [sys.executable, "-m", f"hms_cache.cli.demo.{script}", *arguments]
    with (
        (scratch / _LOG).open("w") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, cwd=scratch
        ) as spark,
    ):
        yield spark


def log_tail(scratch: Path) -> str:
    """The end of Spark's log."""
    return "\n".join((scratch / _LOG).read_text(errors="replace").splitlines()[-30:])
