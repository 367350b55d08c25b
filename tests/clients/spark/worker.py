"""Spark's process: reads commands, a JSON object on each line, and answers each with a line ``answer <JSON>``.

One JVM serves all tests, since starting it and warming it up costs more than all statements. A new session on another
metastore works in it once Hive's thread-bound session of the former is let go.

- ``{"do": "session", "conf": {…}}``: end the session there is, begin one with these settings.
- ``{"do": "sql", "statement": "…"}``: rows, or the error.
- ``{"do": "steps", "scratch": DIR, "port": N, "odd": false}``: all of `statements.STEPS`, or of
  `odd_statements.ODD_STEPS`, each with the calls it made if a port is given.
- ``{"do": "python", "source": "…"}``: run it with ``spark`` and what was defined before; what it leaves in ``result``.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from pyspark.sql import SparkSession

from tests.clients.spark.odd_statements import ODD_STEPS
from tests.clients.spark.statements import STEPS, Step, rows_of
from tests.servers import metastore_client


class Worker:
    """At most one session at a time."""

    def __init__(self) -> None:
        self._spark: SparkSession | None = None
        self._scope: dict[str, Any] = {}

    def answer(self, command: dict[str, Any]) -> Any:
        return getattr(self, "_" + command.pop("do"))(**command)

    def _session(self, conf: dict[str, str]) -> None:
        self._end_session()
        builder: Any = SparkSession.builder
        builder._options = {}
        for name, value in conf.items():
            builder = builder.config(name, value)
        self._spark = builder.getOrCreate()
        self._scope = {"spark": self._spark}

    def _end_session(self) -> None:
        if self._spark is None:
            return
        jvm = self._spark._jvm
        self._spark.stop()
        self._spark = None
        jvm.org.apache.hadoop.hive.ql.metadata.Hive.closeCurrent()
        jvm.org.apache.hadoop.hive.ql.session.SessionState.detachSession()

    def _sql(self, statement: str) -> dict[str, Any]:
        return self._run(Step("", statement))

    def _python(self, source: str) -> Any:
        self._scope["result"] = None
        exec(source, self._scope)
        return self._scope["result"]

    def _steps(self, scratch: str, port: int | None, odd: bool) -> list[dict[str, Any]]:
        answers = []
        for step in ODD_STEPS if odd else STEPS:
            before = self._counters(port)
            started = time.perf_counter()
            answer = self._run(step, scratch)
            answer["seconds"] = time.perf_counter() - started
            after = self._counters(port)
            answer["calls"] = {name: after[name] - before.get(name, 0) for name in after if name != "getCounters"}
            answers.append(answer)
        return answers

    @staticmethod
    def _counters(port: int | None) -> dict[str, int]:
        if port is None:
            return {}
        with metastore_client(port) as client:
            return dict(client.getCounters())

    def _run(self, step: Step, scratch: str = "") -> dict[str, Any]:
        try:
            if step.action is not None:
                return {"rows": step.action(self._spark)}
            assert self._spark is not None
            return {"rows": rows_of(self._spark.sql(step.statement.replace("{scratch}", scratch)))}
        except Exception as error:
            condition = getattr(error, "getCondition", lambda: None)()
            lines = [line for line in str(error).splitlines() if line.strip()]
            # What py4j reports of an error of the JVM starts with the call: the reason is its last cause.
            causes = [line.strip() for line in lines if line.startswith("Caused by: ")]
            told = [*lines[:1], *(causes[-1:] if condition is None else ())]
            return {"error": f"{type(error).__name__} {condition}: {' '.join(told)}"}


def main() -> None:
    worker = Worker()
    for line in sys.stdin:
        try:
            answer = {"answer": worker.answer(json.loads(line))}
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}"}
        print("answer", json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
