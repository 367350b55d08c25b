"""A night: runs several jobs one after the other, in a process with Spark that may be killed.

Reads a line of JSON with its settings, then a line for each night; writes lines that begin with ``night``.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from hms_cache.jobs.frame.session import job_session
from hms_cache.jobs.registry import JOBS

PREFIX = "night "


def _send(**answer: Any) -> None:
    print(PREFIX + json.dumps(answer, default=str), flush=True)


def main() -> None:
    """Runs until there are no more nights."""
    conf = json.loads(sys.stdin.readline())
    with job_session("month", "local[2]", conf) as spark:
        for line in iter(sys.stdin.readline, ""):
            for name, options in json.loads(line):
                _send(begin=name)
                began_s = time.monotonic()
                result = JOBS[name].run(spark, options)
                seconds = round(time.monotonic() - began_s)
                tables = {table.title: [list(row) for row in table.rows] for table in result.tables}
                _send(
                    end=name,
                    seconds=seconds,
                    summary=dict(result.summary),
                    tables=tables,
                    exit_status=result.exit_status,
                )
            _send(end="night")


if __name__ == "__main__":
    main()
