"""Whom limits by client address count as one: an address, or the IPv6 network that it is in.

Who has one machine has all addresses of its network, 2^64 of them mostly, and a limit for each of these limits nothing.
But in one's own networks all machines of a segment share these bits, and then a limit for all of them is too low.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network

WHOLE_ADDRESS_BITS = 128

_KEPT = 4096
"""Addresses whose network is remembered: to read one takes microseconds, which some do many times."""


def client_networks(ipv6_prefix_length: int) -> Callable[[str], str]:
    """What is counted as one with a client's address: `2001:db8:1:2::/64`, or the address itself."""
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
            # All of IPv4 is one such network, and so are all neighbours of this machine.
            return address
        return str(IPv6Network((int(parsed), ipv6_prefix_length), strict=False))

    return network_of
