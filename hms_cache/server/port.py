"""One port of the server: the protocol layers on it, and how clients authenticate.

All ports of a server share one event loop, whose limits count their connections together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hms_cache.server.fairness import RoundRobin
from hms_cache.server.transports.http import HttpPort
from hms_cache.server.transports.proxy_headers import TrustedProxies
from hms_cache.server.transports.sasl import SaslPort
from hms_cache.server.transports.tls import TlsPort

if TYPE_CHECKING:
    from hms_cache.server.connection import Connection


@dataclass(slots=True)
class Port:
    """The layers between a socket and its connection. Without any of the four, there are none."""

    host: str
    number: int
    """0 until the system has chosen one."""
    mechanisms: tuple[str, ...] = ()
    """For display; empty: clients do not authenticate."""
    tls: TlsPort | None = None
    sasl: SaslPort | None = None
    http: HttpPort | None = None
    """Not together with `sasl`."""
    proxies: TrustedProxies | None = None
    """None: no proxy sends the addresses of its clients."""

    def protocol(self, connect: Callable[[], Connection], round_robin: RoundRobin) -> asyncio.Protocol:
        """The protocol for a new socket. `connect` creates a connection; with HTTP, one for each user."""
        protocol: asyncio.Protocol
        if self.http is not None:
            protocol = self.http.protect(connect, round_robin)
        else:
            protocol = connect()
            if self.sasl is not None:
                protocol = self.sasl.protect(protocol, round_robin)
        if self.tls is not None:
            protocol = self.tls.protect(protocol, round_robin)
        return protocol if self.proxies is None else self.proxies.protect(protocol)

    @property
    def uri(self) -> str:
        """What clients connect to."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        if self.http is not None:
            return f"{'https' if self.tls else 'http'}://{host}:{self.number}{self.http.target.decode()}"
        return f"thrift{'+tls' if self.tls else ''}://{host}:{self.number}"

    @property
    def authentication(self) -> str:
        """How clients authenticate, for display."""
        return ", ".join(self.mechanisms) or "none"
