"""Sets up exact reads by lease: a member of the set beside the cache, and its guard on all writes."""

from __future__ import annotations

import logging
from contextlib import ExitStack

from hms_cache.app.caching import Caching
from hms_cache.config import Settings
from hms_cache.lease.membership import Membership
from hms_cache.lease.unannounced import UnannouncedWrites
from hms_cache.metrics.registry import LeaseMetrics
from hms_cache.notifications.event_log import History
from hms_cache.notifications.poller_steps import StepOutcome
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.dialects import settings_that_lose_commits
from hms_cache.values import frozen

_log = logging.getLogger(__name__)

#: Maximum duration of a statement: a renewal that takes longer than a lease is useless, and a waiting revocation is
#: repeated.
_STATEMENT_S = 5.0

#: Maximum duration of a read, renewal or change of a member's row. The same thread also tells others about writes in
#: progress, and they give up a write of which they hear nothing for one and a half leases. A writer that is stopped
#: while it holds the lock keeps its row locked for that time.
_LEAST_WAIT_S = 1.0


@frozen
class CacheMemory:
    """The cache, as seen by a member."""

    caching: Caching

    def position(self) -> int:
        """The event position of memory."""
        return self.caching.cache.shared.position

    def is_reading(self) -> bool:
        """Whether events that were read before this call may still be applied."""
        return self.caching.poller.is_stepping

    def prove(self, history: History) -> bool:
        """Whether this is the history of the position (P7)."""
        return self.caching.cache.freshness.prove(history)

    def catch_up(self, position: int, timeout_s: float) -> bool:
        """Applies events up to this position."""
        return self.caching.poller.ensure_applied(position, timeout_s)

    def verify(self) -> bool:
        """Whether the last applied event is still in the log unchanged (P7)."""
        return self.caching.poller.step_with_proof().outcome in (StepOutcome.CAUGHT_UP, StepOutcome.MORE)


def start_lease(
    settings: Settings, caching: Caching, database: Database, metrics: LeaseMetrics, stack: ExitStack
) -> Membership:
    """Joins the set: from now on reads are answered by lease and writes are announced. To be called before the server
    listens.

    Raises `StartupError`, `DatabaseUnavailableError`.
    """
    given = settings.lease
    times = ("statement_timeout_s", "pool_timeout_s", "connect_timeout_s")
    limits = {name: min(getattr(settings.database, name), _STATEMENT_S) for name in times}
    check_s = min(settings.database.check_timeout_s, max(_LEAST_WAIT_S, given.length_s / 3))
    quick = settings.database.model_copy(
        update={"pool_size": 4, "check_pool_size": 4, "check_timeout_s": check_s, **limits}
    )
    own = Database(settings.database.sqlalchemy_url(), quick, reserved_connections=1, clock=database.clock)
    membership = Membership(own, CacheMemory(caching), given.secret.get_secret_value().encode(), given.length_s)
    state = membership.state

    def follow(_position: int, is_reset: bool) -> None:
        if is_reset:
            state.forget_history()

    caching.cache.shared.position_listener = follow
    caching.cache.shared.transactions_listener = state.exempt
    caching.poller.on_step_end = state.stepped
    membership.start(given.host, given.port, given.address)
    stack.callback(membership.stop)
    membership.writes.guard(database)
    caching.cache.freshness.lease = state
    database.renewal_listeners.append(own.renew)
    _show(membership, caching, metrics)
    _log_lost_commits(database)
    return membership


def _log_lost_commits(database: Database) -> None:
    with database.checking() as connection:
        risky = settings_that_lose_commits(connection)
    if risky:
        _log.warning(
            "a crash of the database may lose committed transactions (%s): afterwards, answers by lease may contain"
            " lost changes until the lease ends",
            ", ".join(risky),
        )


def show_unannounced(database: Database, metrics: LeaseMetrics) -> None:
    """Exports what writes wait for on a server with `cache.exactness = check` beside members."""
    guard = database.write_guard
    if isinstance(guard, UnannouncedWrites):
        metrics.waits.set_function(lambda: guard.waits)
        metrics.revocations.set_function(lambda: guard.revocations.count)


def _show(membership: Membership, caching: Caching, metrics: LeaseMetrics) -> None:
    state, counts = membership.state, membership.transport.counts
    metrics.members.set_function(lambda: len(membership.rows))
    metrics.remaining.set_function(lambda: state.view().lease_remaining_s)
    metrics.is_held.set_function(lambda: float(caching.cache.freshness.holds_lease()))
    metrics.is_held_for_tables.set_function(lambda: float(state.view().answers_other_tables))
    metrics.open_writes.set_function(lambda: state.view().intents)
    metrics.alarm.set_function(lambda: float(bool(state.alarm_reason)))
    metrics.waits.set_function(lambda: membership.writes.waits)
    metrics.revocations.set_function(lambda: membership.writes.revocations.count)
    metrics.messages.include(lambda: {(kind,): count for kind, count in counts.copy().items()})
