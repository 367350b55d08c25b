"""Who may command: whoever carries ``admin.token``."""

from __future__ import annotations

import hmac

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from hms_cache.admin.sources import AdminSources


def refusal(sources: AdminSources, request: Request) -> Response | None:
    """The answer to a request that may not command; None for one that may."""
    token = sources.configuration.settings.admin.token.get_secret_value()
    if not token:
        return PlainTextResponse("commands are off: set admin.token_file\n", 403)
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if not hmac.compare_digest(given.encode(), token.encode()):
        return PlainTextResponse("the token is missing or wrong\n", 401, {"WWW-Authenticate": "Bearer"})
    return None


def who(request: Request) -> str:
    """Whom the log and the page of operations name.

    A worker that passes a command on says for whom; only through a socket file, which no stranger can open.
    """
    if request.client is not None and request.client.host:
        return request.client.host
    return request.headers.get("x-commanded-by") or "this machine"
