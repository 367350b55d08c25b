"""Database addresses: SQLAlchemy's and JDBC's forms in, one SQLAlchemy form out.

An operator who moves over from a Java metastore pastes the JDBC URL of ``javax.jdo.option.ConnectionURL``; everybody
else writes SQLAlchemy's. Only text is looked at: nothing is imported or connected here.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

#: What may stand before ``://`` and the driver this program uses for it. A named driver of the same database is
#: replaced.
_DRIVERS = {
    "sqlite": "sqlite",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
}

#: JDBC parameters that mean something to our drivers too, by database, and their name there. What else a JDBC URL
#: carries (time zones, server-side caches, ``createDatabaseIfNotExist``, …) speaks to Java's driver and is dropped.
_KEPT_PARAMETERS = {
    "mysql+pymysql": {"serverSslCert": "ssl_ca"},
    "postgresql+psycopg": {
        "sslmode": "sslmode",
        "sslrootcert": "sslrootcert",
        "sslcert": "sslcert",
        "sslkey": "sslkey",
    },
}


def sqlalchemy_url(text: str) -> str:
    """``text`` in SQLAlchemy's form, with the driver that this program uses.

    Raises ``ValueError`` whose message says what is wrong and what to write instead; a password is never part of it.
    """
    if text.startswith("jdbc:"):
        return _from_jdbc(text.removeprefix("jdbc:"))
    scheme, separator, rest = text.partition("://")
    if not separator:
        raise ValueError(
            "this is no database URL: write sqlite:///file.db, mysql://user@host/database or"
            " postgresql://user@host/database"
        )
    database = scheme.split("+")[0].lower()
    if database not in _DRIVERS:
        raise ValueError(f"no database {database!r} here: sqlite, mysql (also for MariaDB) and postgresql are")
    return f"{_DRIVERS[database]}://{rest}"


def _from_jdbc(text: str) -> str:
    database, _, rest = text.partition(":")
    database = database.lower()
    if database == "derby":
        raise ValueError("Derby runs only inside Java: use sqlite:///file.db for an embedded database")
    if database not in _DRIVERS:
        raise ValueError(f"no database {database!r} here: sqlite, mysql (also for MariaDB) and postgresql are")
    if database == "sqlite":
        return f"sqlite:///{rest}"
    driver = _DRIVERS[database]
    parts = urlsplit(f"{database}:{rest}")
    if not parts.netloc or "," in parts.netloc:  # jdbc:mysql:replication://…, jdbc:postgresql://a,b/…
        raise ValueError("name one host, the primary's: hms-cache needs one endpoint that always is the primary")
    user, password, host = parts.username, parts.password, parts.netloc.rpartition("@")[2]
    kept: dict[str, str] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name == "user":
            user = user or value
        elif name == "password":
            password = password or value
        elif name == "currentSchema":
            kept["options"] = f"-csearch_path={value}"
        elif name in _KEPT_PARAMETERS[driver]:
            kept[_KEPT_PARAMETERS[driver][name]] = value
    credentials = ""
    if user:
        credentials = (
            quote(unquote(user), safe="") + (f":{quote(unquote(password), safe='')}" if password else "") + "@"
        )
    query = f"?{urlencode(kept)}" if kept else ""
    return f"{driver}://{credentials}{host}{parts.path}{query}"


def with_credentials(url: str, username: str | None, password: str | None) -> str:
    """``url`` (SQLAlchemy form) with user name and password put in where it has none of its own."""
    scheme, separator, rest = url.partition("://")
    if scheme.startswith("sqlite") or not (username or password):
        return url
    authority, slash, tail = rest.partition("/")
    own, at, host = authority.rpartition("@")
    own_user, _, own_password = own.partition(":")
    user = own_user if at else quote(username or "", safe="")
    secret = own_password or quote(password or "", safe="")
    credentials = user + (f":{secret}" if secret else "")
    return f"{scheme}{separator}{credentials}@{host}{slash}{tail}"


def masked(url: str) -> str:
    """``url`` fit to be shown: a password in it is replaced by ``***``."""
    scheme, separator, rest = url.partition("://")
    authority, slash, tail = rest.partition("/")
    credentials, at, host = authority.rpartition("@")
    if at and ":" in credentials:
        credentials = credentials.partition(":")[0] + ":***"
    tail = re.sub(r"(?i)([?&;]password=)[^&;]*", r"\1***", tail)
    return f"{scheme}{separator}{credentials}{at}{host}{slash}{tail}"
