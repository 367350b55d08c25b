"""`Service`: one metastore in this process, built from a configuration, started and stopped as a whole."""

from __future__ import annotations

import logging
from contextlib import ExitStack

from hms_cache.app.database import ensure_first_rows, open_database, refusals_explained, require_schema
from hms_cache.app.event_loop import EventLoopThread
from hms_cache.app.options import server_options
from hms_cache.app.site import Site
from hms_cache.app.stores import build_stores
from hms_cache.config import Configuration
from hms_cache.errors import StartupError
from hms_cache.metrics import Metrics
from hms_cache.server.handlers.table import all_handlers
from hms_cache.server.service import MetastoreServer
from hms_cache.server.stores import Stores

_log = logging.getLogger(__name__)

#: Beside ``server.drain_timeout_s``, for closing what was cut off and writing the audit log out.
_STOP_MARGIN_S = 10.0


class Service:
    """A metastore. `start` and `stop` are called once each, by one thread.

    What was started is kept on a stack: `stop`, and a start that fails half-way, take it down in the opposite order.
    """

    def __init__(self, configuration: Configuration, metrics: Metrics | None = None) -> None:
        self._configuration = configuration
        self._settings = configuration.settings
        self.metrics = metrics or Metrics()
        self._site = Site(configuration, self.metrics)
        self._started = ExitStack()

    def start(self) -> str:
        """Open the database, listen, start the background work. Returns the URI that clients use.

        Raises `SchemaError`, `StartupError` (the port is taken, …) or `DatabaseUnavailableError`; nothing stays behind.
        """
        with ExitStack() as starting:
            database = open_database(self._settings, self.metrics.database)
            starting.callback(database.close)
            with refusals_explained():
                require_schema(database, self._settings)
                ensure_first_rows(database, self._settings)
            stores = build_stores(self._settings, database, self._site)
            uri = self._listen(stores, starting)
            self._started = starting.pop_all()
        return uri

    def stop(self) -> None:
        """Drain the listener (`server.drain_timeout_s` at most), end the background work, close the database."""
        self._started.close()

    def calls_by_method(self) -> dict[str, int]:
        """How often each method was called since the start."""
        return self._site.counters()

    def reload(self, configuration: Configuration) -> tuple[list[str], list[str]]:
        """Take the settings that a running server can take; (their names, the names of those that need a restart)."""
        taken, refused = self._configuration.reloadable_changes(configuration.settings)
        self._configuration = configuration
        return taken, refused

    def _listen(self, stores: Stores, starting: ExitStack) -> str:
        settings = self._settings.server
        loop = EventLoopThread()
        loop.start()
        starting.callback(loop.stop)
        options = server_options(self._settings)
        server = MetastoreServer(stores, all_handlers(), options, self.metrics.server.observe_call)
        try:
            host, port = loop.run(server.start(settings.host, settings.port))
        except OSError as error:
            raise StartupError(
                f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}",
                remedy="Is another metastore running there? Choose another port: --port 0 picks a free one.",
            ) from error
        starting.callback(lambda: loop.run(server.stop(), settings.drain_timeout_s + _STOP_MARGIN_S))
        listener = server.listener
        metrics = self.metrics.server
        metrics.connections.set_function(lambda: listener.connections)
        metrics.in_flight.set_function(lambda: listener.in_flight)
        metrics.bad_messages.set_function(lambda: listener.bad_messages)
        metrics.refused_connections.set_function(lambda: listener.refused_connections)
        metrics.refused_calls.set_function(lambda: listener.refused_calls)
        _log.info("listening on %s:%d", host, port)
        return f"thrift://{f'[{host}]' if ':' in host else host}:{port}"
