"""What protects the server, and what was asked for in vain."""

from __future__ import annotations

from hms_cache.config.setting import Section, setting


class SecuritySettings(Section):
    """What protects the server. See docs/security.md."""

    accept_insecure: bool = setting(False)
    """true: start although a site file or the database's URL asks for protection that this server does not give (SASL,
    TLS, authorization, filters). /status and the overview show what was accepted."""
    delegation_tokens: bool = setting(False)
    """Answer the calls by which HiveServer2 itself reads and writes tokens and the keys that sign them. Whoever may
    send them can read the keys, and act as anyone on every Kerberized server on the database. Clients' own tokens do
    not need it: see authentication.delegation_tokens."""
