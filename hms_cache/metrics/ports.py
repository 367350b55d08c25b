"""The ports of the server, for pages and ``/status``."""

from __future__ import annotations

from hms_cache.values import frozen


@frozen
class PortState:
    """The current state of a port."""

    uri: str
    authentication: str
    """The mechanisms with which clients authenticate; ``none`` if they need not."""
    connections: int
