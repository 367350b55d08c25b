"""No secret in any output: random passwords, set in each possible way, are searched in each possible output."""

from __future__ import annotations

import http.client
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hms_cache.app.log_output import JsonFormatter, TextFormatter
from hms_cache.cli.arguments import remember_secret_arguments, shown_argument
from hms_cache.config import Configuration, HiveValues, load
from hms_cache.config import secrets as known_secrets
from hms_cache.config.database_url import masked, secrets_of, sqlalchemy_url, with_credentials
from hms_cache.config.secrets import redacted
from hms_cache.errors import ConfigurationError
from hms_cache.server.faults import application_exception

#: Characters of passwords: all that URLs, XML, JSON, HTML and Python's texts escape. A few letters in the middle, which
#: are never escaped, are searched for.
CORE = "Zq7Xw9k"
PASSWORDS = st.tuples(
    st.text("aZ9/@:?&=#%+ '\"<>\\$;,äé", max_size=6), st.text("aZ9/@:?&=#%+ '\"<>\\äé", max_size=6)
).map(lambda parts: f"{parts[0]}{CORE}{parts[1]}")

#: In a URL, `@` must be written as %40; all others, `/` included, may be literal or quoted.
Give = Callable[[str, Path], Configuration]


def _site(directory: Path, **properties: str) -> Path:
    file = directory / "site.xml"
    lines = "".join(
        f"<property><name>{name.replace('__', '.')}</name><value>{escape(value)}</value></property>"
        for name, value in properties.items()
    )
    file.write_text(f"<configuration>{lines}</configuration>", encoding="utf-8")
    return file


def _in_url(template: str) -> Give:
    return lambda password, _: load(
        command_line={"database.url": template.format(quote(password, safe="")), "security.accept_insecure": True},
        environment={},
    )


def _in_site(name: str, template: str = "{}", quoted: bool = False) -> Give:
    def give(password: str, directory: Path) -> Configuration:
        value = template.format(quote(password, safe="") if quoted else password)
        site = _site(directory, **{"javax__jdo__option__ConnectionURL": "jdbc:mysql://u@h/d", name: value})
        return load(site_files=[site], command_line={"security.accept_insecure": True}, environment={})

    return give


def _in_file(password: str, directory: Path) -> Configuration:
    (directory / "secret").write_text(password, encoding="utf-8")
    return load(
        command_line={"database.url": "mysql://u@h/d", "database.password_file": str(directory / "secret")},
        environment={},
    )


WAYS: dict[str, Give] = {
    "URL": _in_url("mysql://u:{}@h:3306/d"),
    "JDBC URL": _in_url("jdbc:mysql://u:{}@h:3306/d"),
    "JDBC parameter": _in_url("jdbc:postgresql://h/d?user=u&password={}&ssl=true"),
    "PostgreSQL's key": _in_url("postgresql://u@h/d?sslmode=require&sslpassword={}"),
    "MySQL's key": _in_url("mysql://u@h/d?ssl_cert=c.pem&ssl_key_password={}"),
    "trust store": _in_url("jdbc:mysql://u@h/d?useSSL=true&trustCertificateKeyStorePassword={}"),
    "MariaDB's trust store": _in_url("jdbc:mariadb://u@h/d?useSsl=true&trustStore=/a.jks&trustStorePassword={}"),
    "MySQL's key store": _in_url(
        "jdbc:mysql://u@h/d?clientCertificateKeyStoreUrl=file:/a.jks&clientCertificateKeyStorePassword={}"
    ),
    "MariaDB's key store": _in_url("jdbc:mariadb://u@h/d?useSsl=true&keyStore=/a.jks&keyStorePassword={}"),
    "MariaDB's key": _in_url("jdbc:mariadb://u@h/d?useSsl=true&keyStore=/a.jks&keyPassword={}"),
    "pgjdbc's key": _in_url("jdbc:postgresql://u@h/d?ssl=true&sslkey=/a.p12&sslpassword={}"),
    "TLS to the database": lambda password, _: load(
        command_line={
            "database.url": "mysql://u@h/d",
            "database.tls_enabled": True,
            "database.tls_ca_file": "/a.jks",
            "database.tls_ca_password": password,
        },
        environment={},
    ),
    "setting": lambda password, _: load(
        command_line={"database.url": "mysql://u@h/d", "database.password": password}, environment={}
    ),
    "environment": lambda password, _: load(
        command_line={"database.url": "mysql://u@h/d"}, environment={"HMS_CACHE__DATABASE__PASSWORD": password}
    ),
    "token": lambda password, _: load(command_line={"admin.token": password}, environment={}),
    "file": _in_file,
    "site's password": _in_site("javax__jdo__option__ConnectionPassword"),
    "site's URL": _in_site("javax__jdo__option__ConnectionURL", "jdbc:mysql://u:{}@h/d", quoted=True),
    "site's key store": _in_site("hive__metastore__keystore__password"),
    "site's LDAP": _in_site("metastore__authentication__ldap__bindpw"),
    "site's file system": _in_site("fs__s3a__secret__key"),
    "site's Azure": _in_site("fs__azure__account__key__store__example"),
    "file system's key": lambda password, _: load(
        command_line={"warehouse.options": {"abfss": {"account_key": password}}}, environment={}
    ),
}


