"""The header that a proxy sends in front of a client's bytes: the PROXY protocol, versions 1 and 2.

Without it, all clients behind a proxy have the proxy's address in limits, audit lines, policies and the rules of proxy
users. It is only read from addresses that the operator names, since anybody can write any address into it, and these
must send it: what begins without one would be taken for the proxy itself. The format is that of HAProxy's document
`proxy-protocol.txt`, of 2020.
"""

from __future__ import annotations

import asyncio
import ipaddress
import struct
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast

from hms_cache.event_loops import ClientTimer
from hms_cache.server.layer import Handshakes, address_of
from hms_cache.server.transports.trusted_networks import TrustedNetworks, address_text

OUTCOMES = ("ok", "local", "invalid", "timeout", "closed")

_SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
"""The beginning of version 2."""

_TEXT = b"PROXY "
"""The beginning of version 1."""

_MAX_TEXT_BYTES = 107
"""Of version 1, with two of the longest addresses and its end of line."""

_FIXED = struct.Struct("!12sBBH")
"""Version 2: signature, version and command, family and protocol, and the length of the rest."""

_LOCAL, _PROXY = 0x20, 0x21
"""Version 2 with the command LOCAL: the proxy speaks for itself; with PROXY: for a client."""

_STREAMS = {0x11: 4, 0x21: 16}
"""TCP over IPv4 and over IPv6, with the length of an address."""


class ProxyHeaderError(ValueError):
    """The bytes are not a header of the PROXY protocol."""


class ProxyHeader(NamedTuple):
    """A header."""

    length_bytes: int
    """The client's bytes begin behind it."""
    client: tuple[str, int] | None
    """The client's address and port. None: the proxy's own connection, such as a health check, or one of a client
    without an IP address."""


def read_header(data: bytes) -> ProxyHeader | None:
    """Returns the header at the beginning of the bytes; None if it is not complete. Raises ProxyHeaderError as soon as
    the bytes cannot become one."""
    if data.startswith(_SIGNATURE[: len(data)]):
        return _binary_header(data)
    if data.startswith(_TEXT[: len(data)]):
        return _text_header(data)
    raise ProxyHeaderError("it does not begin with a header of the PROXY protocol")


def _binary_header(data: bytes) -> ProxyHeader | None:
    if len(data) < _FIXED.size:
        return None
    _, command, family, rest_bytes = _FIXED.unpack_from(data)
    if command not in (_LOCAL, _PROXY):
        raise ProxyHeaderError(f"version and command 0x{command:02x} are unknown")
    address_bytes = _STREAMS.get(family, 0) if command == _PROXY else 0
    if rest_bytes < 2 * address_bytes + (4 if address_bytes else 0):
        raise ProxyHeaderError(f"{rest_bytes} bytes are too few for the addresses of its family")
    length_bytes = _FIXED.size + rest_bytes
    if len(data) < length_bytes:
        return None
    if not address_bytes:
        return ProxyHeader(length_bytes, None)
    address = ipaddress.ip_address(data[_FIXED.size : _FIXED.size + address_bytes])
    (port,) = struct.unpack_from("!H", data, _FIXED.size + 2 * address_bytes)
    return ProxyHeader(length_bytes, (address_text(address), port))


def _text_header(data: bytes) -> ProxyHeader | None:
    line, end, _ = data[:_MAX_TEXT_BYTES].partition(b"\r\n")
    if not end:
        if len(data) >= _MAX_TEXT_BYTES:
            raise ProxyHeaderError(f"its first line is longer than {_MAX_TEXT_BYTES} bytes")
        return None
    length_bytes = len(line) + len(end)
    try:
        words = line.decode("ascii").split(" ")
    except UnicodeDecodeError as error:
        raise ProxyHeaderError("its first line is not ASCII") from error
    if words[1] == "UNKNOWN":
        return ProxyHeader(length_bytes, None)
    if len(words) != 6 or words[1] not in ("TCP4", "TCP6"):
        raise ProxyHeaderError("its first line is not PROXY TCP4 or TCP6 with two addresses and two ports")
    parse = ipaddress.IPv4Address if words[1] == "TCP4" else ipaddress.IPv6Address
    try:
        client, _ = parse(words[2]), parse(words[3])
    except ValueError as error:
        raise ProxyHeaderError(f"its addresses are not of {words[1]}") from error
    port, _ = _port(words[4]), _port(words[5])
    return ProxyHeader(length_bytes, (address_text(client), port))


def _port(text: str) -> int:
    if not text.isdecimal() or len(text) > 5 or int(text) > 65535:
        raise ProxyHeaderError("its ports are not numbers up to 65535")
    return int(text)


