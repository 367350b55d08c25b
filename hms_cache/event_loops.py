"""Which event loop this process uses."""

from __future__ import annotations

import asyncio


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed."""
    try:
        import uvloop
    except ImportError:  # Windows, where uvloop does not exist
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
