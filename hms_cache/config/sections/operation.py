"""The management port and the log."""

from __future__ import annotations

from typing import Literal

from pydantic import SecretStr

from hms_cache.config.quantities import OptionalPath, Seconds, SizeBytes, Words
from hms_cache.config.setting import Section, setting


class AdminSettings(Section):
    """The management port: health, metrics, pages, commands."""

    enabled: bool = setting(True)
    """false: the management port is closed."""
    host: str = setting("127.0.0.1")
    """Address to listen on. Unless read_token is set, reading needs no token, so the default accepts connections of
    this machine only."""
    port: int = setting(9085, reason="Beside the metastore's 9083 and free of Hive's own.", ge=0, le=65535)
    """Port to listen on; 0 picks a free one."""
    token: SecretStr = setting(SecretStr(""), reloadable=True)
    """Token that is required for commands that change something. Empty: such commands are refused."""
    token_file: OptionalPath = setting(None, reloadable=True)
    """File whose first line is that token."""
    token_command: str = setting("", reloadable=True)
    """Command whose first line of output is that token, such as vault kv get -field=token hms."""
    read_token: SecretStr = setting(SecretStr(""), reloadable=True)
    """Token that is required for all other requests except /livez and /readyz; admin.token is accepted as well. Empty:
    reading needs no token."""
    read_token_file: OptionalPath = setting(None, reloadable=True)
    """File whose first line is that token."""
    read_token_command: str = setting("", reloadable=True)
    """Command whose first line of output is that token."""
    jwt_rights_claim: str = setting("")
    """Claim of a bearer token (see authentication.jwt_jwks_url) that contains its rights on this port, such as roles,
    scope or realm_access.roles: a list, or words separated by blanks. If it is set, reading needs a token. Empty: such
    tokens give access only to the change feed."""
    jwt_read_rights: Words = setting(("hms-cache:read",), reloadable=True)
    """Values of that claim that allow reading. Those of jwt_command_rights allow it too."""
    jwt_command_rights: Words = setting(("hms-cache:command",), reloadable=True)
    """Values of that claim that allow commands."""
    tls_enabled: bool = setting(False)
    """true: the port accepts HTTPS only, with the certificate and the other TLS settings of section server. It does not
    request client certificates."""
    allowed_hosts: Words = setting(
        ("localhost", "*.localhost", "*.svc", "*.svc.cluster.local"),
        reason="Names that nobody can register, including those of Kubernetes services.",
        reloadable=True,
    )
    """Host names, with * and ?, that requests can use (the Host header), in addition to addresses, names without a dot
    and this machine's own names; * allows all. If an attacker can register an allowed name, a web page under that name
    can read this port through an operator's browser."""
    max_connections: int = setting(
        128, unit="connections", reason="For probes, scrapes, and browsers with six connections each.", ge=8, le=10_000
    )
    """Maximum number of open connections, at most a quarter of them from one address. Further connections are closed
    and counted."""
    request_timeout_s: Seconds = setting(
        10.0, reason="A header is one packet. A client that takes longer has stalled.", gt=0, le=3600
    )
    """A connection is closed if the header of a request has not arrived, or an answer has not been read, within this
    time."""
    max_listeners: int = setting(
        1000,
        unit="connections",
        reason="Each takes a socket, at most some 100 KiB, and a copy of each event.",
        ge=0,
        le=10_000,
    )
    """Maximum number of listeners of the change feed, in addition to max_connections. Further listeners get the status
    503."""
    max_listeners_per_address: int = setting(
        250, unit="connections", reason="A single client leaves room for others.", ge=0, le=10_000
    )
    """Maximum number of listeners from one client address. 0: no limit. All clients behind a proxy share its
    address."""
    listener_heartbeat_s: Seconds = setting(
        15.0, reason="Proxies close connections that are idle for a minute, some for half of it.", gt=0, le=3600
    )
    """A listener to which no event was sent for this time receives its position."""
    listener_buffer_bytes: SizeBytes = setting(
        16 * 1024 * 1024, reason="Some thousand events: seconds of a busy metastore.", ge=64 * 1024
    )
    """Size of the newest events that are kept for all listeners of the change feed together. At least the events of the
    last two reads of the log are kept. The feed of a listener that falls further behind ends with an explanation."""
    listener_tokens_file: OptionalPath = setting(None, reloadable=True)
    """With authorization.provider: file of the users who can listen to the change feed. Each line contains a user name
    and a token, or sha256: and its digest. Each listener sees what that user can read. SIGHUP reads the file again."""
    serve_stale: bool = setting(False, reloadable=True)
    """Whether /readyz reports success while the database cannot be reached, but memory still answers reads within
    max_staleness_ms."""


class LogSettings(Section):
    """The server's log on standard error."""

    format: Literal["text", "json"] = setting("text", reloadable=True)
    """Whether log lines are text or JSON objects."""
    level: Literal["debug", "info", "warning", "error"] = setting("info", reloadable=True)
    """Lowest level of messages that are logged."""
    slow_call_s: Seconds = setting(
        5.0, reason="Users notice such a delay; most calls take milliseconds.", reloadable=True, gt=0
    )
    """A call that takes longer is logged, with the time spent in each part. inf: no call is logged."""
