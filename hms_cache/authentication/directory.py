"""Passwords checked by an LDAP directory: a user is authenticated by a bind, and then checked by the filters."""

from __future__ import annotations

import logging
import math
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Any, TypeVar

from hms_cache.authentication.directory_filters import (
    DirectoryFilter,
    FilterOptions,
    equality,
    filled,
    search,
)
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.limited_log import LimitedLog
from hms_cache.socket_deadlines import shutdown_after
from hms_cache.values import frozen

_logger = logging.getLogger(__name__)

_WRONG = "wrong name or password"
_T = TypeVar("_T")


@frozen
class DirectoryOptions:
    """Address of the directory, and how users are named there. Exactly one of the three ways is set."""

    urls: tuple[str, ...]
    name_patterns: tuple[str, ...] = ()
    """Distinguished names with %s for the user; tried in order."""
    base: str = ""
    """Without patterns: users are directly below it, named by the attribute `name_attribute`; with an account, anywhere
    below it."""
    name_attribute: str = "uid"
    domain: str = ""
    """Active Directory: the user binds as name@domain."""
    ca_file: str | None = None
    """Certificate authorities for ldaps:// addresses; None: the system's."""
    timeout_s: float = 5.0
    account: str = ""
    """Account that searches users and groups; empty: each user searches for itself."""
    account_password: str = field(default="", repr=False)
    filters: FilterOptions = field(default_factory=FilterOptions)


