"""Fetches a small document over HTTP or HTTPS, with a time limit for the whole transfer."""

from __future__ import annotations

import http.client
import ssl
import time
import urllib.request
from functools import partial
from typing import Any

from hms_cache.socket_deadlines import OpenedSockets, opened_within


class FetchError(Exception):
    """The answer was incomplete or not HTTP."""


def fetched(url: str, timeout_s: float, *, ca_file: str | None, max_bytes: int) -> bytes:
    """The body that the address returns with status 200, at most `max_bytes` + 1 bytes. Redirections are not followed.
    Raises FetchError.

    :param ca_file: certificate authorities for https addresses; None: those of the system.
    """
    ends_at_s = time.monotonic() + timeout_s
    try:
        with opened_within(timeout_s) as sockets, _opener(sockets, url, ca_file).open(url, timeout=timeout_s) as answer:
            found: bytes = answer.read(max_bytes + 1)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise FetchError(str(error) or type(error).__name__) from error
    if time.monotonic() >= ends_at_s:  # a truncated answer may look complete
        raise FetchError(f"no whole answer within {timeout_s:g} s")
    return found


def _opener(sockets: OpenedSockets, url: str, ca_file: str | None) -> urllib.request.OpenerDirector:
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect(), _Http(sockets)]
    if url.lower().startswith("https:"):
        handlers.append(_Https(sockets, ssl.create_default_context(cafile=ca_file)))
    return urllib.request.build_opener(*handlers)


class _Link(http.client.HTTPConnection):
    """A connection whose sockets are closed at the time limit, even before a proxy is asked for a tunnel."""

    def __init__(self, sockets: OpenedSockets, host: str, **options: Any) -> None:
        super().__init__(host, **options)
        self._create_connection: Any = sockets.connect


class _SecureLink(_Link, http.client.HTTPSConnection):
    """The same over TLS."""


class _Http(urllib.request.HTTPHandler):
    def __init__(self, sockets: OpenedSockets) -> None:
        super().__init__()
        self._sockets = sockets

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Opens a connection that ends in time."""
        link: Any = partial(_Link, self._sockets)
        return self.do_open(link, req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, sockets: OpenedSockets, context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self._sockets, self._tls = sockets, context

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Opens a connection that ends in time."""
        link: Any = partial(_SecureLink, self._sockets)
        return self.do_open(link, req, context=self._tls)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirections: only the configured address is trusted."""

    def redirect_request(self, *arguments: Any, **_: Any) -> None:
        """Returns None: the redirection is treated as an error."""
        return
