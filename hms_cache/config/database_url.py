"""Database URLs: accepts SQLAlchemy's and JDBC's forms, and converts both to SQLAlchemy's.

An operator who moves from a Java metastore uses the JDBC URL of ``javax.jdo.option.ConnectionURL``; all others use
SQLAlchemy's form. This module only processes text: it imports no driver and connects to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, unquote, urlencode

from hms_cache.config import jdbc_tls
from hms_cache.config.secrets import is_secret_name

#: Names of databases before ``://``, with the driver that this program uses. It replaces a driver named in the URL.
_DRIVERS = {
    "sqlite": "sqlite",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
}

_HOST = re.compile(r"(?P<name>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]{0,5}))?")
_HIGHEST_PORT = 65535

#: Splits URLs like SQLAlchemy: a password ends at the ``@``, and may contain any other character.
_URL = re.compile(
    r"(?P<scheme>[\w+.-]+)://"
    r"(?:(?P<user>[^:/]*)(?::(?P<password>[^@]*))?@)?"
    r"(?P<host>[^/?]*)"
    r"(?P<path>/[^?]*)?"
    r"(?:\?(?P<query>.*))?",
    re.DOTALL,
)


def sqlalchemy_url(text: str) -> str:
    """Converts ``text`` to SQLAlchemy's form, with the driver that this program uses.

    Raises ``ValueError``, whose message says what is wrong and what to write instead. The message never contains a
    password.
    """
    if text.startswith("jdbc:"):
        return _from_jdbc(text.removeprefix("jdbc:"))
    scheme, separator, rest = text.partition("://")
    database = scheme.split("+")[0].lower()
    if not separator or not database.isidentifier():  # not shown, because it may be part of a password
        raise ValueError(
            "this is not a database URL: write sqlite:///file.db, mysql://user@host/database or"
            " postgresql://user@host/database"
        )
    if database not in _DRIVERS:
        raise ValueError(f"database {database!r} is not supported: use sqlite, mysql (also for MariaDB) or postgresql")
    written = _URL.fullmatch(text)
    if written is not None and database != "sqlite":
        _check_host(written["host"])
    return f"{_DRIVERS[database]}://{rest}"


def _check_host(host: str) -> None:
    """Checks host and port as written in the URL: drivers fail on invalid ones, each in its own way. Raises
    ValueError."""
    if "@" in host:  # otherwise, part of a password would be shown as the host name
        raise ValueError("the URL has more than one @ before the host: write an @ in the password as %40")
    found = _HOST.fullmatch(host)
    if found is None or int(found["port"] or 0) > _HIGHEST_PORT or not _is_host_name(found["name"].strip("[]")):
        raise ValueError(
            f"the URL has no valid host: write HOST or HOST:PORT, with a port up to {_HIGHEST_PORT} and an IPv6 address"
            " in brackets"
        )


def _is_host_name(name: str) -> bool:
    """Whether the name can be looked up: none of its parts is empty or too long."""
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return True


def _from_jdbc(text: str) -> str:
    database, _, rest = text.partition(":")
    database = database.lower()
    if database == "derby":
        raise ValueError("Derby runs only inside Java: use sqlite:///file.db for an embedded database")
    if database not in _DRIVERS:
        raise ValueError(f"database {database!r} is not supported: use sqlite, mysql (also for MariaDB) or postgresql")
    if database == "sqlite":
        return f"sqlite:///{rest}"
    driver = _DRIVERS[database]
    parts = _URL.fullmatch(f"{database}:{rest}")
    if (
        parts is None or not parts["host"] or set(",=(") & set(parts["host"])
    ):  # jdbc:mysql:replication://…, jdbc:postgresql://a,b/…, jdbc:mysql://(host=a,user=u)/…
        raise ValueError("name one host: hms-cache needs a single address that always leads to the primary")
    _check_host(parts["host"])
    user, password = parts["user"], parts["password"]
    kept: dict[str, str] = {}
    for name, value in _parameters(parts["query"]):
        if name == "user":
            user = user or quote(value, safe="")
        elif name == "password":
            password = password or quote(value, safe="")
        elif name == "currentSchema":
            # In options of the server, a blank would begin the next option.
            kept["options"] = "-csearch_path=" + re.sub(r"([\\ ])", r"\\\1", value)
    kept |= _translated(database, parts["query"]).options
    credentials = ""
    if user:
        credentials = (
            quote(unquote(user), safe="") + (f":{quote(unquote(password), safe='')}" if password else "") + "@"
        )
    query = f"?{urlencode(kept)}" if kept else ""
    return f"{driver}://{credentials}{parts['host']}{parts['path'] or ''}{query}"


def _parameters(query: str | None) -> list[tuple[str, str]]:
    """The parameters of a JDBC URL. Those that are about neither protection nor names concern only Java's driver: time
    zones, caches on the server, ``createDatabaseIfNotExist``, …"""
    return parse_qsl(query or "", keep_blank_values=True)


def _translated(database: str, query: str | None) -> jdbc_tls.Translated:
    about = {name: value for name, value in _parameters(query) if jdbc_tls.is_about_protection(name)}
    return jdbc_tls.translate("postgresql" if database == "postgres" else database, about)


def refused_protection(text: str) -> dict[str, str]:
    """The parameters of a JDBC URL that request protection which our drivers cannot give, with the remedy."""
    if not text.startswith("jdbc:"):
        return {}
    found = _URL.fullmatch(text.removeprefix("jdbc:"))
    if found is None or found["scheme"].lower() not in ("mysql", "mariadb", "postgresql", "postgres"):
        return {}
    return _translated(found["scheme"].lower(), found["query"]).refused


def verifies_server(url: str) -> bool:
    """Whether connections to ``url`` (SQLAlchemy form) verify the server's identity by TLS."""
    return _tls_mode(_options(url)) in _VERIFYING


