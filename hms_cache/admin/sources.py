"""The parts of the server that the management port reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from hms_cache.admin.bearers import Bearers
from hms_cache.admin.commands.subject import CommandParts
from hms_cache.admin.feed.listeners import ListenerGate
from hms_cache.cache.reads.assembly import Cache
from hms_cache.cache.verification.verify import KeptReplies
from hms_cache.clock import Clock
from hms_cache.config import Configuration
from hms_cache.lease.membership import Membership
from hms_cache.metrics import Metrics
from hms_cache.metrics.loads import Traffic
from hms_cache.metrics.operations import Operations
from hms_cache.metrics.ports import PortState
from hms_cache.metrics.thread_pools import ThreadPoolLoad
from hms_cache.notifications.poller import Poller
from hms_cache.store.snapshots import StoreReads
from hms_cache.store.txn_store import TxnStore
from hms_cache.thrift_gen.hive_metastore.ttypes import NotificationEventRequest, NotificationEventResponse
from hms_cache.values import frozen


@frozen
class AdminSources:
    """The parts of one server. Without a cache, ``cache_off_reason`` is the reason."""

    version: str
    uri: str
    """The URI for clients."""

    started_at_s: float
    """Epoch seconds."""

    clock: Clock
    configuration_in_force: Callable[[], Configuration]
    """Changes after a reload."""
    metrics: Metrics
    read_log_end: Callable[[], int]
    """Reads the last event's id by one statement; raises ``DatabaseUnavailable`` if the database does not answer."""

    read_notifications: Callable[[NotificationEventRequest, int | None], NotificationEventResponse]
    """Reads the log as for clients; raises ``DatabaseUnavailable``."""

    store: StoreReads
    """The database itself, not the cache."""
    transactions: TxnStore
    cache: Cache | None
    poller: Poller | None
    operations: Operations
    membership: Membership | None = None
    """Leases; None with `cache.exactness = check`."""
    listeners: ListenerGate | None = None
    """Access to the change feed by user; None without authorization."""
    bearers: Bearers | None = None
    """Determines the rights of the issuer's tokens; None if such tokens are not accepted."""
    kept_replies: KeptReplies | None = None
    """Reads from the database what is kept as encoded replies, for comparison."""
    cache_off_reason: str = ""
    thread_pool_loads: Callable[[], tuple[ThreadPoolLoad, ...]] = tuple
    """The current load of the thread pools."""
    traffic_by: Callable[[Literal["user", "address"]], tuple[Traffic, ...]] = lambda of: ()
    """The traffic of open connections."""
    ports: Callable[[], tuple[PortState, ...]] = tuple
    """The ports for clients."""
    pending_restart: Callable[[], tuple[str, ...]] = tuple
    """Settings whose new values, found at the last reload, need a restart."""

    @property
    def configuration(self) -> Configuration:
        """The settings in force."""
        return self.configuration_in_force()

    def command_parts(self) -> CommandParts | None:
        """The parts for commands; None without a cache."""
        if self.cache is None or self.poller is None:
            return None
        return CommandParts(self.cache, self.poller, self.store, self.clock, self.kept_replies)
