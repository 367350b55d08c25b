"""The addresses that limits by client address count as one client: a single address, or an IPv6 network.

A client in an IPv6 network can use all its addresses, usually 2^64, so a limit for each address would limit nothing.
But in an internal network, all machines of a segment share these 64 bits, and one limit for all of them would be too
low.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network

WHOLE_ADDRESS_BITS = 128

_KEPT = 4096
"""Addresses whose networks are remembered: parsing one takes microseconds, and some clients connect often."""


def client_networks(ipv6_prefix_length: int) -> Callable[[str], str]:
    """The network that counts as one client with an address: `2001:db8:1:2::/64`, or the address itself."""
    if ipv6_prefix_length >= WHOLE_ADDRESS_BITS:
        return str

    @lru_cache(_KEPT)
    def network_of(address: str) -> str:
        if ":" not in address:
            return address
        try:
            parsed = IPv6Address(address)
        except ValueError:
            return address
        if parsed.ipv4_mapped is not None or parsed.is_link_local:
            # The whole of IPv4 would be one such network, and so would all neighbours of this machine.
            return address
        return str(IPv6Network((int(parsed), ipv6_prefix_length), strict=False))

    return network_of
