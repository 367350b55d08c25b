"""Fixtures of the cache tests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.clock import Clock, SystemClock
from hms_cache.config import Settings
from hms_cache.notifications.messages import MessageFormat
from hms_cache.store.engine.database import Database
from tests.cache.world import Server

MakeServer = Callable[..., Server]


@pytest.fixture
def servers(sqlite_database: Database, tmp_path: Path) -> Iterator[MakeServer]:
    """Creates servers on one database: `servers(options, clock, settings)`. At the end, they are closed and their
    caches checked."""
    url = sqlite_database.url.render_as_string(hide_password=False)
    with contextlib.ExitStack() as stack:

        def make(
            options: CacheOptions | None = None,
            clock: Clock | None = None,
            settings: Settings | None = None,
            message_format: MessageFormat = MessageFormat.JSON,
        ) -> Server:
            server = Server(
                url,
                tmp_path / "warehouse",
                options or CacheOptions(),
                clock or SystemClock(),
                settings or Settings(),
                message_format,
            )
            stack.callback(server.close)
            return server

        yield make
