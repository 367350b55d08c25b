"""What protects the server, and what was asked for in vain."""

from __future__ import annotations

from hms_cache.config.setting import Section, setting


class SecuritySettings(Section):
    """What protects the server. See docs/security.md."""

    accept_insecure: bool = setting(
        False,
        "true: start although a site file or the database's URL asks for protection that this server does not give"
        " (SASL, TLS, authorization, filters). /status and the overview tell what was accepted.",
    )
    delegation_tokens: bool = setting(
        False,
        "Answer the calls that read and write delegation tokens and the keys that sign them. Clients are not"
        " authenticated: whoever reaches the port could read the keys, and forge tokens of every Kerberized server on"
        " the same database.",
    )
