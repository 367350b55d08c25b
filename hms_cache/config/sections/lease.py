"""Leases of the servers of a set, for `cache.exactness = lease`."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

from pydantic import SecretStr

from hms_cache.config.quantities import OptionalPath, Seconds
from hms_cache.config.setting import Section, setting

MAX_ADDRESS_CHARACTERS: Final = 255
"""Length of the column of HMS_CACHE_MEMBERS."""


def problem_of_address(host: str, address: str) -> str | None:
    """Returns the reason why other members cannot connect to a server with this `lease.host` and `lease.address`, if
    any.

    Such an error would not be noticed otherwise: writes would wait for the lease of an unreachable member again and
    again.
    """
    if not address:
        if _is_any(host):
            return f"lease.host = {host!r} listens on all addresses: set lease.address, the address for other members"
        return None
    name, _, port = address.rpartition(":")
    if not name or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 2**16:
        return f"lease.address must be host:port, not {address!r}"
    if _is_any(name.strip("[]")):
        return f"lease.address must be an address of this server: with {address!r}, each member connects to itself"
    if len(address) > MAX_ADDRESS_CHARACTERS:
        return f"lease.address has {len(address)} characters; the database allows {MAX_ADDRESS_CHARACTERS}"
    return None


def _is_any(host: str) -> bool:
    try:
        return not host or ip_address(host).is_unspecified
    except ValueError:
        return False


class LeaseSettings(Section):
    """Members of a set that answers exact reads by lease. Without effect with `cache.exactness = check`."""

    length_s: Seconds = setting(
        2.0,
        reason="Long enough for three renewals, even if one is slow. Writes after a crash wait for this time.",
        ge=0.2,
        le=60,
    )
    """How long a member may answer reads without hearing from the database. Writes wait once for this long if a member
    was killed or does not answer. Members may use different values."""
    host: str = setting("127.0.0.1")
    """Address to listen on for the other members."""
    port: int = setting(
        0,
        reason="Members find each other in the database, so a fixed one is needed for firewalls only.",
        ge=0,
        le=65535,
    )
    """Port to listen on for the other members; 0 picks a free one."""
    address: str = setting("")
    """host:port at which the other members reach this one. Empty: lease.host and the port that it listens on; then
    lease.host must not be 0.0.0.0 or ::, with which each member would connect to itself."""
    secret: SecretStr = setting(SecretStr(""))
    """Secret of at least 16 characters that all members of a set share. Members prove to each other that they know it;
    the secret itself is never sent."""
    secret_file: OptionalPath = setting(None)
    """File whose first line is that secret."""
    secret_command: str = setting("")
    """Command whose first line of output is that secret."""
