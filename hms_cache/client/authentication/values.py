"""How a client authenticates, as one value that can be sent to Spark's workers.

Passwords stay in their files, which are read when a connection needs them, and so do bearer tokens unless the
environment holds them: a file may be replaced while the client runs. A token that a value contains is not shown in its
text.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import field

from hms_cache.authentication.delegation.token_format import Token
from hms_cache.authentication.servers import Address
from hms_cache.client.authentication.digest_md5 import DigestMd5Mechanism
from hms_cache.client.authentication.kerberos import GssapiMechanism, Ticket
from hms_cache.client.authentication.mechanism import ClientMechanism
from hms_cache.client.authentication.plain import PlainMechanism
from hms_cache.client.authentication.secret_files import placed, read_secret, read_stored_password
from hms_cache.client.authentication.token_file import read_token
from hms_cache.client.errors import CredentialsError
from hms_cache.errors import ConfigurationError
from hms_cache.system_user import system_user
from hms_cache.values import frozen

QUALITIES = ("auth-conf", "auth-int", "auth")
"""Qualities of protection, the best first: encrypted, signed, neither."""

PASSWORD_FILE_VARIABLE = "HMS_PASSWORD_FILE"
BEARER_VARIABLE = "HMS_JWT"
"""As Hive 4's client: the token itself."""
BEARER_FILE_VARIABLE = "HMS_JWT_FILE"
TOKEN_FILE_VARIABLE = "HADOOP_TOKEN_FILE_LOCATION"
"""Hadoop's: set in the containers of YARN, and by Spark on Kubernetes."""


class Authentication(ABC):
    """How a client proves its identity to a metastore."""

    __slots__ = ()

    sends_secret = False
    """Whether it sends a secret with which anyone who reads it could authenticate."""

    tries_elsewhere = True
    """Whether the next metastore of a list is tried after a refusal. Not for passwords: every metastore would refuse
    the same one, and directories lock accounts after several wrong passwords."""

    allows_unencrypted = False
    """Whether a secret may be sent over a connection that is not encrypted."""

    by_http = False
    """Whether it needs HTTP; otherwise it uses SASL over TCP."""

    def check(self, address: Address) -> None:
        """Raises ConfigurationError if it cannot be used for this address."""
        if self.by_http != address.by_http:
            names = "http:// and https://" if self.by_http else "thrift:// and thrift+tls://"
            raise ConfigurationError(f"{address}: {self} is for metastores at {names}")

    def mechanism(self, address: Address, timeout_s: float) -> ClientMechanism | None:
        """The SASL mechanism for one negotiation, if any. Raises CredentialsError, ConfigurationError."""
        return None

    def headers(self) -> dict[str, str]:
        """Headers of a request over HTTP. Raises CredentialsError."""
        return {}

    @abstractmethod
    def __str__(self) -> str: ...


@frozen
class Unauthenticated(Authentication):
    """No authentication. Over HTTP, the name of this process's user is sent, which proves nothing."""

    def check(self, address: Address) -> None:
        """Any address will do."""

    def headers(self) -> dict[str, str]:
        return {"x-actor-username": system_user()}

    def __str__(self) -> str:
        return "none"


UNAUTHENTICATED = Unauthenticated()


@frozen
class Kerberos(Authentication):
    """A Kerberos ticket from the ticket cache, or one obtained with the key in a keytab."""

    server: str
    """The metastore's principal, `hive/_HOST@REALM`."""

    principal: str = ""
    keytab: str = ""
    ticket_cache: str = ""
    """Empty: that of the environment."""

    qualities: tuple[str, ...] = ()
    """Accepted qualities of protection, the preferred one first; empty: see `qualities_for`."""

    @property
    def ticket(self) -> Ticket:
        """Raises ConfigurationError where the library is missing."""
        return Ticket(self.principal, placed(self.keytab), self.ticket_cache)

    def mechanism(self, address: Address, timeout_s: float) -> ClientMechanism:
        if self.keytab and not os.access(placed(self.keytab), os.R_OK):
            raise CredentialsError(f"the keytab {self.keytab} does not exist, or this user cannot read it")
        qualities = qualities_for(self.qualities, address)
        return GssapiMechanism(self.ticket, self.server, address.host, qualities, timeout_s)

    def __str__(self) -> str:
        return "kerberos"


@frozen
class Password(Authentication):
    """The name of a user in a directory, and a file with the password, or Hadoop's credential providers that contain it
    under the name of the user."""

    sends_secret = True
    tries_elsewhere = False

    user: str
    password_file: str
    allows_unencrypted: bool = False
    password_store: str = ""

    def mechanism(self, address: Address, timeout_s: float) -> ClientMechanism:
        if self.password_store:
            return PlainMechanism(self.user, read_stored_password(self.password_store, self.user))
        return PlainMechanism(self.user, read_secret(self.password_file, "the password"))

    def __str__(self) -> str:
        return "ldap"


@frozen
class DelegationToken(Authentication):
    """A delegation token that a user with a ticket has obtained: the token itself, or a file that contains it."""

    token: Token | None = field(default=None, repr=False)
    token_file: str = ""
    service: str = ""
    """Selects one of several tokens in a file (`hive.metastore.token.signature`)."""

    qualities: tuple[str, ...] = ()
    """As in `Kerberos`."""

    def read(self) -> Token:
        """The token. Raises CredentialsError."""
        return self.token if self.token is not None else read_token(self.token_file, self.service)

    def mechanism(self, address: Address, timeout_s: float) -> ClientMechanism:
        return DigestMd5Mechanism(self.read(), qualities_for(self.qualities, address))

    def __str__(self) -> str:
        return "token"


@frozen
class BearerToken(Authentication):
    """An issuer's token (JWT), sent over HTTP: from a file, which is read for each request, the token itself, or the
    one in the environment."""

    sends_secret = True
    tries_elsewhere = False
    by_http = True

    token_file: str = ""
    allows_unencrypted: bool = False
    token: str = field(default="", repr=False)
    """If this and the file are empty, the token is taken from the environment."""

    def headers(self) -> dict[str, str]:
        if self.token_file:
            token = read_secret(self.token_file, "the bearer token").strip()
        else:
            token = (self.token or os.environ.get(BEARER_VARIABLE, "")).strip()
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            where = self.token_file or f"{BEARER_VARIABLE} in the environment"
            raise CredentialsError(f"there is no bearer token in {where}")
        return {"authorization": f"Bearer {token}"}

    def __str__(self) -> str:
        return "jwt"


def qualities_for(accepted: tuple[str, ...], address: Address) -> tuple[str, ...]:
    """The accepted qualities, or all of them: the best first, but the least first within TLS, which encrypts."""
    return accepted or (tuple(reversed(QUALITIES)) if address.tls else QUALITIES)
