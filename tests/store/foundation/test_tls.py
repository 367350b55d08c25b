"""TLS to the database, with servers that support it and servers that do not."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate
from sqlalchemy import text

from hms_cache.config import load
from hms_cache.config.database_url import sqlalchemy_url
from hms_cache.errors import ConfigurationError, DatabaseUnavailableError
from hms_cache.store.engine.database import Database
from tests.databases import DatabaseServer, ServerMissing, closing, start_mariadb, start_postgresql
from tests.key_stores import samples


def query(url: str, statement: str) -> str:
    with closing(Database(sqlalchemy_url(url))) as database, database.checking() as connection:
        return str(connection.execute(text(statement)).all()[0][-1])


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`ca.pem`, and `server.pem` with its key, issued for localhost only; `other.pem` has signed nothing."""
    directory = tmp_path_factory.mktemp("tls")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)

    for name in ("ca", "other"):
        openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem"),
            *("-subj", f"/CN={name}", "-days", "2"),
        )
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "s.csr", "-subj", "/CN=localhost")
    (directory / "names").write_text("subjectAltName=DNS:localhost\n")
    openssl(
        *("x509", "-req", "-in", "s.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "server.pem"),
        *("-days", "2", "-extfile", "names"),
    )
    return directory


def key_stores_of(certificates: Path) -> dict[str, Path]:
    """The authorities in Java's trust stores, and a client's key in one."""
    found = {"jks": certificates / "ca.jks", "other_jks": certificates / "other.jks", "p12": certificates / "ca.p12"}
    for name in ("ca", "other"):
        der = ssl.PEM_cert_to_DER_cert((certificates / f"{name}.pem").read_text())
        found["jks" if name == "ca" else "other_jks"].write_bytes(samples.trust_store([der], samples.PASSWORD))
    authority = load_pem_x509_certificate((certificates / "ca.pem").read_bytes())
    protection = BestAvailableEncryption(samples.PASSWORD.encode())
    found["p12"].write_bytes(pkcs12.serialize_key_and_certificates(b"ca", None, None, [authority], protection))
    key = load_pem_private_key((certificates / "server.key").read_bytes(), None)
    own = load_pem_x509_certificate((certificates / "server.pem").read_bytes())
    found["der"] = certificates / "ca.der"
    found["der"].write_bytes(authority.public_bytes(Encoding.DER))
    found["key_p12"] = certificates / "key.p12"
    found["key_p12"].write_bytes(pkcs12.serialize_key_and_certificates(b"own", key, own, None, protection))  # type: ignore[arg-type]
    return found


def readable(certificates: Path, directory: Path, account: str) -> Path:
    """A copy that the server's account may read."""
    copy = directory / account
    shutil.copytree(certificates, copy)
    for file in copy.iterdir():
        _give(file, account)
        file.chmod(0o600)
    _give(copy, account)
    for parent in (copy, *copy.parents):
        if parent == Path("/tmp"):
            break
        parent.chmod(parent.stat().st_mode | 0o711)
    return copy


def _give(path: Path, account: str) -> None:
    if os.geteuid() == 0:
        shutil.chown(path, account)


@pytest.fixture(scope="module")
def mariadb(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DatabaseServer]:
    try:
        files = readable(certificates, tmp_path_factory.mktemp("m"), "mysql")
        server = start_mariadb(
            f"--ssl-ca={files / 'ca.pem'}", f"--ssl-cert={files / 'server.pem'}", f"--ssl-key={files / 'server.key'}"
        )
    except (ServerMissing, LookupError) as missing:
        pytest.skip(str(missing))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def plain_mariadb() -> Iterator[DatabaseServer]:
    try:
        server = start_mariadb("--skip-ssl")
    except ServerMissing as missing:
        pytest.skip(str(missing))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def postgresql(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DatabaseServer]:
    try:
        files = readable(certificates, tmp_path_factory.mktemp("p"), "postgres")
        server = start_postgresql()
    except (ServerMissing, LookupError) as missing:
        pytest.skip(str(missing))
    with closing(Database(server.admin_url.render_as_string(False))) as database, database.checking() as connection:
        for setting, value in (
            ("ssl_cert_file", files / "server.pem"),
            ("ssl_key_file", files / "server.key"),
            ("ssl", "on"),
        ):
            connection.execute(text(f"ALTER SYSTEM SET {setting} = '{value}'"))
        connection.execute(text("SELECT pg_reload_conf()"))
    yield server
    server.stop()


MARIADB_QUESTION = "SHOW STATUS LIKE 'Ssl_cipher'"
POSTGRESQL_QUESTION = "SELECT coalesce((SELECT cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid()), '')"


@pytest.mark.soak
@pytest.mark.parametrize(
    ("host", "parameters", "outcome"),
    [
        ("127.0.0.1", "useSSL=true&requireSSL=true", "TLS"),
        ("127.0.0.1", "useSSL=false", "plain"),
        ("127.0.0.1", "useSSL=true&verifyServerCertificate=true&serverSslCert={ca}", "TLS"),
        ("127.0.0.1", "useSSL=true&verifyServerCertificate=true&serverSslCert={other}", "refused"),
        ("127.0.0.1", "useSSL=true&verifyServerCertificate=true", "refused"),
        ("127.0.0.1", "sslMode=VERIFY_IDENTITY&serverSslCert={ca}", "refused"),
        ("localhost", "sslMode=VERIFY_IDENTITY&serverSslCert={ca}", "TLS"),
        (
            "127.0.0.1",
            "sslMode=VERIFY_CA&trustCertificateKeyStoreUrl=file:{jks}&trustCertificateKeyStorePassword=changeit",
            "TLS",
        ),
        (
            "127.0.0.1",
            "sslMode=VERIFY_CA&trustCertificateKeyStoreUrl=file:{other_jks}&trustCertificateKeyStorePassword=changeit",
            "refused",
        ),
        (
            "localhost",
            "sslMode=VERIFY_IDENTITY&trustCertificateKeyStoreUrl=file:{p12}&trustCertificateKeyStorePassword=changeit"
            "&clientCertificateKeyStoreUrl=file:{key_p12}&clientCertificateKeyStorePassword=changeit",
            "TLS",
        ),
    ],
)
def test_mariadb_is_spoken_to_as_the_jdbc_url_asks(
    mariadb: DatabaseServer, certificates: Path, host: str, parameters: str, outcome: str
) -> None:
    files = {"ca": certificates / "ca.pem", "other": certificates / "other.pem"} | key_stores_of(certificates)
    url = f"jdbc:mysql://{host}:{mariadb.admin_url.port}/mysql?user=root&{parameters.format(**files)}"
    if outcome == "refused":
        with pytest.raises(DatabaseUnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
            query(url, MARIADB_QUESTION)
    else:
        assert bool(query(url, MARIADB_QUESTION)) == (outcome == "TLS")


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA"])
def test_a_server_without_tls_is_not_spoken_to_where_tls_is_required(plain_mariadb: DatabaseServer, mode: str) -> None:
    """An attacker in between could have claimed that there is no TLS: nothing is sent to such a server."""
    url = f"jdbc:mysql://127.0.0.1:{plain_mariadb.admin_url.port}/mysql?user=root&sslMode={mode}"
    if mode in ("DISABLED", "PREFERRED"):
        assert query(url, MARIADB_QUESTION) == ""
    else:
        with pytest.raises(DatabaseUnavailableError, match="TLS"):
            query(url, MARIADB_QUESTION)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("host", "parameters", "outcome"),
    [
        ("127.0.0.1", "sslmode=disable", "plain"),
        ("127.0.0.1", "ssl=true&sslfactory=org.postgresql.ssl.NonValidatingFactory", "TLS"),
        ("127.0.0.1", "ssl=true&sslrootcert={ca}", "refused"),
        ("localhost", "ssl=true&sslrootcert={ca}", "TLS"),
        ("localhost", "ssl=true&sslrootcert={other}", "refused"),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert={ca}", "TLS"),
        ("localhost", "ssl=true&sslrootcert={der}", "TLS"),
    ],
)
def test_postgresql_is_spoken_to_as_the_jdbc_url_asks(
    postgresql: DatabaseServer, certificates: Path, host: str, parameters: str, outcome: str
) -> None:
    files = {"ca": certificates / "ca.pem", "other": certificates / "other.pem"} | key_stores_of(certificates)
    url = f"jdbc:postgresql://{host}:{postgresql.admin_url.port}/postgres?user=postgres&{parameters.format(**files)}"
    if outcome == "refused":
        with pytest.raises(DatabaseUnavailableError, match="certificate"):
            query(url, POSTGRESQL_QUESTION)
    else:
        assert bool(query(url, POSTGRESQL_QUESTION)) == (outcome == "TLS")


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["mariadb", "postgresql"])
@pytest.mark.parametrize(
    ("host", "store", "parameters", "outcome"),
    [
        ("127.0.0.1", "jks", "", "TLS"),
        ("127.0.0.1", "p12", "", "TLS"),
        ("127.0.0.1", "other_jks", "", "refused"),
        ("127.0.0.1", None, "", "refused"),
        ("localhost", "other_jks", "{name}={ca}", "TLS"),
        ("127.0.0.1", "jks", "{full}", "refused"),
    ],
)
def test_what_hive_is_told_about_the_database_is_done(
    request: pytest.FixtureRequest,
    certificates: Path,
    tmp_path: Path,
    kind: str,
    host: str,
    store: str | None,
    parameters: str,
    outcome: str,
) -> None:
    """`metastore.dbaccess.ssl.*` of Hive 4: a trust store for a URL that asks for nothing, or for more."""
    server: DatabaseServer = request.getfixturevalue(kind)
    files = key_stores_of(certificates)
    words = {
        "mariadb": {"name": "serverSslCert", "full": "sslMode=VERIFY_IDENTITY"},
        "postgresql": {"name": "sslrootcert", "full": "sslmode=verify-full"},
    }[kind]
    account = "mysql?user=root" if kind == "mariadb" else "postgres?user=postgres"
    requested = parameters.format(ca=certificates / "ca.pem", **words)
    properties = {
        "javax.jdo.option.ConnectionURL": f"jdbc:{kind}://{host}:{server.admin_url.port}/{account}&{requested}",
        "metastore.dbaccess.ssl.use.SSL": "true",
        "hive.metastore.dbaccess.ssl.truststore.path": str(files[store]) if store else "",
        "metastore.dbaccess.ssl.truststore.password": samples.PASSWORD,
    }
    site = tmp_path / "hive-site.xml"
    site.write_text(
        "<configuration>"
        + "".join(
            f"<property><name>{name}</name><value>{escape(value)}</value></property>"
            for name, value in properties.items()
        )
        + "</configuration>"
    )
    url = load(site_files=[site], environment={}).settings.database.sqlalchemy_url()
    question = MARIADB_QUESTION if kind == "mariadb" else POSTGRESQL_QUESTION
    if outcome == "refused":
        with pytest.raises(DatabaseUnavailableError, match=r"(?i)certificate"):
            query(url, question)
    else:
        assert query(url, question)