def printed(configuration: Configuration, secret: str) -> list[str]:
    """Each way in which this program shows something, given texts that contain the secret as libraries' texts may."""
    url = configuration.settings.database.sqlalchemy_url()
    carried = [secret, repr(secret), json.dumps(secret), quote(secret, safe=""), url, f"cannot connect to {url!r}"]
    outputs = [json.dumps(list(configuration.rows()), ensure_ascii=False), str(configuration.site_review)]
    outputs += [repr(configuration.settings.model_dump()["database"]["password"]), masked(url), shown_argument(url)]
    outputs += [str(HiveValues(configuration).get(name)) for name in configuration.site]
    outputs += [str(one) for one in configuration.accepted_insecure]
    for text in carried:
        try:
            raise RuntimeError(text)
        except RuntimeError as error:
            record = logging.LogRecord(
                "hms_cache.x", logging.ERROR, "", 0, "failed: %s", (text,), (type(error), error, error.__traceback__)
            )
            outputs += [str(application_exception("get_table", error).message)]
        outputs += [TextFormatter().format(record), JsonFormatter().format(record), redacted(text)]
    return outputs


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(password=PASSWORDS)
@example(f" {CORE} ")
@example(f"\t{CORE}\n")
def test_no_secret_is_shown_however_it_was_given(tmp_path: Path, way: str, password: str) -> None:
    known_secrets._masked_forms.clear()  # those of the previous examples
    secret = password.strip() if way in ("file", "token") or way.startswith("site") else password
    try:
        configuration = WAYS[way](secret, tmp_path)
    except ConfigurationError as error:
        assert CORE not in str(error)
        return
    for output in printed(configuration, secret):
        assert CORE not in output, output


@given(password=st.text("aZ9/:?&=#%+ '\"<>\\", max_size=8).map(lambda text: f"{text}{CORE}/x?y"))
def test_a_password_is_masked_as_the_url_is_taken_apart(password: str) -> None:
    """Also one that is not quoted, with `/` or `?` in it: it extends to the `@`."""
    for text in (f"mysql://u:{password}@h/d", f"jdbc:mysql://u:{password}@h/d", f"postgresql://u:{password}@h/d?x=1"):
        assert CORE not in masked(text)
        assert any(CORE in secret for secret in secrets_of(text))
        assert CORE not in masked(sqlalchemy_url(text))
        assert CORE not in shown_argument(f"--database={text}")
    assert CORE not in masked(with_credentials("mysql+pymysql://h/d", "u", password))


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        ("mysql://u:pw@h/d", "mysql://u:***@h/d"),
        ("--database=jdbc:mysql://u:p/w@h/d?password=x", "--database=jdbc:mysql://u:***@h/d?password=***"),
        ("database.password=pw", "database.password=***"),
        ("--set=admin.token=t", "--set=admin.token=***"),
        ("database.url=mysql://u:pw@h/d", "database.url=mysql://u:***@h/d"),
        ("admin.token_file=/run/token", "admin.token_file=/run/token"),
        ("server.port=9083", "server.port=9083"),
        ("--database=jdbc:oracle:thin:u/pw@h:1521:x", "--database=jdbc:oracle:thin:u/***@h:1521:x"),
        ("spark.hadoop.fs.s3a.secret.key=k", "spark.hadoop.fs.s3a.secret.key=***"),
        ("--conf=fs.azure.account.key.store.example=k", "--conf=fs.azure.account.key.store.example=***"),
        ("--token-file=/run/token", "--token-file=/run/token"),
    ],
)
def test_arguments_are_masked_by_their_place(argument: str, shown: str) -> None:
    assert shown_argument(argument) == shown


