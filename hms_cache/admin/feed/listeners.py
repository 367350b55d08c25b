"""Listeners of the change feed, and which events they may see.

Without authorization, whoever may read the port sees every event. With it, a listener is a user, identified by a token,
who sees the events that the metastore port shows him. Token and decisions are checked for each part of the feed, so
that withdrawn ones end an open feed, or hide further events.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from typing import Protocol

from hms_cache.admin.feed.events import FeedEvent
from hms_cache.admin.feed.positions import EndReason, FeedEndedError
from hms_cache.authentication.bearer_tokens import BearerTokens, is_token_shaped
from hms_cache.authentication.listener_tokens import ListenerTokens
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.authorization.decisions import METASTORE, NO_GROUPS, Action, Authorizer
from hms_cache.notifications.visibility import visible


class UnknownListenerError(FeedEndedError):
    """The token does not, or no longer, belong to a user."""

    def __init__(self, problem: str) -> None:
        super().__init__(EndReason.REFUSED, problem)


class Listener(Protocol):
    """A listener."""

    @property
    def is_authorized(self) -> bool:
        """Whether `shown` has to be called, which may block."""

    def shown(self, events: Sequence[FeedEvent]) -> list[bool]:
        """Which of the events the listener may see now. Also checks whether it may still listen.

        Raises FeedEndedError if it may not, UndecidedError or DatabaseUnavailableError if that is unknown.
        """


class UnrestrictedListener:
    """Sees everything, since there is no authorization."""

    is_authorized = False

    def shown(self, events: Sequence[FeedEvent]) -> list[bool]:
        """All of them."""
        return [True] * len(events)


class Operator:
    """Has the token for commands, and sees everything as long as that token is valid."""

    is_authorized = True

    def __init__(self, token: str, token_in_force: Callable[[], str]) -> None:
        self._token = token
        self._token_in_force = token_in_force

    def shown(self, events: Sequence[FeedEvent]) -> list[bool]:
        """All of them. Raises FeedEndedError if the token has changed."""
        if not is_same(self._token, self._token_in_force()):
            raise UnknownListenerError("the token of commands has changed")
        return [True] * len(events)


class User:
    """Sees what the authorizer allows the token's user to read. Services see everything."""

    is_authorized = True

    def __init__(
        self, token: str, user_of: Callable[[str], tuple[str, frozenset[str]]], authorizer: Authorizer
    ) -> None:
        """`user_of` returns the user, and the groups in the token. It may block. Raises AuthenticationError."""
        self._token = token
        self._user_of = user_of
        self._authorizer = authorizer

    def shown(self, events: Sequence[FeedEvent]) -> list[bool]:
        """See `Listener`."""
        try:
            user, groups = self._user_of(self._token)
        except AuthenticationError as error:
            raise UnknownListenerError(str(error)) from error
        decisions = self._authorizer.proven_decisions(user, groups)
        if not decisions.has_any:
            raise FeedEndedError(EndReason.REFUSED, f"nothing is granted to user {user}")
        if decisions.allow(Action.SERVICE, METASTORE):
            return [True] * len(events)
        return visible(decisions, [event.needed for event in events])


class ListenerGate:
    """Identifies the users of tokens, if calls are authorized."""

    def __init__(self, authorizer: Authorizer, tokens: ListenerTokens, bearers: BearerTokens | None) -> None:
        """`bearers`: checks the tokens that clients of the metastore port send, if it accepts any."""
        self._authorizer = authorizer
        self._tokens = tokens
        self._bearers = bearers

    def user_of(self, token: str) -> tuple[str, frozenset[str]]:
        """The user, and the groups named by the issuer. May wait for its keys. Raises AuthenticationError."""
        user = self._tokens.user_of(token)
        if user is not None:
            return user, NO_GROUPS
        if self._bearers is None or not is_token_shaped(token):
            raise AuthenticationError(
                "the change feed is for users: the token must be from admin.listener_tokens_file, from the issuer at"
                " authentication.jwt_jwks_url, or the token of commands"
            )
        identity = self._bearers.cached_identity(token) or self._bearers.check(token)
        return identity.user, identity.groups

    def user(self, token: str) -> User:
        """The listener with this token, which is checked later."""
        return User(token, self.user_of, self._authorizer)


def is_same(given: str, expected: str) -> bool:
    """Whether the token is the expected one; an empty one never is."""
    return bool(expected) and hmac.compare_digest(given.encode(), expected.encode())
