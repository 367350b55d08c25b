"""A server without sockets for clients, as a member of a set."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import literal_column, select

from hms_cache.lease.membership import Membership
from hms_cache.notifications.event_log import History
from hms_cache.notifications.poller_steps import StepOutcome
from hms_cache.store.engine.database import Database
from tests.cache.world import Server

LENGTH_S = 2.0
MAX_WAIT_S = 30.0
SECRET = b"a secret of this test"


class Member:
    """A server without sockets for clients, as a member of the set."""

    def __init__(self, url: str, directory: Path, trial_s: float = 0.0, *, port: int = 0, address: str = "") -> None:
        """`trial_s`: 0 if each writer of the test is a member. `port` and `address`: as the settings."""
        self.server = Server(url, directory)
        self.freshness = self.server.cache.freshness
        self.shared = self.server.cache.shared
        self.membership = Membership(Database(url), self, SECRET, LENGTH_S, trial_s=trial_s)
        self.state = self.membership.state
        self.membership.start("127.0.0.1", port, address)
        self.membership.writes.guard(self.server.database)
        self.freshness.lease = self.state
        self.shared.transactions_listener = self.state.exempt
        self.shared.position_listener = self._follow
        self.server.poller.on_step_end = self.state.stepped

    def _follow(self, _position: int, is_reset: bool) -> None:
        if is_reset:
            self.state.forget_history()

    def position(self) -> int:
        return self.shared.position if hasattr(self, "shared") else -1

    def is_reading(self) -> bool:
        return self.server.poller.is_stepping

    def prove(self, history: History) -> bool:
        return self.freshness.prove(history)

    def catch_up(self, position: int, timeout_s: float) -> bool:
        return self.server.poller.ensure_applied(position, timeout_s)

    def verify(self) -> bool:
        return self.server.poller.step_with_proof().outcome in (StepOutcome.CAUGHT_UP, StepOutcome.MORE)

    def wait_for_lease(self) -> None:
        wait_until(self.freshness.holds_lease)

    def wait_for(self, other: Member) -> None:
        """Waits for a connection to the other."""
        wait_until(lambda: other.membership.member in self.membership.transport.connected())

    def is_wrong(self) -> bool:
        """Whether it would answer a read without the committed state."""
        # In this order: a lease that is lost meanwhile is no violation, and neither is an event that arrives meanwhile.
        head = self.server.log.head().last_event_id
        held = self.freshness.holds_lease()
        return held and self.shared.position < head

    def close(self) -> None:
        self.membership.stop()
        self.server.close()

    def falls_silent(self) -> None:
        """Its thread stops and it receives nothing; its state of the lease remains."""
        self.membership._stopped.set()
        self.state.changed.set()
        self.membership._thread.join(MAX_WAIT_S)
        self.membership.transport._on_message = lambda *_: None


def tells_of_another_server(database: Database) -> None:
    """From now on, its connections, including open ones, appear to belong to another database server, as if a proxy had
    moved them. On MariaDB and PostgreSQL."""
    text = database.history_text
    with database.checking() as connection:
        position, history = text.statement(connection).selected_columns
    text._statement = select(position, literal_column(f"CONCAT('moved-', {history})"))


def wait_until(condition: Callable[[], bool]) -> None:
    """With a time limit; another thread satisfies the condition."""
    deadline_s = time.monotonic() + MAX_WAIT_S
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come about"
        pause.wait(0.01)
