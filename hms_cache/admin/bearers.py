"""The issuer's bearer tokens on the management port: their users and rights."""

from __future__ import annotations

import asyncio

from hms_cache.authentication.bearer_tokens import Bearer, BearerTokens, is_token_shaped
from hms_cache.authentication.mechanism import AuthenticationError

CHECKS_AT_ONCE = 4
"""Threads that check tokens. They may wait for the issuer's server, which must not block pages."""


class Bearers:
    """Checks the issuer's tokens for the management port. Everything runs on its event loop."""

    def __init__(self, tokens: BearerTokens) -> None:
        self._tokens = tokens
        self._places = asyncio.Semaphore(CHECKS_AT_ONCE)

    async def find(self, token: str) -> Bearer:
        """The bearer of a token. Raises AuthenticationError."""
        bearer = self._tokens.cached_bearer(token)
        if bearer is not None:
            return bearer
        if not is_token_shaped(token):
            raise AuthenticationError("the token is missing or wrong")
        async with self._places:
            return await asyncio.to_thread(self._tokens.check_bearer, token)
