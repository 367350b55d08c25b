"""A small document from an address of http or https, within a time for all of it."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
import urllib.request
from functools import partial
from typing import Any

from hms_cache.authentication.cut_connections import cut_after


class FetchError(Exception):
    """There was no whole answer, or none that is HTTP."""


def fetched(url: str, timeout_s: float, *, ca_file: str | None, most_bytes: int) -> bytes:
    """What the address answers with status 200, up to one byte more than `most_bytes`. Redirections are not followed.

    `ca_file`: authorities of https addresses; None: those of the system. Raises FetchError.
    """
    sockets = _Sockets()
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect(), _Http(sockets)]
    if url.lower().startswith("https:"):
        handlers.append(_Https(sockets, ssl.create_default_context(cafile=ca_file)))
    ends_at_s = time.monotonic() + timeout_s
    try:
        with (
            cut_after(timeout_s, sockets.end),
            urllib.request.build_opener(*handlers).open(url, timeout=timeout_s) as answer,
        ):
            found: bytes = answer.read(most_bytes + 1)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise FetchError(str(error) or type(error).__name__) from error
    if time.monotonic() >= ends_at_s:  # what was cut may look whole
        raise FetchError(f"no whole answer within {timeout_s:g} s")
    return found


class _Sockets:
    """What a fetch has opened. What it opens when its time is over is no use: nobody would cut it any more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: list[socket.socket] = []
        self._is_over = False

    def note(self, opened: socket.socket) -> None:
        """Raises TimeoutError when the time is over."""
        with self._lock:
            self._opened.append(opened)
            if self._is_over:
                raise TimeoutError("connecting took all of the time")

    def end(self) -> tuple[socket.socket, ...]:
        """The time is over: those that are open."""
        with self._lock:
            self._is_over = True
            return tuple(self._opened)


class _Link(http.client.HTTPConnection):
    def __init__(self, sockets: _Sockets, host: str, **options: Any) -> None:
        super().__init__(host, **options)
        self._sockets = sockets
        self._create_connection: Any = self._noted_connection

    def _noted_connection(self, *arguments: Any) -> socket.socket:
        """Notes the socket before a proxy is asked for a tunnel on it."""
        opened = socket.create_connection(*arguments)
        self._sockets.note(opened)
        return opened

    def connect(self) -> None:
        """Notes the socket, which TLS makes anew, and which an answer takes away from its connection."""
        super().connect()
        self._sockets.note(self.sock)


class _SecureLink(_Link, http.client.HTTPSConnection):
    """Notes its socket, too."""


class _Http(urllib.request.HTTPHandler):
    def __init__(self, sockets: _Sockets) -> None:
        super().__init__()
        self._sockets = sockets

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Over a connection that notes its socket."""
        link: Any = partial(_Link, self._sockets)
        return self.do_open(link, req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, sockets: _Sockets, context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self._sockets, self._tls = sockets, context

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Over a connection that notes its socket."""
        link: Any = partial(_SecureLink, self._sockets)
        return self.do_open(link, req, context=self._tls)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The address is the trust: another one is not."""

    def redirect_request(self, *arguments: Any, **_: Any) -> None:
        """None: the answer is an error."""
        return
