"""Threads for long work. Pages and probes share forty threads, which must not wait for a command to end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

Found = TypeVar("Found")


async def on_own_thread(function: Callable[..., Found], *arguments: Any) -> Found:
    """Runs the function on an additional thread. The callers have limits of their own."""
    return await to_thread.run_sync(function, *arguments, limiter=CapacityLimiter(1))
