"""Access control: commands require ``admin.token``; reading requires ``admin.read_token`` if that is set.

With ``admin.jwt_rights_claim``, the issuer's tokens grant the rights that they contain.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Collection
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from hms_cache.admin.bearers import Bearers
from hms_cache.admin.sources import AdminSources
from hms_cache.authentication.bearer_tokens import Bearer
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.config.sections import AdminSettings

#: Makes browsers ask for a password, which the buttons of pages need; programs send ``Bearer``.
CHALLENGE = 'Basic realm="hms-cache, password: the token", Bearer'

_COMMANDER = "hms_cache.commander"
"""Key of the request's scope: the user whose token authorized the command."""

Refusal = tuple[int, str]
"""Status and message."""


async def refusal(sources: AdminSources, request: Request) -> Response | None:
    """The reply to a request that may not command; None if it may."""
    settings = sources.configuration.settings.admin
    given = _token_of(request)
    token = settings.token.get_secret_value()
    if token and hmac.compare_digest(given.encode(), token.encode()):
        return None
    if sources.bearers is not None:
        found = await _bearer_with(sources.bearers, given, settings.jwt_command_rights, "command")
        if isinstance(found, Bearer):
            request.scope[_COMMANDER] = found.identity.user
            return None
        status, text = found
        return PlainTextResponse(f"{text}\n", status, {"WWW-Authenticate": CHALLENGE} if status == 401 else {})
    if not token:
        return PlainTextResponse("commands are off: set admin.token_file\n", 403)
    return PlainTextResponse("the token is missing or wrong\n", 401, {"WWW-Authenticate": CHALLENGE})


async def refusal_of_reading(settings: AdminSettings, authorization: str, bearers: Bearers | None) -> Refusal | None:
    """Returns the refusal of a request without the right to read; None if it has the right.

    The right to run commands includes the right to read.

    :param authorization: the request's header Authorization.
    """
    read_token = settings.read_token.get_secret_value()
    if not read_token and bearers is None:
        return None
    token = token_in(authorization)
    tokens = (read_token, settings.token.get_secret_value())
    if any(one and hmac.compare_digest(token.encode(), one.encode()) for one in tokens):
        return None
    if bearers is None:
        return 401, "the token is missing or wrong (setting admin.read_token)"
    found = await _bearer_with(bearers, token, (*settings.jwt_read_rights, *settings.jwt_command_rights), "read")
    return None if isinstance(found, Bearer) else found


async def _bearer_with(bearers: Bearers, token: str, rights: Collection[str], what: str) -> Bearer | Refusal:
    try:
        bearer = await bearers.find(token)
    except AuthenticationError as error:
        return 503 if error.outcome == "unavailable" else 401, str(error)
    if not bearer.rights.intersection(rights):
        return 403, f"user {bearer.identity.user} may not {what} here: the token has no right of {', '.join(rights)}"
    return bearer


def accepts_commands(sources: AdminSources) -> bool:
    """Whether commands can be authorized at all."""
    return sources.bearers is not None or bool(sources.configuration.settings.admin.token.get_secret_value())


def _token_of(request: Request) -> str:
    return token_in(request.headers.get("authorization", ""))


def token_in(authorization: str) -> str:
    """The token in a Bearer header, or in the password that a browser asked for; empty if there is neither."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except ValueError:
            return ""
    return ""


def requester(request: Request) -> str:
    """The user in the log and on the page of operations.

    A worker that forwards a command sends the user's name; this is accepted only through a socket file, which only this
    user's processes can open.
    """
    if request.client is not None and request.client.host:
        user = request.scope.get(_COMMANDER)
        return f"{user} at {request.client.host}" if user else request.client.host
    return unquote(request.headers.get("x-commanded-by", "")) or "this machine"
