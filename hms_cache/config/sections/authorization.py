"""Authorization."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from hms_cache.config.quantities import OptionalPath, Seconds, Words
from hms_cache.config.setting import Section, setting


class AuthorizationSettings(Section):
    """Authorization. If a provider is set, everything that it does not grant is refused. See docs/security.md."""

    provider: Literal["off", "policy", "sql", "opa"] = setting("off")
    """policy: a file defines permissions. sql: owners, grants and roles in the metastore define them, as in
    SQL-standard authorization. opa: an Open Policy Agent decides. Clients must authenticate (section authentication);
    otherwise any client could use another user's name."""
    service_users: Words = setting(())
    """With provider = sql: users who can call the methods that are for services only (notification log, tokens and
    keys, compactions, replication)."""
    sql_grants: Literal["read", "logged"] = setting("read")
    """With provider = sql: how servers notice changes of grants. read: each call reads them (see sql_max_age_s).
    logged: servers write an event with each change, and keep their decisions until the log shows such an event, but at
    most for sql_max_age_s (60 s if that is 0). Every hms-cache server on the database must use this mode, even if it
    uses another provider. Java metastores do not write such events; their changes take effect after that time."""
    sql_max_age_s: Seconds = setting(
        0.0,
        reason="Changes of grants have no events in Hive, and other metastores may make them. A change by this server"
        " always applies to its next call.",
        ge=0,
        le=60,
    )
    """With provider = sql: maximum age of a decision. 0: each call reads the grants, and no encoded answer is kept."""
    opa_url: str = setting("")
    """With provider = opa: address of the rule, such as https://opa.example.com:8181/v1/data/hms/allow."""
    opa_ca_file: OptionalPath = setting(None)
    """PEM file with the authorities of an https:// opa_url; unset: those of the system."""
    opa_timeout_s: Seconds = setting(
        2.0,
        reason="The agent usually runs on the same machine and answers in milliseconds; a waiting call occupies a"
        " thread.",
        gt=0,
        le=30,
    )
    """Maximum time for an answer of the Open Policy Agent. A call without an answer is refused."""
    opa_max_age_s: Seconds = setting(
        5.0, reason="Long enough for the many calls of one query, short enough for revoked rights.", ge=0, le=3600
    )
    """Maximum age of a decision of the Open Policy Agent. 0: each call asks."""
    policy_file: OptionalPath = setting(None)
    """TOML file with users' groups and roles, and their grants. It is read again when it changes."""
    directory_groups: bool = setting(False)
    """true: the groups of the LDAP directory of section authentication apply to users of every mechanism: with provider
    = policy as a grant's directory_groups, with sql as grants to groups, with opa as input.directory_groups.
    ldap_bind_dn searches for users and groups as the other ldap_ settings describe."""
    directory_groups_max_age_s: Seconds = setting(
        60.0,
        unit="seconds",
        reason="One request to the directory per user and minute; a revoked right ends a minute later.",
        ge=1,
        le=3600,
    )
    """Maximum age of a user's groups as read from the directory. With sql and opa, no decision is kept longer than
    this; if decisions are kept for a shorter time (sql_max_age_s, opa_max_age_s), that time is added. While the
    directory does not answer, groups are kept three times as long; then the user's calls are refused."""
    policy_check_interval_s: Seconds = setting(
        1.0, reason="A check is one stat(); a revoked right ends a second later.", gt=0, le=3600
    )
    """Time between two checks whether the policy file has changed. SIGHUP reads it at once."""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.provider == "policy" and self.policy_file is None:
            raise ValueError("provider = policy needs policy_file")
        if self.provider == "opa" and not self.opa_url:
            raise ValueError("provider = opa needs opa_url")
        if self.directory_groups and self.provider == "off":
            raise ValueError("directory_groups needs a provider")
        return self
