"""What operators see: the management port and the log."""

from __future__ import annotations

from typing import Literal

from pydantic import SecretStr

from hms_cache.config.quantities import OptionalPath, Seconds, SizeBytes, Words
from hms_cache.config.setting import Section, setting


class AdminSettings(Section):
    """The management port: health, metrics, pages, commands."""

    enabled: bool = setting(True, "false: no management port.")
    host: str = setting(
        "127.0.0.1",
        "Address to listen on. Reading needs no token unless read_token is set, so other machines are let in on purpose"
        " only.",
    )
    port: int = setting(
        9085,
        "Port to listen on; 0 picks a free one.",
        reason="Beside the metastore's 9083 and free of Hive's own.",
        ge=0,
        le=65535,
    )
    token: SecretStr = setting(
        SecretStr(""),
        "What a command that changes something must carry. Empty: such commands are refused.",
        reloadable=True,
    )
    token_file: OptionalPath = setting(None, "File whose first line is that token.", reloadable=True)
    token_command: str = setting(
        "", "Command whose first line of output is that token, such as vault kv get -field=token hms.", reloadable=True
    )
    read_token: SecretStr = setting(
        SecretStr(""),
        "What reading must carry, all but /livez and /readyz; token will do as well. Empty: anyone may read.",
        reloadable=True,
    )
    read_token_file: OptionalPath = setting(None, "File whose first line is that token.", reloadable=True)
    read_token_command: str = setting("", "Command whose first line of output is that token.", reloadable=True)
    tls_enabled: bool = setting(
        False,
        "true: the port speaks HTTPS only, with the certificate and the other TLS settings of the section server; it"
        " asks for no client certificates.",
    )
    allowed_hosts: Words = setting(
        ("localhost", "*.localhost", "*.svc", "*.svc.cluster.local"),
        "Names, with * and ?, under which the port is asked (the Host header), beside addresses, names without a dot"
        " and this machine's own; * allows all. A name that a stranger can register lets a page of theirs read this"
        " port through an operator's browser.",
        reason="Names that nobody can register, Kubernetes' services among them.",
        reloadable=True,
    )
    max_connections: int = setting(
        128,
        "Connections open at once, a quarter of them from one address; one more is closed at once and counted.",
        unit="connections",
        reason="Probes, scrapes and some browsers at six connections each.",
        ge=8,
        le=10_000,
    )
    request_timeout_s: Seconds = setting(
        10.0,
        "A request whose header is not there by then, and an answer that nobody takes, closes its connection.",
        reason="A header is one packet; half a minute of a stalled client would be three scrapes.",
        gt=0,
        le=3600,
    )
    max_listeners: int = setting(
        1000,
        "Listeners of the change feed at once, beside max_connections; one more is answered 503.",
        unit="connections",
        reason="Each costs a socket and some 100 KiB at most, and a copy of each event.",
        ge=0,
        le=10_000,
    )
    max_listeners_per_address: int = setting(
        250,
        "Of these from one client address; 0: no limit. Behind a proxy all come from its address.",
        unit="connections",
        reason="One client that takes all it can get leaves room for others.",
        ge=0,
        le=10_000,
    )
    listener_heartbeat_s: Seconds = setting(
        15.0,
        "A listener that no event was sent to for so long is sent its position.",
        reason="Proxies close connections that are idle for a minute, some for half of it.",
        gt=0,
        le=3600,
    )
    listener_buffer_bytes: SizeBytes = setting(
        16 * 1024 * 1024,
        "Newest events kept for all listeners of the change feed together, and at least what the last two reads of the"
        " log brought; one that followed and falls further behind is told so and its feed ends.",
        reason="Some thousand events: seconds of a busy metastore.",
        ge=64 * 1024,
    )
    listener_tokens_file: OptionalPath = setting(
        None,
        "With authorization.provider: file of who may listen to the change feed, on each line a user's name and a token"
        " or sha256: and its digest. Each sees what that user may read. SIGHUP takes it anew.",
        reloadable=True,
    )
    serve_stale: bool = setting(
        False,
        "Whether /readyz says yes while the database is away and reads within max_staleness_ms go on.",
        reloadable=True,
    )


class LogSettings(Section):
    """What the server writes to standard error."""

    format: Literal["text", "json"] = setting("text", "Lines for people, or one JSON object per line.", reloadable=True)
    level: Literal["debug", "info", "warning", "error"] = setting(
        "info", "Least important messages written.", reloadable=True
    )
    slow_call_s: Seconds = setting(
        5.0,
        "A call that takes longer is logged with where its time went; inf: none is.",
        reason="People notice; the calls themselves take milliseconds.",
        reloadable=True,
        gt=0,
    )
