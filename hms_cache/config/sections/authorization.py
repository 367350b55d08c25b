"""Who may do what."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from hms_cache.config.quantities import OptionalPath, Seconds, Words
from hms_cache.config.setting import Section, setting


class AuthorizationSettings(Section):
    """Who may do what. With a provider on, what it does not grant is refused. See docs/security.md."""

    provider: Literal["off", "policy", "sql", "opa"] = setting("off")
    """policy: a file defines permissions. sql: owners, grants and roles in the metastore define them, as in
    SQL-standard authorization. opa: an Open Policy Agent decides. Clients must authenticate (section authentication);
    otherwise any client could use another user's name."""
    service_users: Words = setting(())
    """With provider = sql: users who can call what is for services only (notification log, tokens and keys,
    compactions, replication)."""
    sql_grants: Literal["read", "logged"] = setting("read")
    """With provider = sql: how servers notice changes of grants. read: each call reads them (see sql_max_age_s).
    logged: servers write an event with each change, and keep their decisions until the log shows such an event, but at
    most for sql_max_age_s (60 s if that is 0). Every hms-cache server on the database must use this mode, also one with
    another provider. Java metastores write no such events; their changes take effect after that time."""
    sql_max_age_s: Seconds = setting(
        0.0,
        reason="Grants have no events, and other metastores on the database change them. What this server changes"
        " counts for its next call at any age.",
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
        reason="It runs beside the server, and answers in milliseconds; calls wait on threads that others need.",
        gt=0,
        le=30,
    )
    """Maximum time for an answer of the Open Policy Agent. A call without an answer is refused."""
    opa_max_age_s: Seconds = setting(
        5.0, reason="Long enough for a query's many calls, short for a right that was withdrawn.", ge=0, le=3600
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
        reason="One question for each user and minute; a right that was withdrawn ends a minute later.",
        ge=1,
        le=3600,
    )
    """Maximum age of what the directory said about a user's groups. With sql and opa, no decision is kept longer than
    this; if decisions are kept for a shorter time (sql_max_age_s, opa_max_age_s), that time is added. While the
    directory does not answer, groups are kept three times as long; then the user's calls are refused."""
    policy_check_interval_s: Seconds = setting(
        1.0, reason="A look is one stat(); a right that was withdrawn ends a second later.", gt=0, le=3600
    )
    """Time between two checks whether the policy file has changed. SIGHUP reads it at once."""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.provider == "policy" and self.policy_file is None:
            raise ValueError("provider = policy needs policy_file")
        if self.provider == "opa" and not self.opa_url:
            raise ValueError("provider = opa needs opa_url")
        if self.directory_groups and self.provider == "off":
            raise ValueError("directory_groups are for a provider: set one")
        return self
