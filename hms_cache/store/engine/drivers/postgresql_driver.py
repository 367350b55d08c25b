"""psycopg's connection with a limit for each answer.

The database's own `statement_timeout` ends what takes too long, but a server that hangs and a host that is gone never
say so, and the system's TCP time-outs do not cover a peer whose kernel still acknowledges. psycopg waits without end.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import psycopg
from psycopg.errors import PipelineAborted
from psycopg.generators import fetch_many
from psycopg.pq import TransactionStatus
from psycopg.waiting import Ready

from hms_cache.computing import turns


class LimitedConnection(psycopg.Connection[Any]):
    """As the driver's; what waits longer than `answer_limit_s` (seconds) fails as if the connection were lost."""

    answer_limit_s = float("inf")
    has_pipelines = psycopg.Pipeline.is_supported()
    """Whether `ask_together` may be called: libpq has pipelines since version 14."""
    rolls_back_later = False
    """Whether `rollback` waits for no answer: reads have nothing to learn from it."""
    _owes_answer = False
    _statements_at_once = 1
    """How many answers one exchange waits for."""

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

    def ask_together(self, questions: Sequence[tuple[str, Mapping[str, Any]]], *, ends: bool) -> list[Any]:
        """The rows of each query, all of them sent before the first answer is waited for, with BEGIN if no transaction
        is open. `ends`: COMMIT goes with them. Raises the error of the first one that failed."""
        self._statements_at_once = len(questions)
        try:
            with self.pipeline() as pipeline:
                cursors = []
                for text, values in questions:
                    cursors.append(self.cursor().execute(text, values))
                    # The server would keep the answer until the last one: it could not be told whether it hangs.
                    pipeline.command_queue.append(self.pgconn.send_flush_request)
                if ends:
                    self.cursor().execute("COMMIT", prepare=False)
        except PipelineAborted as error:
            # Those after the one that failed are said to be aborted, and that may come last.
            cause: BaseException = error
            while isinstance(cause, PipelineAborted) and cause.__context__ is not None:
                cause = cause.__context__
            raise cause from None
        finally:
            self._statements_at_once = 1
            if self.pgconn.pipeline_status:  # answers are missing: what is sent next would be given them
                self.close()
        return [cursor.fetchall() for cursor in cursors]

    def _start_query(self) -> Generator[Any, Any, None]:
        """Begins a transaction if none is open. In a pipeline the driver would wait for the answer to BEGIN."""
        if self._pipeline is None:
            yield from super()._start_query()
        elif not self._autocommit and self.pgconn.transaction_status == TransactionStatus.IDLE:
            yield from self._exec_command(self._get_tx_start_command())

    def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
        """Runs one exchange with the server. Raises psycopg.OperationalError when the limit has passed."""
        if self._owes_answer:
            self._owes_answer = False
            rest = fetch_many(self.pgconn)
            super().wait(_limited(rest, self.answer_limit_s))
        return super().wait(_limited(gen, self.answer_limit_s, self._statements_at_once), *arguments, **options)


def _limited(exchange: Generator[Any, Any, Any], limit_s: float, answers: int = 1) -> Generator[Any, Any, Any]:
    """The exchange, which the driver resumes ten times a second even if nothing came. Of several answers each has the
    limit, from when something came last."""
    began_s = time.monotonic()
    deadline_s = began_s + limit_s
    try:
        wanted = next(exchange)
        while True:
            is_to_resume = turns.pause()
            ready = yield wanted
            if is_to_resume:
                turns.resume()
            if ready & Ready.R and answers > 1:
                deadline_s = min(time.monotonic() + limit_s, began_s + answers * limit_s)
            elif not ready and time.monotonic() > deadline_s:
                raise psycopg.OperationalError("the database did not answer in time")
            wanted = exchange.send(ready)
    except StopIteration as end:
        return end.value
