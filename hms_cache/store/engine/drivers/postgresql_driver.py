"""psycopg's connection with a time limit for each reply.

The database's own `statement_timeout` ends slow statements, but a hanging server or a lost host does not, and the
system's TCP timeouts do not apply as long as the peer's kernel acknowledges. psycopg would wait for ever.
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

from hms_cache.computing import scheduler
from hms_cache.errors import ConfigurationError

_REFUSED = ("22", "42", "55P02")
"""SQLSTATE: invalid values, settings that do not exist or that the account or a session may not change."""


class LimitedConnection(psycopg.Connection[Any]):
    """The driver's connection, but waiting longer than `answer_limit_s` seconds fails like a lost connection."""

    answer_limit_s = float("inf")
    has_pipelines = psycopg.Pipeline.is_supported()
    """Whether `fetch_in_pipeline` is supported: libpq has pipelines since version 14."""
    rolls_back_later = False
    """Whether `rollback` returns without waiting for the reply, which reads do not need."""
    _owes_answer = False
    _statements_at_once = 1
    """Number of replies in one exchange."""

    def rollback(self) -> None:
        """Ends the transaction. With `rolls_back_later` the reply is read before the next exchange, which saves a round
        trip.

        The server ends the snapshot immediately in any case. A lost connection is noticed at its next use. Prepared
        statements are kept: the driver would drop them after each rollback because of types and tables that a
        transaction created, and a read creates none.
        """
        if not self.rolls_back_later or self.pgconn.transaction_status != TransactionStatus.INTRANS:
            super().rollback()
            return
        with self.lock:
            self.pgconn.send_query(b"ROLLBACK")
            self.pgconn.flush()
            self._owes_answer = True

    def set_for_session(self, settings: Mapping[str, str]) -> None:
        """Sets them for this session, in one round trip.

        Raises ConfigurationError if the database refuses one, and what the driver does; then the connection must not be
        used.
        """
        calls = ", ".join("set_config(%s, %s, false)" for _ in settings)
        before = self.autocommit
        self.autocommit = True  # in a transaction, a rollback would undo them
        try:
            self.execute(f"SELECT {calls}", [text for setting in settings.items() for text in setting], prepare=False)
        except psycopg.Error as error:
            if (error.sqlstate or "").startswith(_REFUSED):
                reason = error.diag.message_primary
                raise ConfigurationError(f"database.url: PostgreSQL refuses its options: {reason}") from error
            raise
        self.autocommit = before

    def fetch_in_pipeline(self, queries: Sequence[tuple[str, Mapping[str, Any]]], *, ends: bool) -> list[Any]:
        """Sends all queries, preceded by BEGIN if no transaction is open, before it waits for the first reply; returns
        the rows of each. `ends`: COMMIT is sent with them. Raises the error of the first query that failed."""
        self._statements_at_once = len(queries)
        try:
            with self.pipeline() as pipeline:
                cursors = []
                for text, values in queries:
                    cursors.append(self.cursor().execute(text, values))
                    # Otherwise the server buffers the reply until the last one, and a hanging server would not be
                    # detected.
                    pipeline.command_queue.append(self.pgconn.send_flush_request)
                if ends:
                    self.cursor().execute("COMMIT", prepare=False)
        except PipelineAborted as error:
            # Queries after the failed one are reported as aborted, possibly last.
            cause: BaseException = error
            while isinstance(cause, PipelineAborted) and cause.__context__ is not None:
                cause = cause.__context__
            raise cause from None
        finally:
            self._statements_at_once = 1
            if self.pgconn.pipeline_status:  # replies are missing: they would be taken for those of the next queries
                self.close()
        return [cursor.fetchall() for cursor in cursors]

    def _start_query(self) -> Generator[Any, Any, None]:
        """Begins a transaction if none is open. In a pipeline the driver would wait for the reply to BEGIN."""
        if self._pipeline is None:
            yield from super()._start_query()
        elif not self._autocommit and self.pgconn.transaction_status == TransactionStatus.IDLE:
            yield from self._exec_command(self._get_tx_start_command())

    def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
        """Runs one exchange with the server. Raises psycopg.OperationalError after the time limit."""
        if self._owes_answer:
            self._owes_answer = False
            rest = fetch_many(self.pgconn)
            super().wait(_limited(rest, self.answer_limit_s))
        return super().wait(_limited(gen, self.answer_limit_s, self._statements_at_once), *arguments, **options)


def _limited(exchange: Generator[Any, Any, Any], limit_s: float, answers: int = 1) -> Generator[Any, Any, Any]:
    """Runs the exchange, which the driver resumes ten times a second even if no data arrives. With several replies, the
    limit applies to each, counted from the last arrival of data."""
    began_s = time.monotonic()
    deadline_s = began_s + limit_s
    try:
        awaited = next(exchange)
        while True:
            is_to_resume = scheduler.pause()
            ready = yield awaited
            if is_to_resume:
                scheduler.resume()
            if ready & Ready.R and answers > 1:
                deadline_s = min(time.monotonic() + limit_s, began_s + answers * limit_s)
            elif not ready and time.monotonic() > deadline_s:
                raise psycopg.OperationalError("the database did not answer in time")
            awaited = exchange.send(ready)
    except StopIteration as end:
        return end.value
