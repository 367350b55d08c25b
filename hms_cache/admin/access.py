"""Who may command: whoever carries ``admin.token``. Who may read: anyone, or whoever carries ``admin.read_token``."""

from __future__ import annotations

import base64
import hmac

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from hms_cache.admin.sources import AdminSources
from hms_cache.config.sections import AdminSettings

#: Browsers ask for a password then, which the button of a page needs; programs send ``Bearer``.
CHALLENGE = 'Basic realm="hms-cache, password: the token", Bearer'


def refusal(sources: AdminSources, request: Request) -> Response | None:
    """The answer to a request that may not command; None for one that may."""
    token = sources.configuration.settings.admin.token.get_secret_value()
    if not token:
        return PlainTextResponse("commands are off: set admin.token_file\n", 403)
    if not hmac.compare_digest(_token_of(request).encode(), token.encode()):
        return PlainTextResponse("the token is missing or wrong\n", 401, {"WWW-Authenticate": CHALLENGE})
    return None


def refusal_of_reading(settings: AdminSettings, authorization: str) -> tuple[int, str] | None:
    """Status and sentence for a request that may not even read; None for one that may.

    `authorization`: its header. Whoever may command may read.
    """
    wanted = settings.read_token.get_secret_value()
    if not wanted:
        return None
    given = token_in(authorization).encode()
    tokens = (wanted, settings.token.get_secret_value())
    if any(token and hmac.compare_digest(given, token.encode()) for token in tokens):
        return None
    return 401, "the token is missing or wrong (setting admin.read_token)"


def refusal_of_button(sources: AdminSources, request: Request) -> Response | None:
    """The same for what changes nothing but costs database time: without a token of the server's anyone may."""
    if not sources.configuration.settings.admin.token.get_secret_value():
        return None
    return refusal(sources, request)


def _token_of(request: Request) -> str:
    return token_in(request.headers.get("authorization", ""))


def token_in(authorization: str) -> str:
    """As a bearer's, or as the password that a browser asks for; empty for neither."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except ValueError:
            return ""
    return ""


def who(request: Request) -> str:
    """Whom the log and the page of operations name.

    A worker that passes a command on says for whom; only through a socket file, which no stranger can open.
    """
    if request.client is not None and request.client.host:
        return request.client.host
    return request.headers.get("x-commanded-by") or "this machine"
