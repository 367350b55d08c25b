"""Checks of every request to the management port: its host, origin and size.

A page of another site in an operator's browser can reach this port, too. To read replies it needs a name that leads
here (DNS rebinding), so only host names are accepted that an attacker cannot own. To send commands it needs no such
name, so a browser's request must come from a page of this port. Facts: Fetch Metadata (``Sec-Fetch-Site``), RFC 6454
(``Origin``), RFC 9110 (421 Misdirected Request).
"""

from __future__ import annotations

import fnmatch
import ipaddress
import socket
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute
from starlette.types import Message, Receive, Scope, Send

from hms_cache.admin.access import CHALLENGE, refusal_of_reading
from hms_cache.admin.bearers import Bearers
from hms_cache.config.secrets import redacted
from hms_cache.config.sections import AdminSettings

#: No command has a body. This size is accepted nevertheless; a browser's empty form has a few bytes.
LARGEST_BODY_BYTES = 64 * 1024

#: Pages load and run nothing, cannot be embedded in other sites, and send forms only to this server.
_CONTENT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)

PROTECTION = (
    (b"content-security-policy", _CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"vary", b"Accept"),
)
"""Headers of every reply. They are set here and not by pages, because a page may come from another worker."""

_READING = frozenset({"GET", "HEAD", "OPTIONS"})

_FOR_PROBES = frozenset({"/livez", "/readyz"})
"""Paths that need no token: kubelets send none, and these replies only say whether to send calls here."""


def is_allowed_host(host: str, patterns: Sequence[str]) -> bool:
    """Whether a request with this ``Host`` is answered.

    Accepted are addresses (no other name leads here), names without a dot (which cannot be registered), this machine's
    own names, and those that match a pattern in ``admin.allowed_hosts``.
    """
    name = _name_of(host)
    if name is None:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        pass
    else:
        return True
    if not all(character.isalnum() or character in "-._" for character in name) or not name.isascii():
        return False
    own = socket.gethostname().lower().rstrip(".")
    return bool(name) and (
        "." not in name or name == own or any(fnmatch.fnmatchcase(name, pattern.lower()) for pattern in patterns)
    )


def _name_of(host: str) -> str | None:
    """The name or address without port and brackets, in lower case; None if it is invalid."""
    try:
        parts = urlsplit(f"//{host.strip()}")
        _ = parts.port
    except ValueError:
        return None
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc or parts.hostname is None:
        return None
    return parts.hostname.rstrip(".")


class Guard:
    """Refuses requests before they reach a route, and masks secrets in replies.

    ``refused`` is called once for each refusal. Requests of other workers come through a socket file, which only this
    user's processes can open, and are not checked.
    """

    def __init__(
        self,
        app: Starlette,
        settings: Callable[[], AdminSettings],
        refused: Callable[[], None],
        self_authorizing: frozenset[str] = frozenset(),
        bearers: Bearers | None = None,
    ) -> None:
        """`settings`: returns those in force. `self_authorizing`: paths whose routes check access themselves.
        `bearers`: None if tokens of an issuer are not accepted."""
        self._bearers = bearers
        self._unguarded = _FOR_PROBES | self_authorizing
        self._app = app
        self._settings = settings
        self._refused = refused

    @property
    def routes(self) -> list[BaseRoute]:
        """The routes of the application behind the guard."""
        return self._app.routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        problem = await self._problem(scope) if scope.get("client") else None
        if problem is None:
            await self._app(scope, receive, _masking(_protecting(send)))
            return
        self._refused()
        status, text = problem
        more = {"WWW-Authenticate": CHALLENGE} if status == 401 else {}
        await PlainTextResponse(f"{text}\n", status, {"Connection": "close", **more})(scope, receive, _protecting(send))

    async def _problem(self, scope: Scope) -> tuple[int, str] | None:
        """Status and message of a refusal; None if the request is accepted."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts = headers.get("host", [])
        if len(hosts) > 1:
            return 400, "more than one Host"
        # Without a Host header it comes from a program with HTTP/1.0: every browser sends one.
        if hosts and not is_allowed_host(hosts[0], self._settings().allowed_hosts):
            return 421, "this host's name is not answered: add it to admin.allowed_hosts"
        if scope["method"] not in _READING and not _comes_from_us(headers, hosts[0] if hosts else ""):
            return 403, "refused: the request comes from another site"
        if scope["path"] not in self._unguarded:
            authorization = headers.get("authorization", [""])[0]
            problem = await refusal_of_reading(self._settings(), authorization, self._bearers)
            if problem is not None:
                return problem
        length = headers.get("content-length", ["0"])[0]
        if not length.isdigit() or int(length) > LARGEST_BODY_BYTES:
            return 413, f"no request here has a body of more than {LARGEST_BODY_BYTES} bytes"
        return None


def _comes_from_us(headers: dict[str, list[str]], host: str) -> bool:
    """Whether the request was not caused by a page of another site. Programs send neither header."""
    if any(site not in ("same-origin", "none") for site in headers.get("sec-fetch-site", [])):
        return False
    for origin in headers.get("origin", []):
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        if parts.scheme not in ("http", "https") or parts.netloc.lower() != host.strip().lower():
            return False
    return True


def _protecting(send: Send) -> Send:
    """Adds the protective headers to replies."""

    async def protected(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *PROTECTION]}
        await send(message)

    return protected


def _masking(send: Send) -> Send:
    """Masks secrets that got into a reply, for example in a driver's message.

    Lengths are sent before bodies, so a mask has the length of what it replaces.
    """

    async def masked(message: Message) -> None:
        body = message.get("body") if message["type"] == "http.response.body" else None
        if body:
            text = bytes(body).decode("utf-8", "surrogateescape")
            shown = redacted(text)
            if shown is not text and shown != text:
                shown_bytes = shown.encode("utf-8", "surrogateescape")[: len(body)]
                message = {**message, "body": shown_bytes.ljust(len(body))}
        await send(message)

    return masked
