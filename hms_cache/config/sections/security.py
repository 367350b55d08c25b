"""Protection of the server."""

from __future__ import annotations

from hms_cache.config.setting import Section, setting


class SecuritySettings(Section):
    """Protection of the server. See docs/security.md."""

    accept_insecure: bool = setting(False)
    """true: start even if a site file or the database's URL asks for protection that this server does not give (SASL,
    TLS, authorization, filters). /status and the overview show the protection that is missing."""
    delegation_tokens: bool = setting(False)
    """Answer the calls with which HiveServer2 itself reads and writes tokens and the keys that sign them. Everyone who
    can send these calls can read the keys, and act as any user on every Kerberized server of the database. Clients' own
    tokens do not need this setting: see authentication.delegation_tokens."""
