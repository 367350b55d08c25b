"""Threads for what may take long: pages and probes share forty, and none of them may wait for a command to end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

Found = TypeVar("Found")


async def on_own_thread(function: Callable[..., Found], *arguments: Any) -> Found:
    """Runs it beside those forty. Whoever calls this has a limit of its own."""
    return await to_thread.run_sync(function, *arguments, limiter=CapacityLimiter(1))