def is_without_tls(url: str) -> bool:
    """Whether ``url`` (SQLAlchemy form) excludes TLS."""
    return _tls_mode(_options(url)) in ("DISABLED", "DISABLE")


_SYSTEM = "system"
"""libpq: the authorities that the system trusts; what Java trusts by default in a JDBC URL."""
_VERIFYING = ("VERIFY_CA", "VERIFY_IDENTITY", "VERIFY_FULL")


def _options(url: str) -> dict[str, str]:
    found = _URL.fullmatch(url)
    return dict(parse_qsl(found["query"] or "")) if found else {}


def _tls_mode(options: Mapping[str, str]) -> str:
    mode = options.get("ssl_mode") or options.get("sslmode") or ("VERIFY_IDENTITY" if "ssl_ca" in options else "")
    return mode.upper().replace("-", "_")


def with_tls(url: str, authorities: str, password: str) -> str:
    """Makes connections to ``url`` (SQLAlchemy form) require TLS and a certificate of a trusted authority.

    :param authorities: file with their certificates; ignored if the URL names one. Empty: those of the system.
    :param password: of the file, if it is a key store.
    """
    found = _URL.fullmatch(url)
    if found is None or found["scheme"].startswith("sqlite"):
        return url
    options = _options(url)
    is_mysql = found["scheme"].startswith("mysql")
    if _tls_mode(options) not in _VERIFYING:
        options["ssl_mode" if is_mysql else "sslmode"] = "VERIFY_CA" if is_mysql else "verify-ca"
    file, file_password = ("ssl_ca", "ssl_ca_password") if is_mysql else ("sslrootcert", "sslrootcert_password")
    if authorities and options.get(file, _SYSTEM) == _SYSTEM:
        options |= {file: authorities} | ({file_password: password} if password else {})
    elif file not in options and not is_mysql:
        options |= {"sslmode": "verify-full", file: _SYSTEM}  # libpq accepts no weaker mode with the system's
    return f"{url.removesuffix('?' + found['query']) if found['query'] is not None else url}?{urlencode(options)}"


def with_credentials(url: str, username: str | None, password: str | None) -> str:
    """Adds user name and password to ``url`` (SQLAlchemy form), unless it already contains them."""
    found = _URL.fullmatch(url)
    if found is None or found["scheme"].startswith("sqlite") or not (username or password):
        return url
    user = found["user"] if found["user"] is not None else quote(username or "", safe="")
    secret = found["password"] or quote(password or "", safe="")
    credentials = user + (f":{secret}" if secret else "")
    query = f"?{found['query']}" if found["query"] is not None else ""
    return f"{found['scheme']}://{credentials}@{found['host']}{found['path'] or ''}{query}"


