"""Passwords checked by an LDAP directory: who can bind with it is the user."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hms_cache.authentication.mechanism import AuthenticationError


@dataclass(frozen=True, slots=True)
class DirectoryOptions:
    """Where the directory is and what users are called there. One of the three ways of names is given."""

    urls: tuple[str, ...]
    name_patterns: tuple[str, ...] = ()
    """Distinguished names with %s for the user; each is tried."""
    base: str = ""
    """Without patterns: the users lie directly below it, under the attribute `name_attribute`."""
    name_attribute: str = "uid"
    domain: str = ""
    """Active Directory: the user binds as name@domain."""
    ca_file: str | None = None
    """Authorities of ldaps:// addresses; None: the system's."""
    timeout_s: float = 5.0


class Directory:
    """Binds for each user anew, on the thread that asks."""

    def __init__(self, options: DirectoryOptions) -> None:
        self._options = options

    def check(self, user: str, password: str) -> None:
        """Raises AuthenticationError when no name of the user's can bind, or no directory answers."""
        import ssl

        from ldap3 import NONE, SYNC, Connection, Server, Tls
        from ldap3.core.exceptions import LDAPException

        if not password:
            raise AuthenticationError("the password is empty")
        options = self._options
        reached = False
        for url in options.urls:
            try:
                tls = Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=options.ca_file)
                server = Server(url, get_info=NONE, connect_timeout=options.timeout_s, tls=tls)
                for name in self.names_of(user):
                    connection = Connection(
                        server,
                        user=name,
                        password=password,
                        client_strategy=SYNC,
                        receive_timeout=math.ceil(options.timeout_s),
                        auto_referrals=False,
                    )
                    try:
                        bound = connection.bind()
                        reached = True
                        if bound:
                            return
                    finally:
                        connection.unbind()
            except (LDAPException, OSError):
                continue
            if reached:
                break
        if not reached:
            raise AuthenticationError("the directory of users does not answer", "unavailable")
        raise AuthenticationError("wrong name or password")

    def names_of(self, user: str) -> tuple[str, ...]:
        """What the user may be called in the directory; nothing that a user says becomes syntax there."""
        from ldap3.utils.dn import escape_rdn

        options = self._options
        if options.domain:
            return (f"{user}@{options.domain}",) if not set(user) & set("@\\/") else ()
        name = escape_rdn(user)
        if options.name_patterns:
            return tuple(pattern.replace("%s", name) for pattern in options.name_patterns)
        return (f"{options.name_attribute}={name},{options.base}",)
