"""The metastore database."""

from __future__ import annotations

from pydantic import SecretStr, field_validator

from hms_cache.config.database_url import sqlalchemy_url, with_credentials
from hms_cache.config.quantities import OptionalPath, Seconds
from hms_cache.config.setting import Section, setting


class DatabaseSettings(Section):
    """The metastore database."""

    url: str = setting(
        "sqlite:///hms-cache.db",
        "Where the catalog lives: sqlite:///file.db, mysql://host/database (also MariaDB),"
        " postgresql://host/database, or the"
        " JDBC form of the last two. It must be one endpoint that always is the primary.",
        site_keys=("javax.jdo.option.ConnectionURL",),
    )
    username: str = setting("", "User name, when the URL has none.", site_keys=("javax.jdo.option.ConnectionUserName",))
    password: SecretStr = setting(
        SecretStr(""),
        "Password, when the URL has none. Better in a file: password_file.",
        site_keys=("javax.jdo.option.ConnectionPassword",),
    )
    password_file: OptionalPath = setting(None, "File whose first line is the password.")
    password_command: str = setting("", "Command whose first line of output is the password; no shell takes part.")
    pool_size: int = setting(
        28,
        "Connections kept for calls (reads, writes and loads of the cache together), and the most that are opened."
        " Those of server.transaction_threads come on top.",
        unit="connections",
        reason="One for each of server.threads, write_threads and heavy_threads: a call never needs two at once, so no"
        " call waits for a connection.",
        site_keys=("datanucleus.connectionPool.maxPoolSize",),
        ge=1,
        le=1000,
    )
    check_pool_size: int = setting(
        2,
        "Connections for position checks and polling, besides those of pool_size. No call uses them.",
        unit="connections",
        reason="Checks are shared by all calls that wait, and one thread polls, so more than two are never busy.",
        ge=2,
        le=16,
    )
    pool_timeout_s: Seconds = setting(
        30.0,
        "How long a call waits for a connection of the pool before it fails.",
        reason="Connections come free within milliseconds; half a minute without one is an outage.",
        gt=0,
    )
    connect_timeout_s: Seconds = setting(
        10.0,
        "How long opening a connection may take.",
        reason="Long enough for a failover's new address, short enough to be noticed.",
        gt=0,
    )
    check_connect_timeout_s: Seconds = setting(
        5.0,
        "How long opening a connection for position checks and polling may take.",
        reason="Every read waits for a check: a host that is gone must be known long before clients give up.",
        gt=0,
    )
    check_timeout_s: Seconds = setting(
        5.0,
        "How long a position check, or one statement of the event poller, may take. A second later the connection"
        " is given up: a server that hangs, or a host that is gone, does not say so.",
        reason="A check takes a millisecond; one that takes seconds will not come. Then reads fail, retriable, or are"
        " answered within max_staleness_ms.",
        gt=0,
    )
    statement_timeout_s: Seconds = setting(
        300.0,
        "How long one statement may take, and a transaction wait for a lock (SQLite: only the latter).",
        reason="Half of the 600 s that Hive's clients wait for an answer, so that they hear why.",
        gt=0,
    )
    recycle_s: Seconds = setting(
        1800.0,
        "A connection older than this is replaced before its next use.",
        reason="Below the idle limits of databases (MariaDB: 8 h) and of the firewalls before them (often 1 h).",
        gt=0,
    )
    retry_attempts: int = setting(
        10,
        "How often a transaction that lost to a deadlock or a serialization error is tried in all.",
        unit="attempts",
        reason="Hive's default.",
        site_keys=("metastore.hmshandler.retry.attempts", "hive.hmshandler.retry.attempts"),
        ge=1,
        le=100,
    )
    retry_total_s: Seconds = setting(
        300.0,
        "After so long no further attempt is begun.",
        reason="As statement_timeout_s: half of what Hive's clients wait.",
        gt=0,
    )

    @field_validator("url")
    @classmethod
    def _in_sqlalchemy_form(cls, url: str) -> str:
        return sqlalchemy_url(url)

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is an embedded one."""
        return self.url.startswith("sqlite")

    def sqlalchemy_url(self) -> str:
        """The URL to connect to, user name and password included. Not to be shown or logged."""
        return with_credentials(self.url, self.username, self.password.get_secret_value())
