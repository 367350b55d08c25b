"""What every request to the management port passes first: the host that it names, its origin, its size.

A page of a stranger in an operator's browser reaches this port, too. Reading its answers needs a name that leads to us
(DNS rebinding), which is why a host's name is only taken where a stranger cannot own it; sending commands needs none,
which is why a browser's request has to come from a page of ours. Facts: Fetch Metadata (``Sec-Fetch-Site``), RFC 6454
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

#: No command has a body. This much may be sent all the same; a browser's empty form is a few bytes.
LARGEST_BODY_BYTES = 64 * 1024

#: Pages load nothing and run nothing, are shown in no page of another site, and send forms to this server only.
_CONTENT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)

PROTECTION = (
    (b"content-security-policy", _CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"vary", b"Accept"),
)
"""Headers of every answer. They are given here and not by pages: a page may be another worker's, handed on."""

_READING = frozenset({"GET", "HEAD", "OPTIONS"})

_FOR_PROBES = frozenset({"/livez", "/readyz"})
"""What needs no token: kubelets carry none, and the answers say no more than whether to send calls here."""


def is_allowed_host(host: str, patterns: Sequence[str]) -> bool:
    """Whether the ``Host`` of a request may be answered.

    Addresses always (no name leads anywhere else), names without a dot (nobody can register one), this machine's own,
    and what matches a pattern of ``admin.allowed_hosts``.
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
    """The name or address without port and brackets, in lower case; None for what is neither."""
    try:
        parts = urlsplit(f"//{host.strip()}")
        _ = parts.port
    except ValueError:
        return None
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc or parts.hostname is None:
        return None
    return parts.hostname.rstrip(".")


class Guard:
    """Refuses requests before any route sees them, and masks secrets in whatever text is answered.

    ``refused`` is called once for each. Requests of other workers come through a socket file, which no stranger can
    open, and pass.
    """

    def __init__(
        self,
        app: Starlette,
        settings: Callable[[], AdminSettings],
        refused: Callable[[], None],
        judging_themselves: frozenset[str] = frozenset(),
        bearers: Bearers | None = None,
    ) -> None:
        """`settings`: those in force. `judging_themselves`: paths whose routes decide who may read them. `bearers`:
        None where tokens of an issuer open nothing."""
        self._bearers = bearers
        self._unguarded = _FOR_PROBES | judging_themselves
        self._app = app
        self._settings = settings
        self._refused = refused

    @property
    def routes(self) -> list[BaseRoute]:
        """Of the application behind it."""
        return self._app.routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
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
        """Status and sentence of a refusal."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts = headers.get("host", [])
        if len(hosts) > 1:
            return 400, "more than one Host"
        # Without one it is a program's request of HTTP/1.0: every browser sends it.
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
    """Whether it was not a page of another site that had a browser send it; programs send neither header."""
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
    """Answers tell browsers what they may do with them."""

    async def protected(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *PROTECTION]}
        await send(message)

    return protected


def _masking(send: Send) -> Send:
    """Answers are texts; a secret that got into one, in a driver's message for instance, goes no further.

    Lengths are sent before bodies: a mask is filled up to the length of what it hides.
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
