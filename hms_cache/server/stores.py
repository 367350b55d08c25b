"""The stores that handlers use, each behind its contract."""

from __future__ import annotations

from typing import Protocol

from hms_cache.authentication.delegation.token_manager import TokenManager
from hms_cache.store.auxiliary.auxiliary_store import AuxiliaryStores
from hms_cache.store.contract.metadata import MetadataReads, MetadataWrites
from hms_cache.store.events.notification_log import NotificationLog
from hms_cache.store.txn_store import TxnStore
from hms_cache.values import frozen


class Site(Protocol):
    """Reports about the server itself: its configuration by Hive's keys, and its counters."""

    def config_value(self, name: str) -> str | None: ...

    def counters(self) -> dict[str, int]: ...


@frozen
class Stores:
    """Built once by `app`. `reads` is the cache, or the object store's reads when it is off."""

    reads: MetadataReads
    writes: MetadataWrites
    transactions: TxnStore
    notifications: NotificationLog
    site: Site
    auxiliary: AuxiliaryStores
    delegation: TokenManager | None = None
    """None: clients do not authenticate with Kerberos, so no tokens are issued."""
