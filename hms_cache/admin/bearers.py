"""Bearer tokens of the issuer on the management port: whose they are, and what they say that their bearers may do."""

from __future__ import annotations

import asyncio

from hms_cache.authentication.bearer_tokens import Bearer, BearerTokens
from hms_cache.authentication.mechanism import AuthenticationError

CHECKS_AT_ONCE = 4
"""Threads that check tokens: they may wait for the issuer's server, and pages shall not wait for those who do."""


class Bearers:
    """Checks tokens of the issuer for the management port. Everything runs on its event loop."""

    def __init__(self, tokens: BearerTokens) -> None:
        self._tokens = tokens
        self._places = asyncio.Semaphore(CHECKS_AT_ONCE)

    async def find(self, token: str) -> Bearer:
        """Who sent it. Raises AuthenticationError."""
        bearer = self._tokens.known_bearer(token)
        if bearer is not None:
            return bearer
        # Three parts, parted by dots: what is none is not worth asking the issuer for.
        if token.count(".") != 2:
            raise AuthenticationError("the token is missing or wrong")
        async with self._places:
            return await asyncio.to_thread(self._tokens.check_bearer, token)
