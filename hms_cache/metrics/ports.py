"""The ports of the server, for pages and ``/status``."""

from __future__ import annotations

from hms_cache.values import frozen


@frozen
class PortState:
    """One of them, now."""

    uri: str
    authentication: str
    """How clients show who they are; ``none``: they do not."""
    connections: int
