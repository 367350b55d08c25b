"""Networks of proxies that the operator trusts to name their clients' addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

_ANY_ADDRESS = ipaddress.IPv4Address | ipaddress.IPv6Address
_ANY_NETWORK = ipaddress.IPv4Network | ipaddress.IPv6Network

_IPV4_IN_IPV6 = ipaddress.IPv6Network("::ffff:0:0/96")


class TrustedNetworks:
    """Immutable."""

    def __init__(self, networks: Iterable[str]) -> None:
        """Raises ValueError if one of `networks` is neither an address nor a network."""
        self._networks = tuple(_plain_network(ipaddress.ip_network(text)) for text in networks)

    def __contains__(self, address: object) -> bool:
        """Whether the proxy with this address, a text, is trusted. A socket file is not."""
        if not self._networks or not isinstance(address, str):
            return False
        try:
            found = _plain(ipaddress.ip_address(address))
        except ValueError:
            return False
        return any(found in network for network in self._networks)


def address_text(address: _ANY_ADDRESS) -> str:
    """The address as the system shows that of a direct connection: IPv4 as IPv4, although the proxy may listen on both,
    and without the name of an interface, which is one of the proxy's machine."""
    return str(_plain(address))


def _plain(address: _ANY_ADDRESS) -> _ANY_ADDRESS:
    if isinstance(address, ipaddress.IPv6Address):
        return address.ipv4_mapped or ipaddress.IPv6Address(int(address))
    return address


def _plain_network(network: _ANY_NETWORK) -> _ANY_NETWORK:
    if isinstance(network, ipaddress.IPv6Network) and network.subnet_of(_IPV4_IN_IPV6):
        prefix_length = network.prefixlen - _IPV4_IN_IPV6.prefixlen
        return ipaddress.IPv4Network((int(network.network_address) & 0xFFFFFFFF, prefix_length))
    return network
