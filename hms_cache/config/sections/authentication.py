"""Authentication of clients: Kerberos, LDAP passwords and bearer tokens."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import SecretStr, model_validator

from hms_cache.config.quantities import OptionalPath, Seconds, Words
from hms_cache.config.setting import Section, hive_setting, metastore_keys, setting

_QUALITIES = {"authentication": "auth", "integrity": "auth-int", "privacy": "auth-conf"}
_MODES = {"ldap": "ldap", "nosasl": "off", "none": "off", "jwt": "off"}


_JWT_ALGORITHMS = frozenset(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"))


def _qualities(names: str) -> str:
    """Converts Hadoop's names. An unknown name is not changed, and refused later."""
    return ",".join(_QUALITIES.get(name.strip().lower(), name.strip()) for name in names.split(","))


def problem_of_qualities(qualities: tuple[str, ...]) -> str | None:
    """Returns the reason why a port cannot offer these qualities, if any."""
    unknown = set(qualities) - set(_QUALITIES.values())
    if unknown or not qualities:
        return f"quality_of_protection must be auth, auth-int or auth-conf, not {', '.join(sorted(unknown))}"
    return None


def _ldap_setting(default: Any, key: str) -> Any:
    """Declares a setting of the directory that Hive also has. ``key``: its name after ``authentication.ldap.``."""
    return setting(default, site_keys=metastore_keys(f"authentication.ldap.{key}"))


