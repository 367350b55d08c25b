"""The tests' side of Spark's process."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hms_cache.cli.demo.java import java_home
from hms_cache.errors import StartupError

#: Longest time for one command; all statements on a busy machine take a minute.
COMMAND_LIMIT_S = 280.0

_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss4m -Dderby.system.durability=test"


def base_conf(scratch: Path) -> dict[str, str]:
    """A small and quiet session with this directory for its files."""
    log_settings = Path(__file__).with_name("log4j2.properties")
    options = f"{_JAVA_OPTIONS} -Dlog4j2.configurationFile=file:{log_settings} -Dderby.system.home={scratch}"
    return {
        "spark.master": "local[2]",
        "spark.app.name": "tests",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": options,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.sql.files.minPartitionNum": "1",
        # Compiling the plans of statements that run once costs more than interpreting them.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": f"file:{scratch / 'warehouse'}",
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
        "spark.hadoop.hive.exec.scratchdir": str(scratch / "hive-scratch"),
        "spark.hadoop.hive.metastore.client.connect.retry.delay": "1s",
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    }


def embedded(scratch: Path) -> dict[str, str]:
    """Spark's own metastore, on Derby inside its JVM: the reference for each statement.

    The only statement that it cannot answer (LIKE on a string key with IN on an int key) is answered without push-down.
    """
    return base_conf(scratch) | {
        "spark.hadoop.hive.metastore.uris": "",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={scratch / 'derby'};create=true",
        "spark.hadoop.hive.metastore.warehouse.dir": f"file:{scratch / 'warehouse'}",
        "spark.sql.hive.metastorePartitionPruningFallbackOnException": "true",
    }


def remote(scratch: Path, *uris: str) -> dict[str, str]:
    """The metastore at these URIs."""
    return base_conf(scratch) | {"spark.hadoop.hive.metastore.uris": ",".join(uris)}


class SparkProcess:
    """See `tests.clients.spark.worker`."""

    def __init__(self, directory: Path, jars: tuple[Path, ...] = (), pyspark: Path | None = None) -> None:
        """`jars` are on the class path of the JVM. `pyspark` is a folder with another release of it."""
        try:
            home = java_home(directory)
        except StartupError as error:
            if os.environ.get("HMS_CACHE_REQUIRE_DATABASES") == "1":
                raise
            pytest.skip(str(error))
        self._log = directory / "spark.log"
        self._jars = jars
        self._conf: dict[str, str] | None = None
        environment = os.environ | {
            "JAVA_HOME": str(home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_HOSTNAME": "localhost",
            "PYTHONPATH": os.pathsep.join(map(str, filter(None, (pyspark, Path(__file__).parents[3])))),
        }
        environment.pop("SPARK_HOME", None)
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.clients.spark.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
                cwd=directory,
            )
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("answer "):
                self._answers.put(line.removeprefix("answer "))
        self._answers.put(None)

    def _ask(self, limit_s: float = COMMAND_LIMIT_S, **command: Any) -> Any:
        self.tell(**command)
        return self.answer(limit_s)

    def tell(self, **command: Any) -> None:
        """Sends a command; `answer` reads its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def answer(self, limit_s: float = COMMAND_LIMIT_S) -> Any:
        """The answer to the oldest command sent."""
        try:
            line = self._answers.get(timeout=limit_s)
        except queue.Empty:
            raise AssertionError(f"Spark does not answer: {self._tail()}") from None
        assert line is not None, f"Spark ended: {self._tail()}"
        answered = json.loads(line)
        assert "failed" not in answered, f"{answered['failed']}\n{self._tail()}"
        return answered["answer"]

    @property
    def is_busy(self) -> bool:
        """Whether the command sent is not answered yet."""
        return self._answers.empty()

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    def session(self, conf: dict[str, str]) -> None:
        """Ends the current session and starts one with these settings."""
        self._conf = None
        self._ask(do="session", conf=conf | {"spark.driver.extraClassPath": os.pathsep.join(map(str, self._jars))})
        self._conf = conf

    def ensure_session(self, conf: dict[str, str]) -> None:
        """Starts a session with these settings, unless the current one has them."""
        if self._conf != conf:
            self.session(conf)

    def sql(self, statement: str) -> list[list[str]]:
        """The rows; fails if the statement does."""
        answer = self._ask(do="sql", statement=statement)
        assert "rows" in answer, answer["error"]
        rows: list[list[str]] = answer["rows"]
        return rows

    def answer_to(self, statement: str) -> dict[str, Any]:
        """The rows or the error."""
        answer: dict[str, Any] = self._ask(do="sql", statement=statement)
        return answer

    def python(self, source: str) -> Any:
        """The value that the source leaves in ``result``."""
        return self._ask(do="python", source=source)

    def call(self, function: Callable[..., Any], **arguments: Any) -> Any:
        """The result of a function at the top of a test module, called with the session and these (JSON) arguments.

        It runs in Spark's process; its result must be JSON, too.
        """
        name = f"from {function.__module__} import {function.__name__} as function"
        return self.python(f"import json\n{name}\nresult = function(spark, **json.loads({json.dumps(arguments)!r}))")

    def steps(self, scratch: Path, port: int | None = None, *, odd: bool = False) -> list[dict[str, Any]]:
        """The answers to all of `statements.STEPS`, or of `odd_statements.ODD_STEPS`."""
        answers: list[dict[str, Any]] = self._ask(do="steps", scratch=str(scratch), port=port, odd=odd)
        return answers

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(30)
