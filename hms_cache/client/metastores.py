"""The metastores that a client uses and how it authenticates with them, as one value."""

from __future__ import annotations

import os
from collections.abc import Mapping

from hms_cache.authentication.servers import Address
from hms_cache.client.authentication.texts import authentication_of
from hms_cache.client.authentication.values import UNAUTHENTICATED, Authentication
from hms_cache.errors import ConfigurationError
from hms_cache.values import frozen


@frozen
class Metastores:
    """URIs, separated by commas, in the order they are tried. The text of this value contains only these."""

    uris: str
    authentication: Authentication = UNAUTHENTICATED

    @classmethod
    def of_texts(cls, uris: str, auth: str | None, environment: Mapping[str, str] = os.environ) -> Metastores:
        """`auth`: as in `authentication_of`; none if it is empty. Raises ConfigurationError."""
        found = cls(uris, authentication_of(auth or "none", environment))
        for address in found.addresses:
            found.authentication.check(address)
        return found

    @property
    def addresses(self) -> tuple[Address, ...]:
        """At least one. Raises ConfigurationError."""
        addresses = tuple(Address.parse(uri) for uri in self.uris.split(",") if uri.strip())
        if not addresses:
            raise ConfigurationError("a metastore client needs the URI of at least one metastore")
        return addresses

    def __str__(self) -> str:
        return self.uris