def test_secrets_of_a_command_that_reads_no_settings_are_masked_in_texts() -> None:
    """For example of a job whose driver reports to what it could not connect."""
    arguments = ["jobs", "--database", f"jdbc:oracle:thin:u/{CORE}1@h", f"--database=mysql://u:{CORE}2@h/d"]
    remember_secret_arguments([*arguments, "--conf", f"spark.hadoop.fs.s3a.secret.key={CORE}3"])
    assert CORE not in redacted(f"{CORE}1, {CORE}2 and {CORE}3")


@pytest.mark.skipif(sys.platform != "linux", reason="a process's arguments are shown in /proc")
def test_a_job_shows_no_secret_of_its_arguments(tmp_path: Path) -> None:
    """It runs for hours, in the list of processes that each user of the machine sees."""
    with socket.create_server(("127.0.0.1", 0)) as metastore:
        address = f"127.0.0.1:{metastore.getsockname()[1]}"  # and that of its database, whichever it uses first
        command = [
            sys.executable,
            "-m",
            "hms_cache.cli",
            "jobs",
            "repair",
            "--dry-run",
            "--metastore",
            f"thrift://{address}",
        ]
        process = subprocess.Popen([*command, "--database", f"mysql://u:{CORE}@{address}/d"], cwd=tmp_path)
        try:
            metastore.settimeout(60)
            with metastore.accept()[0]:
                arguments = Path(f"/proc/{process.pid}/cmdline").read_text()
        finally:
            process.kill()
            process.wait(60)
    assert f"mysql://u:***@{address}/d" in arguments and CORE not in arguments


def test_what_a_site_file_asks_for_in_vain_is_told_without_its_secrets(tmp_path: Path) -> None:
    """Keys that are not honored are listed with their values, including those of other databases."""
    site = _site(
        tmp_path,
        metastore__other__url=f"jdbc:oracle:thin:scott/{CORE}@db",
        hive__metastore__another__url=f"mysql://u:{CORE}@db/d",
    )
    configuration = load(site_files=[site], environment={})
    told = [str(one) for one in configuration.site_review.ignored]
    assert len(told) == 2 and CORE not in "".join(told)
    known = [HiveValues(configuration).get(name) for name in configuration.site]
    assert CORE not in str(known) and "***" in str(known)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel shows arguments in /proc")
def test_a_running_server_shows_its_secrets_nowhere(tmp_path: Path) -> None:
    """The process itself: what `ps` shows, its output, and each page of its management port."""
    secrets = ("tok/en-from-argument", "pass word+from?environment")
    command = [sys.executable, "-c", "from hms_cache.cli.main import main; main()", "serve", "--port", "0"]
    command += ["--set", "admin.port=0", "--set", f"admin.token={secrets[0]}", "--set", "log.level=debug"]
    environment = os.environ | {"HMS_CACHE__DATABASE__PASSWORD": secrets[1]}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready.startswith("ready")
        arguments = Path(f"/proc/{process.pid}/cmdline").read_text()
        assert "admin.token=***" in arguments and "log.level=debug" in arguments
        log_text = (tmp_path / "log").read_text()
        port = int(log_text.partition("management port on 127.0.0.1:")[2].split()[0])
        shown = arguments + log_text + ready
        for path in ("/", "/config", "/config?format=html", "/status", "/operations", "/metrics", "/cache", "/events"):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", path)
            shown += connection.getresponse().read().decode()
            connection.close()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        if process.stdout is not None:
            process.stdout.close()
    for secret in secrets:
        assert secret not in shown
