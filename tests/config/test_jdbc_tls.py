"""TLS in JDBC URLs: translated for our drivers, or refused; never ignored."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hms_cache.config import load
from hms_cache.config.database_url import refused_protection, secrets_of, sqlalchemy_url, verifies_server
from hms_cache.errors import ConfigurationError

MYSQL_TABLE = [
    ("useSSL=false", "DISABLED"),
    ("useSSL=false&requireSSL=true", "DISABLED"),
    ("useSSL=true", "REQUIRED"),
    ("requireSSL=true", "REQUIRED"),
    ("useSSL=true&requireSSL=true&verifyServerCertificate=false", "REQUIRED"),
    ("useSSL=true&verifyServerCertificate=true", "VERIFY_CA"),
    ("sslMode=DISABLED", "DISABLED"),
    ("sslMode=PREFERRED", "PREFERRED"),
    ("sslMode=REQUIRED&useSSL=false", "REQUIRED"),
    ("sslMode=VERIFY_CA", "VERIFY_CA"),
    ("sslMode=VERIFY_IDENTITY", "VERIFY_IDENTITY"),
    ("serverSslCert=/ca.pem", "VERIFY_IDENTITY"),
    ("useSSL=true&trustCertificateKeyStoreUrl=file:/ca.pem", "VERIFY_CA"),
    ("useSSL=true&trustCertificateKeyStoreUrl=file:/store.jks&trustCertificateKeyStorePassword=x", "VERIFY_CA"),
    ("serverTimezone=UTC", None),
]
MARIADB_TABLE = [
    ("useSsl=true", "VERIFY_IDENTITY"),
    ("useSsl=true&trustServerCertificate=true", "REQUIRED"),
    ("useSsl=true&disableSslHostnameVerification=true", "VERIFY_CA"),
    ("sslMode=trust", "REQUIRED"),
    ("sslMode=verify-ca&serverSslCert=/ca.pem", "VERIFY_CA"),
    ("sslMode=verify-full", "VERIFY_IDENTITY"),
    ("sslMode=disable", "DISABLED"),
    ("useSsl=true&trustStore=/store.jks&trustStorePassword=x", "VERIFY_IDENTITY"),
]
POSTGRESQL_TABLE = [
    ("ssl=true", {"sslmode": "verify-full"}),
    ("ssl", {"sslmode": "verify-full"}),
    ("ssl=false", {}),
    ("ssl=true&sslmode=require", {"sslmode": "require"}),
    ("ssl=true&sslmode=prefer", {"sslmode": "verify-full"}),
    ("sslmode=verify-ca&sslrootcert=/ca.pem", {"sslmode": "verify-ca", "sslrootcert": "/ca.pem"}),
    ("ssl=true&sslfactory=org.postgresql.ssl.NonValidatingFactory", {"sslmode": "require"}),
    (
        "ssl=true&sslfactory=org.postgresql.ssl.DefaultJavaSSLFactory",
        {"sslmode": "verify-full", "sslrootcert": "system"},
    ),
    ("sslmode=require&channelBinding=require", {"sslmode": "require", "channel_binding": "require"}),
]


def options_of(url: str) -> dict[str, str]:
    return dict(parse_qsl(sqlalchemy_url(url).partition("?")[2]))


@pytest.mark.parametrize(
    ("url", "mode"),
    [(f"jdbc:mysql://h/d?{query}", mode) for query, mode in MYSQL_TABLE]
    + [(f"jdbc:mariadb://h/d?{query}", mode) for query, mode in MARIADB_TABLE],
)
def test_modes_of_mysql_and_mariadb(url: str, mode: str | None) -> None:
    assert options_of(url).get("ssl_mode") == mode
    assert refused_protection(url) == {}
    assert verifies_server(sqlalchemy_url(url)) == (mode or "").startswith("VERIFY")


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:mysql://h/d?sslMode=VERIFY_CA&trustCertificateKeyStoreUrl=file:/t.jks&trustCertificateKeyStorePassword=a%26"
        "&clientCertificateKeyStoreUrl=file:///k.jks&clientCertificateKeyStorePassword=b",
        "jdbc:mariadb://h/d?sslMode=verify-ca&trustStore=/t.jks&trustStorePassword=a%26&keyStore=/k.jks&keyStorePassword=b",
        "jdbc:mariadb://h/d?sslMode=verify-ca&trustStore=/t.jks&trustStorePassword=a%26&keyStore=/k.jks&keyPassword=c"
        "&keyStorePassword=b",
    ],
)
def test_key_stores_are_named_with_their_passwords(url: str) -> None:
    assert options_of(url) == {
        "ssl_mode": "VERIFY_CA",
        "ssl_ca": "/t.jks",
        "ssl_ca_password": "a&",
        "ssl_cert": "/k.jks",
        "ssl_key_password": "b",
    }
    assert "a&" in secrets_of(sqlalchemy_url(url)) and "b" in secrets_of(sqlalchemy_url(url))


@pytest.mark.parametrize(
    ("url", "option"),
    [
        ("jdbc:mariadb://h/d?useSsl=true&trustStore=/t.jks&trustStorePassword=", "ssl_ca_password"),
        ("jdbc:mariadb://h/d?useSsl=true&keyStore=/k.jks&keyPassword=", "ssl_key_password"),
        ("jdbc:mysql://h/d?clientCertificateKeyStoreUrl=/k.jks&clientCertificateKeyStorePassword=", "ssl_key_password"),
        ("jdbc:postgresql://h/d?ssl=true&sslkey=/k.p12&sslpassword=", "sslpassword"),
    ],
)
@given(password=st.text(min_size=1))
@example(" a ")
def test_a_password_stays_as_it_is(url: str, option: str, password: str) -> None:
    assert options_of(f"{url}{quote(password, safe='')}")[option] == password


@pytest.mark.parametrize(("query", "options"), POSTGRESQL_TABLE)
def test_modes_of_postgresql(query: str, options: dict[str, str]) -> None:
    assert options_of(f"jdbc:postgresql://h/d?{query}") == options
    assert refused_protection(f"jdbc:postgresql://h/d?{query}") == {}


@pytest.mark.parametrize(
    ("url", "parameter"),
    [
        ("jdbc:mysql://h/d?useSSL=true&trustCertificateKeyStoreUrl=http://h/store.jks", "trustcertificatekeystoreurl"),
        ("jdbc:mysql://h/d?useSSL=true&clientCertificateKeyStoreUrl=classpath:s.p12", "clientcertificatekeystoreurl"),
        ("jdbc:mysql://h/d?sslMode=SOMETIMES", "sslmode"),
        ("jdbc:mysql://h/d?useSSL=true&enabledTLSProtocols=TLSv1.3", "enabledtlsprotocols"),
        ("jdbc:mysql://h/d?useSSL=true&enabledSSLCipherSuites=X", "enabledsslciphersuites"),
        ("jdbc:mariadb://h/d?useSsl=true&serverSslCert=classpath:ca.pem", "serversslcert"),
        ("jdbc:postgresql://h/d?ssl=true&sslfactory=com.example.Factory", "sslfactory"),
        ("jdbc:postgresql://h/d?ssl=true&sslhostnameverifier=com.example.Yes", "sslhostnameverifier"),
        ("jdbc:postgresql://h/d?futureTlsOption=on", "futuretlsoption"),
    ],
)
def test_what_cannot_be_honoured_is_refused_at_the_start(url: str, parameter: str) -> None:
    assert list(refused_protection(url)) == [parameter]
    with pytest.raises(ConfigurationError, match=parameter) as raised:
        load(command_line={"database.url": url}, environment={})
    assert "security.accept_insecure" in str(raised.value)
    accepted = load(command_line={"database.url": url, "security.accept_insecure": True}, environment={})
    assert [one.name for one in accepted.accepted_insecure] == [f"{parameter} in the URL"]


#: Parameters about protection, each with values that require it and values that do not.
ASKING = {
    "useSSL": ("true", "TRUE", "false"),
    "requireSSL": ("true", "false"),
    "verifyServerCertificate": ("true", "false"),
    "sslMode": ("DISABLED", "preferred", "REQUIRED", "VERIFY_CA", "verify-full", "x"),
    "trustCertificateKeyStoreUrl": ("file:/a.jks", "file:/a.pem"),
    "serverSslCert": ("/a.pem",),
    "sslmode": ("disable", "prefer", "require", "verify-full"),
    "ssl": ("true", "", "false"),
    "sslfactory": ("a.B", "org.postgresql.ssl.NonValidatingFactory"),
    "newTlsSwitch": ("on",),
}


@given(
    st.sampled_from(["mysql", "mariadb", "postgresql"]),
    st.dictionaries(st.sampled_from(sorted(ASKING)), st.integers(0, 5), max_size=6),
)
def test_nothing_that_asks_for_tls_goes_without(database: str, drawn: dict[str, int]) -> None:
    """In each combination, TLS is required, or the URL itself says that it is not, or the start is refused."""
    parameters = {name: ASKING[name][number % len(ASKING[name])] for name, number in drawn.items()}
    url = f"jdbc:{database}://h/d?{urlencode(parameters)}"
    asks = any(
        parameters.get(name, "false").lower() == "true" for name in ("useSSL", "requireSSL", "verifyServerCertificate")
    )
    if database == "postgresql":
        asks = parameters.get("ssl", "false") in ("true", "")
    modes = [parameters[name].lower() for name in ("sslMode", "sslmode") if name in parameters]
    opts_out = any(mode in ("disabled", "disable", "preferred", "prefer") for mode in modes)
    opts_out = opts_out or (database != "postgresql" and parameters.get("useSSL", "").lower() == "false")
    options = options_of(url)
    mode = (options.get("ssl_mode") or options.get("sslmode") or "").lower()
    if asks and not opts_out:
        assert refused_protection(url) or mode in ("required", "require", "verify_ca", "verify_identity", "verify-full")
    if "newTlsSwitch" in parameters and mode not in ("disabled", "disable"):
        assert "newtlsswitch" in refused_protection(url)


@given(
    st.sampled_from(["mysql", "mariadb", "postgresql"]),
    st.dictionaries(st.sampled_from(sorted(ASKING)), st.integers(0, 5), max_size=6),
    st.sampled_from(["", "/t.jks"]),
)
def test_with_tls_enabled_the_server_is_verified_whatever_the_url_asks_for(
    database: str, drawn: dict[str, int], file: str
) -> None:
    parameters = {name: ASKING[name][number % len(ASKING[name])] for name, number in drawn.items()}
    text = f"jdbc:{database}://h/d?user=u&password=p%3F%26&{urlencode(parameters)}"
    settings = {"database.url": text, "database.tls_enabled": True, "database.tls_ca_password": "a&"}
    if file:
        settings["database.tls_ca_file"] = file
    try:
        found = load(command_line=settings | {"security.accept_insecure": True}, environment={}).settings.database
    except ConfigurationError as error:
        assert "tls_enabled requires TLS" in str(error)
        assert "disable" in str(options_of(text)).lower()
        return
    url = found.sqlalchemy_url()
    options = dict(parse_qsl(url.partition("?")[2]))
    plain, name = options_of(text), "sslrootcert" if database == "postgresql" else "ssl_ca"
    assert found.verifies_server and verifies_server(url)
    assert url.startswith(sqlalchemy_url(text).partition("?")[0])
    if verifies_server(sqlalchemy_url(text)):  # what the URL asks for is not weakened
        mode = "sslmode" if database == "postgresql" else "ssl_mode"
        assert plain.get(mode, "VERIFY_IDENTITY") == options.get(mode, "VERIFY_IDENTITY") or not file
    if plain.get(name, "system") != "system":
        assert options[name] == plain[name] and "a&" not in options.values()
    elif file:
        assert (options[name], options[f"{name}_password"]) == (file, "a&")
    else:
        assert options.get(name, "system") == "system"


def test_hives_trust_store_of_the_database_is_used(tmp_path: Path) -> None:
    site = tmp_path / "hive-site.xml"
    site.write_text(
        """<configuration>
        <property><name>javax.jdo.option.ConnectionURL</name><value>jdbc:postgresql://h/d?ssl=true</value></property>
        <property><name>hive.metastore.dbaccess.ssl.use.SSL</name><value>true</value></property>
        <property><name>metastore.dbaccess.ssl.truststore.path</name><value>/t.jks</value></property>
        <property><name>metastore.dbaccess.ssl.truststore.password</name><value>changeit</value></property>
        <property><name>metastore.dbaccess.ssl.truststore.type</name><value>jks</value></property>
        </configuration>"""
    )
    found = load(site_files=[site], environment={})
    options = parse_qsl(found.settings.database.sqlalchemy_url().partition("?")[2])
    assert dict(options) == {
        "sslmode": "verify-full",
        "sslrootcert": "/t.jks",
        "sslrootcert_password": "changeit",
    }
    assert not found.site_review.insecure and not found.site_review.ignored


def test_an_embedded_database_has_no_tls() -> None:
    found = load(command_line={"database.tls_enabled": True, "database.url": "sqlite:///c.db"}, environment={})
    assert found.settings.database.sqlalchemy_url() == "sqlite:///c.db"