class AuthenticationSettings(Section):
    """Authentication of clients. If any mechanism is enabled, clients that do not authenticate are refused."""

    kerberos_enabled: bool = setting(False, site_keys=metastore_keys("sasl.enabled"))
    """true: clients authenticate by SASL GSSAPI, as Hive's do with hive.metastore.sasl.enabled. Needs
    hms-cache[kerberos]."""
    kerberos_principal: str = setting("", site_keys=metastore_keys("kerberos.principal"))
    """The server's principal, such as hive/_HOST@EXAMPLE.COM; _HOST is this machine's full name in lower case."""
    kerberos_keytab_file: OptionalPath = setting(None, site_keys=metastore_keys("kerberos.keytab.file"))
    """Keytab with the principal's key. It is read for each client, so a new file needs no restart."""
    quality_of_protection: Words = setting(
        ("auth", "auth-int", "auth-conf"), site_keys=("hadoop.rpc.protection",), from_site=_qualities
    )
    """Protection that Kerberos clients can negotiate: auth (authentication only), auth-int (integrity), auth-conf
    (encryption)."""
    auth_to_local: str = setting("DEFAULT", site_keys=("hadoop.security.auth_to_local",))
    """Rules that map principals to user names, in Hadoop's syntax: RULE:[1:$1] DEFAULT. A principal that matches no
    rule is refused."""
    delegation_tokens: bool = setting(True)
    """With Kerberos: clients can request delegation tokens (SASL DIGEST-MD5), as Spark on YARN, Trino and HiveServer2
    do for processes and users without a ticket. Tokens are stored in the database in Hive's format, so every server on
    it accepts them, including Java servers with DBTokenStore."""
    token_max_lifetime_s: Seconds = hive_setting(
        7 * 86_400.0, "cluster.delegation.token.max-lifetime", before="hive.", ge=60
    )
    """Lifetime of a delegation token."""
    token_renew_interval_s: Seconds = hive_setting(
        86_400.0, "cluster.delegation.token.renew-interval", before="hive.", ge=60
    )
    """Time by which a renewal extends the date that the client receives as its result. As in Hive, a token that is not
    renewed stays valid until the end of its lifetime."""
    token_key_update_interval_s: Seconds = hive_setting(
        86_400.0, "cluster.delegation.key.update-interval", before="hive.", ge=60
    )
    """How long a key signs new tokens. It is kept until the last of them has expired."""
    token_clean_interval_s: Seconds = hive_setting(900.0, "cluster.delegation.token.gc-interval", before="hive.", ge=1)
    """Time between two deletions of expired tokens and keys. inf: one deletion, after the start."""
    proxy_users: str = setting("")
    """Users who can request tokens for other users: `trino users=* hosts=10.0.0.0/8; hive groups=analysts hosts=*`.
    Each rule needs users or groups, and hosts; * allows all. The site file's hadoop.proxyuser.NAME.users, .groups and
    .hosts have the same meaning. proxy_groups selects where groups come from."""
    proxy_groups: Literal["system", "directory"] = setting("system")
    """Source of the groups in the rules of proxy_users. system: the server's operating system (`id USER`), which must
    know the user for whom the token is requested. directory: the LDAP directory, searched by ldap_bind_dn as the other
    ldap_ settings describe; results are at most authorization.directory_groups_max_age_s old."""
    plain: Literal["off", "ldap"] = setting(
        "off", site_keys=metastore_keys("authentication"), from_site=lambda mode: _MODES.get(mode.strip().lower(), mode)
    )
    """ldap: clients authenticate with SASL PLAIN, and the server checks their passwords with the directory. Needs
    hms-cache[ldap], and server.tls_enabled, because passwords are sent unencrypted."""
    ldap_url: str = _ldap_setting("", "url")
    """Addresses of the directory, such as ldaps://ldap.example.com; several are separated by spaces."""
    ldap_user_dn_pattern: str = _ldap_setting("", "userDNPattern")
    """Distinguished names of users with %s for the name, such as uid=%s,ou=people,dc=example,dc=com; several are
    separated by colons."""
    ldap_base_dn: str = _ldap_setting("", "baseDN")
    """Base of the search for users, if there is no pattern."""
    ldap_guid_key: str = _ldap_setting("uid", "guidKey")
    """Attribute that holds the user name, for searches below ldap_base_dn."""
    ldap_domain: str = _ldap_setting("", "Domain")
    """Active Directory domain. Users bind as name@domain."""
    ldap_user_case: Literal["keep", "lower"] = setting(
        "keep", reason="Grants and owners in an existing metastore may have names with capital letters."
    )
    """Case of the names of users who authenticate with a password. A directory treats ANN and ann as one account. keep:
    as the client sends it, as in Hive: then they are two users, with separate grants, objects and limits. lower: names
    are converted to lower case."""
    ldap_bind_dn: str = _ldap_setting("", "binddn")
    """Account that searches for users and groups: a distinguished name or, in an Active Directory, name@domain. Empty:
    each user searches for itself."""
    ldap_bind_password: SecretStr = _ldap_setting(SecretStr(""), "bindpw")
    """The account's password."""
    ldap_bind_password_file: OptionalPath = setting(None)
    """File whose first line is that password."""
    ldap_bind_password_command: str = setting("")
    """Command whose first line of output is that password."""
    ldap_user_filter: Words = _ldap_setting((), "userFilter")
    """Names of the users who can connect. Empty: all."""
    ldap_group_filter: Words = _ldap_setting((), "groupFilter")
    """Groups whose members can connect, by the first part of their distinguished names. Empty: all."""
    ldap_group_dn_pattern: str = _ldap_setting("", "groupDNPattern")
    """Pattern for the distinguished names of groups, such as cn=%s,ou=groups,dc=example,dc=com; several are separated
    by colons. Empty: groups are searched below ldap_base_dn."""
    ldap_group_class_key: str = _ldap_setting("groupOfNames", "groupClassKey")
    """Object class of groups, such as group or posixGroup."""
    ldap_group_membership_key: str = _ldap_setting("member", "groupMembershipKey")
    """Attribute of a group that lists its members, by distinguished name or by name."""
    ldap_user_membership_key: str = _ldap_setting("", "userMembershipKey")
    """Attribute of a user that lists its groups, such as memberOf. If it is set, it is used instead of the groups' own
    attribute."""
    ldap_custom_query: str = _ldap_setting("", "customLDAPQuery")
    """LDAP filter. Users whom it finds below ldap_base_dn, and members of the groups that it finds, can connect.
    Replaces ldap_user_filter and ldap_group_filter."""
    ldap_user_search_filter: str = _ldap_setting("", "userSearchFilter")
    """LDAP filter that must find the user below ldap_base_dn; {0} is the name: (&(uid={0})(l=Paris)). This setting and
    the next one replace the filters above."""
    ldap_group_search_filter: str = _ldap_setting("", "groupSearchFilter")
    """LDAP filter that must find an entry below ldap_group_base_dn; {0} is the user's name and {1} its distinguished
    name: (&(cn=hive)(memberUid={0}))."""
    ldap_group_base_dn: str = _ldap_setting("", "groupBaseDN")
    """Base of the search with ldap_group_search_filter."""
    ldap_ca_file: OptionalPath = setting(None)
    """PEM file with the authorities of ldaps:// addresses. Empty: those of the system."""
    ldap_timeout_s: Seconds = setting(
        5.0, reason="Half of the client's time, so that a second directory can be tried.", gt=0, le=60
    )
    """Maximum time for an answer of the directory."""
    jwt_jwks_url: str = setting("", site_keys=metastore_keys("authentication.jwt.jwks.url"))
    """Address of the keys of the issuer of JSON Web Tokens: https://issuer.example.com/jwks.json, or file:/path. If it
    is set, each request needs a bearer token. Needs server.transport_mode = http and hms-cache[jwt]."""
    jwt_issuer: str = setting("")
    """Required value of the claim `iss`. Empty: any issuer whose key is in the JWKS."""
    jwt_audience: Words = setting(())
    """Accepted values of the claim `aud`. Empty: the claim is not checked, as in Hive. Set it if the issuer also issues
    tokens for other services."""
    jwt_algorithms: Words = setting(
        ("RS256", "ES256"),
        reason="Those that issuers use. With a symmetric key, every service that checks tokens could also create them.",
    )
    """Accepted signature algorithms, out of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA."""
    jwt_user_claim: str = setting("sub", reason="As in Hive.")
    """Claim that contains the user name."""
    jwt_groups_claim: str = setting("")
    """Claim that contains the user's groups, such as groups: a list, or a single name. They are the token_groups of a
    policy, grants to groups apply to them (sql), and an Open Policy Agent receives them. Empty: none."""
    jwt_leeway_s: Seconds = setting(30.0, reason="Clocks synchronized by NTP differ by less.", ge=0, le=600)
    """Tolerated clock difference when the times of a token are checked."""
    jwt_refresh_interval_s: Seconds = setting(
        300.0, reason="A token with an unknown key id causes an additional read at once.", ge=1, le=86_400
    )
    """Time between two reads of the keys. A withdrawn key is trusted for this long, or twice as long while the keys
    cannot be read."""
    jwt_retry_interval_s: Seconds = setting(
        10.0, reason="Clients that send invented key ids must not cause constant requests.", ge=0.1, le=3600
    )
    """Minimum time between two reads of the keys that are caused by a token with an unknown key or by a failed read."""
    jwt_ca_file: OptionalPath = setting(None)
    """PEM file with the authorities of the https address. Empty: those of the system."""
    jwt_timeout_s: Seconds = setting(5.0, reason="As for the directory.", gt=0, le=60)
    """Maximum time for an answer of the issuer's server."""
    handshake_timeout_s: Seconds = setting(
        10.0, reason="A negotiation takes four round trips, and a password one request to the directory.", gt=0, le=3600
    )
    """Maximum time for authentication. After that, the client is disconnected."""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.kerberos_enabled and not (self.kerberos_principal and self.kerberos_keytab_file):
            raise ValueError("kerberos_enabled needs kerberos_principal and kerberos_keytab_file")
        problem = problem_of_qualities(self.quality_of_protection)
        if problem is not None:
            raise ValueError(problem)
        odd = set(self.jwt_algorithms) - _JWT_ALGORITHMS
        if self.jwt_jwks_url and (odd or not self.jwt_algorithms):
            raise ValueError(f"jwt_algorithms can be {', '.join(sorted(_JWT_ALGORITHMS))}, not {', '.join(odd)}")
        if self.jwt_jwks_url and self.jwt_jwks_url.partition(":")[0] not in ("https", "http", "file"):
            raise ValueError("jwt_jwks_url must begin with https:, http: or file:")
        if self.plain == "ldap" and not self.ldap_url:
            raise ValueError("plain = ldap needs ldap_url")
        if self.plain == "ldap" and not (self.ldap_user_dn_pattern or self.ldap_base_dn or self.ldap_domain):
            raise ValueError("plain = ldap needs ldap_user_dn_pattern, ldap_base_dn or ldap_domain")
        problem = self._problem_of_filters() if self.plain == "ldap" else None
        if problem is not None:
            raise ValueError(problem)
        return self

    def _problem_of_filters(self) -> str | None:
        lists = bool(self.ldap_user_filter or self.ldap_group_filter)
        searches = bool(self.ldap_user_search_filter or self.ldap_group_search_filter)
        needs_base = self.ldap_custom_query or self.ldap_user_search_filter or (self.ldap_domain and self.ldap_bind_dn)
        of_groups = self.ldap_group_filter and not self.ldap_group_dn_pattern
        names_user = "{0}" in self.ldap_group_search_filter or "{1}" in self.ldap_group_search_filter
        if lists + searches + bool(self.ldap_custom_query) > 1:
            return (
                "use only one kind of filter: ldap_user_filter and ldap_group_filter, or ldap_custom_query, or"
                " ldap_user_search_filter and ldap_group_search_filter. Only the last kind that is set would apply"
            )
        if bool(self.ldap_bind_dn) != bool(self.ldap_bind_password.get_secret_value()):
            return "ldap_bind_dn and ldap_bind_password must be set together"
        if (needs_base or of_groups) and not self.ldap_base_dn:
            return "these filters need ldap_base_dn, the base of their searches"
        if self.ldap_user_search_filter and "{0}" not in self.ldap_user_search_filter:
            return "ldap_user_search_filter needs {0}, the user's name: otherwise it is the same for every user"
        if self.ldap_group_search_filter and not (names_user and self.ldap_group_base_dn):
            return "ldap_group_search_filter needs {0} or {1}, and ldap_group_base_dn"
        if self.ldap_domain and (self.ldap_group_filter or searches) and not self.ldap_base_dn:
            return "ldap_domain with filters needs ldap_base_dn, to find the distinguished name of a user"
        return None
