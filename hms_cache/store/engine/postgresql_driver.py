"""psycopg's connection with a limit for each answer.

The database's own `statement_timeout` ends what takes too long, but a server that hangs and a host that is gone never
say so, and the system's TCP time-outs do not cover a peer whose kernel still acknowledges. psycopg waits without end.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg
from psycopg.generators import fetch_many
from psycopg.pq import TransactionStatus

from hms_cache.computing import turns


class LimitedConnection(psycopg.Connection[Any]):
    """As the driver's; what waits longer than `answer_limit_s` (seconds) fails as if the connection were lost."""

    answer_limit_s = float("inf")
    rolls_back_later = False
    """Whether `rollback` waits for no answer: reads have nothing to learn from it."""
    _owes_answer = False

    def rollback(self) -> None:
        """Ends the transaction. With `rolls_back_later` the answer is read before the next exchange: a round trip less.

        The server ends its snapshot at once all the same. A connection that is lost is found so by its next use. What
        the driver has prepared stays: it would prepare anew after each rollback, for the sake of types and tables that
        a transaction made, and a read makes none.
        """
        if not self.rolls_back_later or self.pgconn.transaction_status != TransactionStatus.INTRANS:
            super().rollback()
            return
        with self.lock:
            self.pgconn.send_query(b"ROLLBACK")
            self.pgconn.flush()
            self._owes_answer = True

    def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
        """Runs one exchange with the server. Raises psycopg.OperationalError when the limit has passed."""
        if self._owes_answer:
            self._owes_answer = False
            rest = fetch_many(self.pgconn)
            super().wait(_limited(rest, time.monotonic() + self.answer_limit_s))
        return super().wait(_limited(gen, time.monotonic() + self.answer_limit_s), *arguments, **options)


def _limited(exchange: Generator[Any, Any, Any], deadline_s: float) -> Generator[Any, Any, Any]:
    """The exchange, which the driver resumes ten times a second even if nothing came."""
    try:
        wanted = next(exchange)
        while True:
            is_to_resume = turns.pause()
            ready = yield wanted
            if is_to_resume:
                turns.resume()
            if not ready and time.monotonic() > deadline_s:
                raise psycopg.OperationalError("the database did not answer in time")
            wanted = exchange.send(ready)
    except StopIteration as end:
        return end.value
