"""What one thread pool of the server is doing, as the pages show it."""

from __future__ import annotations

from hms_cache.values import frozen


@frozen
class ThreadPoolLoad:
    """One thread pool at one moment."""

    pool: str
    threads: int
    """That take new calls; those that a stuck call holds are not among them."""
    running: int
    waiting: int
    max_waiting: int
    """One more is refused."""
    oldest_wait_s: float
    stuck: int
    """Calls past `server.request_timeout_s` whose thread has not come back."""
    refused: int
    begun: int
    mean_wait_s: float
    """Of all that have begun."""
    held_back: int = 0
    """Of those that wait: calls with large replies that let others pass (`server.large_reply_threads`)."""
