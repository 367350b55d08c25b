"""What operators see: the management port and the log."""

from __future__ import annotations

from typing import Literal

from pydantic import SecretStr

from hms_cache.config.quantities import OptionalPath, Seconds
from hms_cache.config.setting import Section, setting


class AdminSettings(Section):
    """The management port: health, metrics, pages, commands."""

    enabled: bool = setting(True, "false: no management port.")
    host: str = setting(
        "127.0.0.1", "Address to listen on. Reading needs no token, so other machines are let in on purpose only."
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
        unit="seconds",
        reason="People notice; the calls themselves take milliseconds.",
        reloadable=True,
        gt=0,
    )
