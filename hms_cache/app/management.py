"""The management port in the process: its socket, event loop and thread."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial

import uvicorn

from hms_cache.admin.application import build_application
from hms_cache.admin.feed.change_feed import ChangeFeed
from hms_cache.admin.health import DatabaseProbe
from hms_cache.admin.history import SAMPLE_INTERVAL_S, History
from hms_cache.admin.siblings import Siblings
from hms_cache.admin.sources import AdminSources
from hms_cache.app.background import BackgroundTask
from hms_cache.app.management_protocol import ConnectionLimits, GuardedProtocol, on_each_socket
from hms_cache.app.security.certificates import server_context
from hms_cache.app.system.ports import holding_socket, listening_socket
from hms_cache.config.settings import DEFAULT_ORIGIN
from hms_cache.errors import PortError
from hms_cache.server.transports.client_networks import client_networks
from hms_cache.server.transports.tls import TlsPort
from hms_cache.values import frozen

_log = logging.getLogger(__name__)

#: How long replies in progress may take when the server stops.
_STOP_TIMEOUT_S = 5

#: Interval of updating the date of replies, which has a resolution of seconds.
_DATE_INTERVAL_S = 1.0

_PLAIN_REFUSAL = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    b"this port speaks HTTPS: ask for https://\n"
)
"""Reply to a client that speaks plain HTTP to a port with TLS."""


@frozen
class Management:
    """The running port."""

    address: tuple[str, int]
    probe: DatabaseProbe
    history: History
    tls: TlsPort | None
    """TLS of the port; a reload replaces its context."""

    @property
    def url(self) -> str:
        """The address of the port."""
        host, port = self.address
        return f"{'https' if self.tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


class _Server(uvicorn.Server):
    """uvicorn's server, but stopped by a call: uvicorn's own polls ten times a second in each process."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ends = asyncio.Event()

    def end(self) -> None:
        """Stops the server, now or as soon as it has started. Can be called from any thread."""
        self.should_exit = True
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it has ended already
                loop.call_soon_threadsafe(self._ends.set)

    async def main_loop(self) -> None:
        """Returns when the server is to stop."""
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):  # sets the date of replies
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ends.wait(), _DATE_INTERVAL_S)


def start_management(sources: AdminSources, stack: ExitStack, siblings: Siblings) -> Management:
    """Listens on ``admin.host:admin.port``. Actions for the shutdown are pushed onto the stack.

    Uses an event loop of its own, so that a scrape never delays a call. Raises ``StartupError`` if an explicitly
    configured port is in use; instead of the default port, a free one is used then (two servers on one machine).
    """
    settings = sources.configuration.settings.admin
    shared_port = siblings.management_port
    listening = _chosen_or_free(
        partial(listening_socket, shared=shared_port is not None),
        settings.host,
        settings.port if shared_port is None else shared_port,
        is_chosen=sources.configuration.origin("admin.port") != DEFAULT_ORIGIN,
    )
    host, port = listening.getsockname()[:2]
    sockets = [listening, *_listen_for_siblings(siblings, stack)]
    probe = DatabaseProbe(sources.read_log_end, sources.clock, _start_probe)
    history = History(sources, probe)
    tls = _tls(sources)
    limits = ConnectionLimits(
        settings.max_connections,
        settings.request_timeout_s,
        settings.max_listeners,
        settings.max_listeners_per_address,
        client_networks(sources.configuration.settings.server.client_ipv6_prefix_length),
    )
    feed = ChangeFeed(sources)
    metrics = sources.metrics.management
    metrics.connections.set_function(lambda: limits.connections.in_use)
    metrics.refused_connections.set_function(lambda: limits.connections.refused)
    metrics.timeouts.set_function(lambda: limits.timeouts)
    metrics.bad_requests.set_function(lambda: limits.bad_requests)
    metrics.listeners.set_function(lambda: limits.listeners.in_use)
    metrics.refused_listeners.set_function(lambda: limits.listeners.refused)
    server = _Server(
        uvicorn.Config(
            build_application(sources, probe, history, siblings, feed),
            http=on_each_socket(partial(GuardedProtocol, limits), tls, limits.network_of),  # type: ignore[arg-type]
            ws="none",
            server_header=False,
            proxy_headers=False,  # a client's own statement about its address is not trusted
            log_config=None,
            log_level="warning",
            access_log=False,
            lifespan="off",
            loop="asyncio",
            timeout_graceful_shutdown=_STOP_TIMEOUT_S,
        )
    )
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=sockets)), name="hms-admin", daemon=True)
    thread.start()

    def stop() -> None:
        feed.close()
        server.end()
        thread.join(_STOP_TIMEOUT_S)
        listening.close()

    stack.callback(stop)
    sampling = BackgroundTask("hms-history", lambda: _sample(history))
    sampling.start()
    stack.callback(sampling.stop, _STOP_TIMEOUT_S)
    _log.info("management port on %s:%d", host, port)
    return Management((host, port), probe, history, tls)


def _tls(sources: AdminSources) -> TlsPort | None:
    settings = sources.configuration.settings
    if not settings.admin.tls_enabled:
        return None
    return TlsPort(
        server_context(settings.server, requests_client_certificates=False),
        settings.server.tls_handshake_timeout_s,
        lambda data: _PLAIN_REFUSAL,
        None,
    )


def _sample(history: History) -> float:
    history.sample()
    return SAMPLE_INTERVAL_S


def _start_probe(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="hms-probe", daemon=True).start()


def hold_management_port(host: str, port: int, *, is_chosen: bool) -> socket.socket:
    """Reserves the port on which several workers listen. The returned socket itself never listens.

    Raises ``StartupError`` if an explicitly configured port is in use; instead of the default port, a free one is used.
    """
    return _chosen_or_free(holding_socket, host, port, is_chosen=is_chosen)


def _chosen_or_free(
    open_socket: Callable[[str, int], socket.socket], host: str, port: int, *, is_chosen: bool
) -> socket.socket:
    try:
        return _opened(open_socket, host, port)
    except PortError as error:
        if is_chosen:
            raise
        _log.warning("%s; taking a free one", error.problem)
    return _opened(open_socket, host, 0)


def _opened(open_socket: Callable[[str, int], socket.socket], host: str, port: int) -> socket.socket:
    try:
        return open_socket(host, port)
    except (OSError, UnicodeError) as error:
        raise PortError(
            f"{host}:{port}, the management port",
            error,
            if_in_use="Choose another: --set admin.port=0 picks a free one, --set admin.enabled=false leaves it out.",
        ) from error


def _listen_for_siblings(siblings: Siblings, stack: ExitStack) -> list[socket.socket]:
    """Opens the socket file for the other workers. Without one, commands report that this worker cannot be reached."""
    path = siblings.own_path
    if path is None:
        return []
    listening = socket.socket(socket.AF_UNIX)
    try:
        path.unlink(missing_ok=True)
        listening.bind(str(path))
        listening.listen()
    except OSError as error:
        _log.warning("other workers cannot reach this one: no socket file %s: %s", path, error)
        listening.close()
        return []
    stack.callback(listening.close)
    return [listening]