def secrets_of(url: str) -> list[str]:
    """Returns the passwords in ``url``, in any form: as written and decoded."""
    text = url.removeprefix("jdbc:")
    found = _URL.fullmatch(text)
    written = [credentials[2] for credentials in _CREDENTIALS.finditer(text)]
    if found is not None:
        written += [found["password"] or "", *_secret_values(_QUERY_PAIR, found["query"] or "")]
    written = [secret for secret in written if not _is_up_to_realm(secret)]
    if url.startswith("jdbc:"):
        written += [_oracle_account(text)[1]]
        written += [secret for pair in (_JDBC_PAIR, _HOST_PAIR) for secret in _secret_values(pair, text)]
    written += [secret[1:-1].replace("}}", "}") for secret in written if secret.startswith("{")]
    return [form for secret in dict.fromkeys(written) for form in (secret, unquote(secret)) if form]


_QUERY_PAIR = re.compile(r"([^=&;?]+)=([^&;]*)")
_JDBC_PAIR = re.compile(r"([;?&][^=&;?]+)=(\{(?:[^}]|\}\})*\}|[^&;]*)")
"""Matches parameters of all databases, including those that separate parameters by semicolons, some without a ``?``
before them: Derby, Hive, SQL Server. SQL Server takes text in braces literally."""
_HOST_PAIR = re.compile(r"([(,][^=(),]+)=([^(),]*)")
"""MySQL's driver also accepts user and password in the place of the host."""
_CREDENTIALS = re.compile(r"(://[^/:@\s,]*):([^@\s,]*)@")
"""Credentials of the second and each further URL in a list."""
_PORT = re.compile(r"[0-9]{1,5}(?:/.*)?", re.DOTALL)
"""A port with the text after it, up to the parameters."""


def _oracle_account(text: str) -> tuple[str, str]:
    """Returns the text before the password of ``oracle:thin:user/password@…``, and the password; two empty texts for
    another URL. The password ends before the last ``@``."""
    before = text.rpartition("@")[0]
    account, _, password = before.partition("/")
    user = account.rpartition(":")[2]
    is_one = user not in ("", account) and "@" not in account
    return (account, password) if is_one else ("", "")


def _secret_values(pair: re.Pattern[str], text: str) -> list[str]:
    return [value for name, value in pair.findall(text) if is_secret_name(unquote(name))]


def _is_up_to_realm(text: str) -> bool:
    """Whether this text after ``HOST:`` is not a password before ``@HOST``, but a part of an address before ``@REALM``:
    a port and parameters, the last of which is a Kerberos principal."""
    place, *parameters = re.split("[?&;]", text)
    name, equals, _ = parameters[-1].partition("=") if parameters else ("", "", "")
    is_principal = bool(equals) and name.lower().endswith(("principal", "spn"))
    return is_principal and _PORT.fullmatch(place) is not None and not _secret_values(_JDBC_PAIR, text)


def masked(url: str) -> str:
    """Returns ``url`` with each password replaced by ``***``. Accepts any text; a text that is not a URL is
    unchanged."""
    if not url.startswith("jdbc:"):
        return _masked(url)
    shown = _masked(url.removeprefix("jdbc:"))
    account, password = _oracle_account(shown)
    if password:
        shown = f"{account}/***{shown[len(account) + 1 + len(password) :]}"
    for pair in (_JDBC_PAIR, _HOST_PAIR):
        shown = pair.sub(_shown_pair, shown)
    return f"jdbc:{shown}"


def _masked(url: str) -> str:
    found = _URL.fullmatch(url)
    shown = url
    if found is not None and _is_up_to_realm(found["password"] or ""):
        shown = _JDBC_PAIR.sub(_shown_pair, url)
    elif found is not None:
        credentials = ""
        if found["user"] is not None:
            credentials = found["user"] + (":***" if found["password"] is not None else "") + "@"
        query = f"?{_QUERY_PAIR.sub(_shown_pair, found['query'])}" if found["query"] is not None else ""
        shown = f"{found['scheme']}://{credentials}{found['host'].rpartition('@')[2]}{found['path'] or ''}{query}"
    return _CREDENTIALS.sub(lambda one: one[0] if _is_up_to_realm(one[2]) else f"{one[1]}:***@", shown)


def _shown_pair(match: re.Match[str]) -> str:
    return f"{match[1]}=***" if is_secret_name(unquote(match[1])) else match[0]
