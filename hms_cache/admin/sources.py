"""What the management port looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hms_cache.cache.assembly import Cache
from hms_cache.clock import Clock
from hms_cache.config import Configuration
from hms_cache.metrics import Metrics
from hms_cache.notifications.poller import Poller


@dataclass(frozen=True, slots=True)
class AdminSources:
    """The parts of one server. Without a cache, ``cache_off_reason`` says why there is none."""

    version: str
    uri: str
    """What clients connect to."""

    started_at_s: float
    """Epoch seconds."""

    clock: Clock
    configuration: Configuration
    metrics: Metrics
    ask_database: Callable[[], None]
    """One statement; raises ``DatabaseUnavailable`` when the database does not answer."""

    cache: Cache | None
    poller: Poller | None
    cache_off_reason: str = ""