@pytest.mark.soak
@pytest.mark.parametrize("form", ["key_p12", "key_jks", "pk8", "encrypted_pk8"])
def test_a_client_shows_postgresql_a_certificate_in_javas_formats(
    postgresql: DatabaseServer, certificates: Path, form: str
) -> None:
    files = key_stores_of(certificates)
    key = load_pem_private_key((certificates / "server.key").read_bytes(), None)
    for name, protection in (
        ("pk8", NoEncryption()),
        ("encrypted_pk8", BestAvailableEncryption(samples.PASSWORD.encode())),
    ):
        files[name] = certificates / f"{name}.pk8"
        files[name].write_bytes(key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, protection))
    files["key_jks"] = samples.CHAINS["jks"]
    parameters = f"ssl=true&sslrootcert={certificates / 'ca.pem'}&sslkey={files[form]}"
    if form != "pk8":
        parameters += f"&sslpassword={samples.PASSWORD}"
    if form.endswith("pk8"):
        parameters += f"&sslcert={certificates / 'server.pem'}"
    url = f"jdbc:postgresql://localhost:{postgresql.admin_url.port}/postgres?user=postgres&{parameters}"
    # A server that trusts nobody with a certificate asks for none: what is shown is what libpq accepts as its own.
    assert query(url, POSTGRESQL_QUESTION)
    wrong = url.replace(f"sslpassword={samples.PASSWORD}", "sslpassword=wrong")
    if wrong != url:
        with pytest.raises(ConfigurationError, match="sslkey") as raised:
            query(wrong, POSTGRESQL_QUESTION)
        assert "wrong" not in str(raised.value).partition("sslkey")[0]


@pytest.mark.parametrize(
    "parameters",
    [
        *("ssl_mode=SOMETIMES", "ssl_ca=/no/such/file.pem", "ssl_verify=1", "tls_version=1.3"),
        f"ssl_ca={samples.CHAINS['jks']}&ssl_ca_password=wrong",
        f"ssl_ca={samples.PASSWORDS}&ssl_ca_password=none",
        f"ssl_cert={samples.CHAINS['jceks']}",
    ],
)
def test_parameters_that_cannot_be_used_are_told_before_anything_is_sent(parameters: str) -> None:
    with pytest.raises(ConfigurationError, match=r"database\.url"):
        Database(f"mysql://db/hive?{parameters}")


def test_a_file_of_the_url_is_named_but_no_password(tmp_path: Path) -> None:
    (tmp_path / "c.pem").write_text("no certificate")
    with pytest.raises(ConfigurationError) as raised:
        Database(f"mysql://db/hive?ssl_cert={tmp_path / 'c.pem'}&ssl_key_password=hush-hush")
    assert "c.pem" in str(raised.value) and "hush" not in str(raised.value)
    assert isinstance(raised.value.__cause__, ssl.SSLError)
