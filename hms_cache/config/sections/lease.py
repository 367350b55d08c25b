"""How the servers of a set agree on leases, for `cache.exactness = lease`."""

from __future__ import annotations

from pydantic import SecretStr

from hms_cache.config.quantities import OptionalPath, Seconds
from hms_cache.config.setting import Section, setting


class LeaseSettings(Section):
    """Members of a set that answers exact reads by lease. Nothing here counts under `cache.exactness = check`."""

    length_s: Seconds = setting(
        2.0,
        reason="Three renewals fit in with room for a slow one; longer makes the writes after a crash wait longer.",
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
    """host:port at which the other members reach this one. Empty: lease.host and the port that it listens on."""
    secret: SecretStr = setting(SecretStr(""))
    """Secret of at least 16 characters that all members of a set share. Members prove to each other that they know it;
    the secret itself is never sent."""
    secret_file: OptionalPath = setting(None)
    """File whose first line is that secret."""
    secret_command: str = setting("")
    """Command whose first line of output is that secret."""
