"""psycopg's connection with a limit for each answer.

The database's own `statement_timeout` ends what takes too long, but a server that hangs and a host that is gone never
say so, and the system's TCP time-outs do not cover a peer whose kernel still acknowledges. psycopg waits without end.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg


class LimitedConnection(psycopg.Connection[Any]):
    """As the driver's; what waits longer than `answer_limit_s` (seconds) fails as if the connection were lost."""

    answer_limit_s = float("inf")

    def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
        """Runs one exchange with the server. Raises psycopg.OperationalError when the limit has passed."""
        return super().wait(_limited(gen, time.monotonic() + self.answer_limit_s), *arguments, **options)


def _limited(exchange: Generator[Any, Any, Any], deadline_s: float) -> Generator[Any, Any, Any]:
    """The exchange, which the driver resumes ten times a second even if nothing came."""
    try:
        wanted = next(exchange)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > deadline_s:
                raise psycopg.OperationalError("the database did not answer in time")
            wanted = exchange.send(ready)
    except StopIteration as end:
        return end.value
