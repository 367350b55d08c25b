"""Tokens of the change feed's listeners, from the configuration."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hms_cache.authentication.listener_tokens import ListenerTokens, ListenerTokensError
from hms_cache.config import Settings
from hms_cache.errors import StartupError

_REMEDY = "Each line needs a user's name and a token of 16 characters or more; see docs/security.md."


def listener_tokens(settings: Settings) -> ListenerTokens:
    """The tokens in the configured file; empty without one. Raises StartupError if the file cannot be used."""
    tokens = ListenerTokens(None)
    new_listener_tokens(tokens, settings)()
    return tokens


def new_listener_tokens(tokens: ListenerTokens, settings: Settings) -> Callable[[], None]:
    """Reads the file now, and returns a function that applies the result. Raises StartupError without a change."""
    try:
        return partial(tokens.replace_tokens, tokens.read(settings.admin.listener_tokens_file))
    except ListenerTokensError as error:
        raise StartupError(f"admin.listener_tokens_file: {error}", remedy=_REMEDY) from error
