"""What the management port looks at."""

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
    """The parts of one server. Without a cache, ``cache_off_reason`` says why there is none."""

    version: str
    uri: str
    """What clients connect to."""

    started_at_s: float
    """Epoch seconds."""

    clock: Clock
    configuration_in_force: Callable[[], Configuration]
    """Changes with a reload."""
    metrics: Metrics
    read_log_end: Callable[[], int]
    """The last event's id, by one statement; raises ``DatabaseUnavailable`` when the database does not answer."""

    read_notifications: Callable[[NotificationEventRequest, int | None], NotificationEventResponse]
    """As clients read the log; raises ``DatabaseUnavailable``."""

    store: StoreReads
    """The database, not through the cache."""
    transactions: TxnStore
    cache: Cache | None
    poller: Poller | None
    operations: Operations
    membership: Membership | None = None
    """Leases; None under `cache.exactness = check`."""
    listeners: ListenerGate | None = None
    """Who may listen to the change feed, by user; None without authorization."""
    bearers: Bearers | None = None
    """Knows what bearers of the issuer's tokens may do here; None where such tokens open nothing."""
    kept_replies: KeptReplies | None = None
    """Asks the database what is kept encoded, for comparing."""
    cache_off_reason: str = ""
    thread_pool_loads: Callable[[], tuple[ThreadPoolLoad, ...]] = tuple
    """What the thread pools do now."""
    traffic_by: Callable[[Literal["user", "address"]], tuple[Traffic, ...]] = lambda of: ()
    """What open connections have carried."""
    ports: Callable[[], tuple[PortState, ...]] = tuple
    """Those of clients."""
    pending_restart: Callable[[], tuple[str, ...]] = tuple
    """Settings whose new values, seen at the last reload, wait for a restart."""

    @property
    def configuration(self) -> Configuration:
        """The settings in force."""
        return self.configuration_in_force()

    def command_parts(self) -> CommandParts | None:
        """What commands work on; None without a cache."""
        if self.cache is None or self.poller is None:
            return None
        return CommandParts(self.cache, self.poller, self.store, self.clock, self.kept_replies)
