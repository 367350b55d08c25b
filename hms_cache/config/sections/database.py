"""The metastore database."""

from __future__ import annotations

from pydantic import SecretStr, field_validator, model_validator

from hms_cache.config.database_url import is_without_tls, sqlalchemy_url, verifies_server, with_credentials, with_tls
from hms_cache.config.quantities import OptionalPath, Seconds
from hms_cache.config.setting import Section, hive_setting, metastore_keys, setting


class DatabaseSettings(Section):
    """The metastore database."""

    url: str = setting("sqlite:///hms-cache.db", site_keys=("javax.jdo.option.ConnectionURL",))
    """Location of the catalog: sqlite:///file.db, mysql://host/database (also for MariaDB), postgresql://host/database,
    or the JDBC form of the last two. The address must always lead to the primary."""
    username: str = setting("", site_keys=("javax.jdo.option.ConnectionUserName",))
    """User name, if the URL contains none."""
    password: SecretStr = setting(SecretStr(""), site_keys=("javax.jdo.option.ConnectionPassword",))
    """Password, if the URL contains none. Prefer password_file."""
    password_file: OptionalPath = setting(None)
    """File whose first line is the password."""
    password_command: str = setting("")
    """Command that prints the password as the first line of its output. It is run without a shell."""
    tls_enabled: bool = setting(False, site_keys=metastore_keys("dbaccess.ssl.use.SSL"))
    """Whether connections require TLS and a certificate of a trusted authority. The URL can require more (the host's
    name in the certificate, a client certificate); it must not exclude TLS."""
    tls_ca_file: OptionalPath = setting(None, site_keys=metastore_keys("dbaccess.ssl.truststore.path"))
    """The authorities trusted with tls_enabled, unless the URL names its own: PEM, or a key store (PKCS12, JKS, JCEKS;
    needs the extra tls). Without a file, those of the system."""
    tls_ca_password: SecretStr = setting(SecretStr(""), site_keys=metastore_keys("dbaccess.ssl.truststore.password"))
    """Password of tls_ca_file, if it is a key store. Prefer tls_ca_password_file."""
    tls_ca_password_file: OptionalPath = setting(None)
    """File whose first line is the password."""
    tls_ca_password_command: str = setting("")
    """Command that prints the password as the first line of its output. It is run without a shell."""
    pool_size: int = setting(
        28,
        unit="connections",
        reason="One for each of server.threads, write_threads and heavy_threads: a call never needs two at once, so no"
        " call waits for a connection.",
        site_keys=("datanucleus.connectionPool.maxPoolSize",),
        ge=1,
        le=1000,
    )
    """Maximum number of database connections for calls (reads, writes, and loads of the cache). The connections of
    server.transaction_threads are not included."""
    check_pool_size: int = setting(
        2,
        unit="connections",
        reason="All waiting calls share a check, and one thread polls, so at most two are busy.",
        ge=2,
        le=16,
    )
    """Number of connections for position checks and polling. Calls do not use them."""
    pool_timeout_s: Seconds = setting(
        30.0, reason="Connections become free within milliseconds; half a minute without one is an outage.", gt=0
    )
    """Time that a call waits for a connection of the pool before it fails, at most a day."""
    connect_timeout_s: Seconds = setting(
        10.0, reason="Long enough for a failover's new address, short enough to be noticed.", gt=0
    )
    """Maximum time for opening a connection, at most a day. On PostgreSQL it is rounded up to whole seconds, and at
    least 2."""
    check_connect_timeout_s: Seconds = setting(
        5.0,
        reason="Every read waits for a position check, so an unreachable host must be noticed long before clients"
        " give up.",
        gt=0,
    )
    """As connect_timeout_s, for position checks and polling."""
    check_timeout_s: Seconds = setting(
        5.0,
        reason="A check takes a millisecond; one that takes seconds will not be answered. Then reads fail with a"
        " retriable error, or are answered within max_staleness_ms.",
        gt=0,
    )
    """Maximum time for a position check, and for one statement of the event poller, at most a day. The connection is
    closed one second later, because a server that hangs, or a host that is gone, sends no error."""
    statement_timeout_s: Seconds = setting(
        300.0, reason="Half of the 600 s that Hive's clients wait for an answer, so that they get the error.", gt=0
    )
    """Maximum time for one statement, and for waiting for a lock in the database (on SQLite, only the latter), at most
    a day."""
    recycle_s: Seconds = setting(
        1800.0,
        reason="Below the idle limits of databases (MariaDB: 8 h) and of the firewalls before them (often 1 h).",
        gt=0,
    )
    """A connection older than this is replaced before its next use. inf: never."""
    retry_attempts: int = hive_setting(10, "hmshandler.retry.attempts", before="hive.", unit="attempts", ge=1, le=100)
    """Maximum number of attempts for a transaction that fails because of a deadlock or a serialization error."""
    retry_total_s: Seconds = setting(
        300.0, reason="As for statement_timeout_s: half of the time that Hive's clients wait.", gt=0
    )
    """No further attempt is started after this time."""
    log_values: bool = setting(False)
    """Whether the log shows the values of a failed statement in addition to its text. They are names, parameters and
    statistics that clients have sent."""

    @field_validator("url")
    @classmethod
    def _in_sqlalchemy_form(cls, url: str) -> str:
        return sqlalchemy_url(url)

    @model_validator(mode="after")
    def _with_tls_if_required(self) -> DatabaseSettings:
        if self.tls_enabled and not self.is_sqlite and is_without_tls(self.url):
            raise ValueError(
                "tls_enabled requires TLS, which the URL excludes: remove its ssl_mode or sslmode (useSSL)"
            )
        return self

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is embedded."""
        return self.url.startswith("sqlite")

    @property
    def verifies_server(self) -> bool:
        """Whether connections verify the identity of the database server by TLS."""
        return self.tls_enabled or verifies_server(self.url)

    def sqlalchemy_url(self) -> str:
        """Returns the URL with user name, password and TLS, for connecting. It must not be shown or logged."""
        url = with_credentials(self.url, self.username, self.password.get_secret_value())
        if not self.tls_enabled:
            return url
        file = "" if self.tls_ca_file is None else str(self.tls_ca_file)
        return with_tls(url, file, self.tls_ca_password.get_secret_value())
