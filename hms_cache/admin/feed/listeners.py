"""Who listens to the change feed, and what of it they may see.

Without authorization whoever may read the port sees every event. With it a listener is a user, known by a token, and
sees what the same user is shown of the notification log by the metastore port. Both, the token and the decisions, are
looked at anew for each piece of the feed, so that what was withdrawn ends an open feed or is no longer sent on it.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from typing import Protocol

from hms_cache.admin.feed.events import FeedEvent
from hms_cache.admin.feed.positions import EndReason, FeedEndedError
from hms_cache.authentication.bearer_tokens import BearerTokens
from hms_cache.authentication.listener_tokens import ListenerTokens
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.authorization.decisions import METASTORE, NO_GROUPS, Action, Authorizer
from hms_cache.notifications.visibility import visible


class UnknownListenerError(FeedEndedError):
    """The token is nobody's, or no longer somebody's."""

    def __init__(self, problem: str) -> None:
        super().__init__(EndReason.REFUSED, problem)


class Listener(Protocol):
    """One of them."""

    @property
    def is_judged(self) -> bool:
        """Whether `shown` has to be asked; it may block then."""

    def shown(self, events: Sequence[FeedEvent]) -> list[bool]:
        """Which of the events the listener may see, now; whether it may listen at all is looked at, too.

        Raises FeedEndedError when it may not, UndecidedError or DatabaseUnavailableError when that is not known.
        """


class Anybody:
    """Sees everything: nobody decides about users."""

    is_judged = False

    def shown(self, events: Sequence[FeedEvent]) -> list[bool]:
        """All."""
        return [True] * len(events)


class Operator:
    """Holds the token of commands, and sees everything as long as it is the token."""

    is_judged = True

    def __init__(self, token: str, token_in_force: Callable[[], str]) -> None:
        self._token = token
        self._token_in_force = token_in_force

    def shown(self, events: Sequence[FeedEvent]) -> list[bool]:
        """All. Raises FeedEndedError when the token has changed."""
        if not is_same(self._token, self._token_in_force()):
            raise UnknownListenerError("the token of commands has changed")
        return [True] * len(events)


class User:
    """Sees what the authorizer lets the token's user read. Services see everything."""

    is_judged = True

    def __init__(
        self, token: str, user_of: Callable[[str], tuple[str, frozenset[str]]], authorizer: Authorizer
    ) -> None:
        """`user_of` tells the user, and the groups that the token names. It may block. Raises AuthenticationError."""
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
    """Knows whose a token is, where calls are authorized."""

    def __init__(self, authorizer: Authorizer, tokens: ListenerTokens, bearers: BearerTokens | None) -> None:
        """`bearers`: checks the tokens that clients of the metastore port send, where it takes any."""
        self._authorizer = authorizer
        self._tokens = tokens
        self._bearers = bearers

    def user_of(self, token: str) -> tuple[str, frozenset[str]]:
        """The user, and the groups that the issuer names. May block on its keys. Raises AuthenticationError."""
        user = self._tokens.user_of(token)
        if user is not None:
            return user, NO_GROUPS
        # Three parts, parted by dots: what is none is not worth asking the issuer for.
        if self._bearers is None or token.count(".") != 2:
            raise AuthenticationError(
                "the change feed is for users: the token is none of admin.listener_tokens_file, of the issuer at"
                " authentication.jwt_jwks_url, or of commands"
            )
        identity = self._bearers.known(token) or self._bearers.check(token)
        return identity.user, identity.groups

    def user(self, token: str) -> User:
        """The listener with this token, whose it ever is."""
        return User(token, self.user_of, self._authorizer)


def is_same(given: str, wanted: str) -> bool:
    """Whether a token is the one that counts; an empty one is none."""
    return bool(wanted) and hmac.compare_digest(given.encode(), wanted.encode())
