"""The load of a thread pool of the server, for the pages."""

from __future__ import annotations

from hms_cache.values import frozen


@frozen
class ThreadPoolLoad:
    """The state of one thread pool at one moment."""

    pool: str
    threads: int
    """Number of threads that take new calls, without those that stuck calls occupy."""
    running: int
    waiting: int
    max_waiting: int
    """Maximum number of waiting calls; further calls are refused."""
    oldest_wait_s: float
    stuck: int
    """Calls that have exceeded `server.request_timeout_s` and still occupy a thread."""
    refused: int
    started: int
    mean_wait_s: float
    """Mean wait of all calls that have started."""
    deferred: int = 0
    """Waiting calls with large replies that let others pass (`server.large_reply_threads`)."""