class Directory:
    """Checks passwords and reads groups in a directory. Opens a connection for each check, on the calling thread."""

    def __init__(self, options: DirectoryOptions) -> None:
        self._options = options
        self._filter = DirectoryFilter(options.filters)
        self._log = LimitedLog(_logger)

    def check(self, user: str, password: str) -> None:
        """Raises AuthenticationError if the bind fails under each of the user's names, if the filters refuse the user,
        or if no directory answers."""
        if not password:
            raise AuthenticationError("the password is empty")
        if not is_compared_as_written(user):
            raise AuthenticationError(_WRONG)
        self._at_one(lambda server: self._check_at(server, user, password))

    def groups_of(self, user: str) -> frozenset[str]:
        """Names of the user's groups, for users of any mechanism; none if the directory does not have the user.

        Searched by the account. Raises AuthenticationError if no directory answers.
        """
        # Tickets and bearer tokens name users, too. A spelling that the directory would equate with another user has no
        # groups.
        if not is_compared_as_written(user):
            return frozenset()

        def query(server: Any) -> frozenset[str]:
            with self._as_account(server) as account:
                name = self._found(account, user)
                return self._filter.groups_of(account, user, name) if name else frozenset()

        return self._at_one(query)

    def _at_one(self, query: Callable[[Any], _T]) -> _T:
        """Calls `query` with the first server that answers. Raises AuthenticationError."""
        import ssl

        from ldap3 import NONE, Server, Tls
        from ldap3.core.exceptions import LDAPException

        options = self._options
        unavailable = AuthenticationError("the directory of users does not answer", "unavailable")
        for url in options.urls:
            try:
                tls = Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=options.ca_file)
                server = Server(url, get_info=NONE, connect_timeout=options.timeout_s, tls=tls)
                return query(server)
            except (LDAPException, OSError):
                continue
            except AuthenticationError as error:
                if error.outcome != "unavailable":
                    raise
                unavailable = error
        raise unavailable

    def _check_at(self, server: Any, user: str, password: str) -> None:
        """Checks at one server. Raises AuthenticationError, and the exceptions of `ldap3`."""
        options = self._options
        if not options.account:
            for name in self.names_of(user):
                with self._bound(server, name, password) as own:
                    if own is not None:
                        self._check_filters(own, user, name)
                        return
            raise AuthenticationError(_WRONG)
        with self._as_account(server) as account:
            name = self._found(account, user)
            # An empty name would be an anonymous bind, which succeeds with any password.
            if not name:
                raise AuthenticationError(_WRONG)
            with self._bound(server, name, password) as own:
                if own is None:
                    raise AuthenticationError(_WRONG)
            self._filter.check(account, user, name)

    @contextmanager
    def _as_account(self, server: Any) -> Iterator[Any]:
        """A connection that may search users and groups. Raises AuthenticationError."""
        options = self._options
        with self._bound(server, options.account, options.account_password) as account:
            if account is None:
                self._log.error(
                    "the directory refuses authentication.ldap_bind_dn: clients are refused, and no groups are known"
                )
                raise AuthenticationError("the directory of users refuses this server", "unavailable")
            yield account

    def _check_filters(self, own: Any, user: str, name: str) -> None:
        """Applies the filters to a user who has bound by this name, which with a domain is not its distinguished
        name."""
        if self._options.domain and self._options.filters.queries_groups:
            name = self._found(own, user)
            if not name:
                raise AuthenticationError("the directory does not show the user that has bound", "unavailable")
        self._filter.check(own, user, name)

    @contextmanager
    def _bound(self, server: Any, name: str, password: str) -> Iterator[Any]:
        """A connection bound by this name; None if the directory refuses it."""
        from ldap3 import SYNC, Connection

        connection = Connection(
            server,
            user=name,
            # The bytes as written, as Java's clients and OpenLDAP's send them. ldap3 would change a text (NFKC replaces
            # ² by 2) or reject it, which would look like a directory that does not answer.
            password=password.encode(),
            client_strategy=SYNC,
            receive_timeout=math.ceil(self._options.timeout_s),
            auto_referrals=False,
        )
        self._limit_answers(connection)
        try:
            yield connection if connection.bind() else None
        finally:
            connection.unbind()

    def _limit_answers(self, connection: Any) -> None:
        """Limits the time of each answer as a whole: `ldap3` only limits each part of one."""
        answer_to = connection.strategy.get_response

        def get_response(*arguments: Any, **options: Any) -> Any:
            with shutdown_after(self._options.timeout_s, lambda: [connection.socket] if connection.socket else []):
                return answer_to(*arguments, **options)

        connection.strategy.get_response = get_response

    def _found(self, connection: Any, user: str) -> str:
        """The user's only distinguished name; empty if there is none or more than one."""
        options = self._options
        if options.filters.user_search:
            found = search(connection, options.base, filled(options.filters.user_search, user, ""), limit=2)
            return found[0] if len(found) == 1 else ""
        if options.domain:
            names = (equality("sAMAccountName", user), equality("userPrincipalName", f"{user}@{options.domain}"))
            found = search(connection, options.base, f"(|{''.join(names)})", limit=2) if "@" not in user else []
            return found[0] if len(found) == 1 else ""
        for pattern in options.name_patterns or (f"{options.name_attribute}=%s,{options.base}",):
            first, _, base = pattern.partition(",")
            attribute, _, value = first.partition("=")
            if value.strip() != "%s":
                raise AuthenticationError("authentication.ldap_user_dn_pattern: needs NAME=%s first", "unavailable")
            found = search(connection, base, equality(attribute.strip(), user), limit=2)
            if found:
                return found[0] if len(found) == 1 else ""
        return ""

    def names_of(self, user: str) -> tuple[str, ...]:
        """Names of the user in the directory. Text from the user is escaped."""
        from ldap3.utils.dn import escape_rdn

        options = self._options
        if options.domain:
            return (f"{user}@{options.domain}",) if not set(user) & set("@\\/") else ()
        name = escape_rdn(user)
        if options.name_patterns:
            return tuple(pattern.replace("%s", name) for pattern in options.name_patterns)
        return (f"{options.name_attribute}={name},{options.base}",)


_EXCLUDED = frozenset("\u034f\u1806\u180b\u180c\u180d\ufffc") | {chr(code) for code in range(0xFE00, 0xFE10)}
"""Characters that directories ignore when they compare names, in addition to non-printable ones."""


def is_compared_as_written(user: str) -> bool:
    """Whether directories compare the name as it is written, apart from its case.

    They prepare names first (RFC 4518): compatible characters are unified, and blanks at the ends, repeated blanks and
    non-printable characters are removed. With such a spelling, one account would be a second user here.
    """
    if user != " ".join(user.split()) or user != unicodedata.normalize("NFKC", user):
        return False
    return not any(one in _EXCLUDED or unicodedata.category(one).startswith("C") for one in user)