class TrustedProxies(Handshakes):
    """The proxies of a server, and the connections whose header has not arrived. Used on the event loop only."""

    def __init__(self, networks: Iterable[str], header_timeout_s: float | None, max_waiting: int) -> None:
        """Raises ValueError if one of `networks` is neither an address nor a network.

        :param header_timeout_s: time for the whole header; None: no limit.
        :param max_waiting: maximum number of connections without a header (P11). For a further one, the oldest is
          closed.
        """
        super().__init__("PROXY header", OUTCOMES)
        self.networks = TrustedNetworks(networks)
        """From these addresses, connections must begin with a header, which is believed."""
        self._header_timeout_s = header_timeout_s
        self._max_waiting = max_waiting
        self._waiting: dict[_ProxiedSocket, None] = {}
        """The oldest first."""
        self._is_closed = False

    def protect(self, upper: asyncio.Protocol) -> asyncio.Protocol:
        """The protocol for a new socket. `upper` learns of the connection when the client's address is known."""
        return _ProxiedSocket(self, upper)

    def begin(self, waiting: _ProxiedSocket) -> ClientTimer | None:
        """A connection of a proxy waits for its header. Returns its timer."""
        if self._is_closed:  # it was accepted before the port was closed
            waiting.close()
            return None
        if len(self._waiting) >= self._max_waiting:
            next(iter(self._waiting)).overdue()
        self._waiting[waiting] = None
        if self._header_timeout_s is None:
            return None
        return ClientTimer(asyncio.get_running_loop(), self._header_timeout_s, waiting.overdue)

    def end(self, waiting: _ProxiedSocket) -> None:
        """It does not wait any longer."""
        self._waiting.pop(waiting, None)

    def close(self) -> None:
        """The server stops: closes all that wait."""
        self._is_closed = True
        for waiting in tuple(self._waiting):
            waiting.close()


class _ProxiedSocket(asyncio.Protocol):
    """Reads the header, and then replaces itself by the protocol of the connection: a call is not slower for it."""

    def __init__(self, proxies: TrustedProxies, upper: asyncio.Protocol) -> None:
        self._proxies, self._upper = proxies, upper
        self._transport: asyncio.Transport
        self._address = ""
        self._received = b""
        self._timer: ClientTimer | None = None
        self._counted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Waits for the header if the address is a proxy's."""
        self._transport = cast(asyncio.Transport, transport)
        address = address_of(transport)
        if address is None or address not in self._proxies.networks:
            self._transport.set_protocol(self._upper)
            self._upper.connection_made(transport)
            return
        self._address = address
        self._timer = self._proxies.begin(self)

    def data_received(self, data: bytes) -> None:
        """Continues with the header, and hands on what is behind it."""
        if self._counted:
            return
        self._received += data
        try:
            header = read_header(self._received)
        except ProxyHeaderError as error:
            self._fail("invalid", str(error))
            return
        if header is None:
            return
        self._finish("ok" if header.client is not None else "local")
        rest, self._received = self._received[header.length_bytes :], b""
        transport: asyncio.Transport = self._transport
        if header.client is not None:
            transport = cast(asyncio.Transport, _ClientTransport(transport, header.client))
        self._transport.set_protocol(self._upper)
        self._upper.connection_made(transport)
        if rest and not transport.is_closing():
            self._upper.data_received(rest)

    def overdue(self) -> None:
        """No header has come in time, or others need the place."""
        self._fail("timeout", "no header has arrived in time")

    def close(self) -> None:
        """The server stops."""
        self._finish("closed")
        self._received = b""
        self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """The proxy has gone."""
        if not self._counted:
            self._finish(None)
            self._proxies.ended_early(
                self._address, "the connection ended within the header", is_begun=bool(self._received)
            )

    def _fail(self, outcome: str, reason: str) -> None:
        self._finish(None)
        self._received = b""
        self._proxies.failed(outcome, self._address, reason)
        self._transport.abort()

    def _finish(self, outcome: str | None) -> None:
        self._counted = True
        self._proxies.end(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if outcome is not None:
            self._proxies.outcomes[outcome] += 1


class _ClientTransport:
    """The socket's transport with the client's address in place of the proxy's."""

    def __init__(self, transport: asyncio.Transport, client: tuple[str, int]) -> None:
        self._transport, self._client = transport, client
        self.write: Callable[[bytes], None] = transport.write
        """Each reply is written by it, so it is the transport's own."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """See asyncio's transports."""
        return self._client if name == "peername" else self._transport.get_extra_info(name, default)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
