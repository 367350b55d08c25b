"""Hadoop's credential providers in site files, with key stores that Hadoop has written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from hms_cache.config import Configuration, load
from hms_cache.config.secrets import redacted
from hms_cache.errors import ConfigurationError
from tests.config.test_site_files import of, write
from tests.key_stores.samples import DATABASE_PASSWORD, KEY_PASSWORD, PASSWORDS, PROTECTED, PROTECTION

PATH = "hadoop.security.credential.provider.path"
PASSWORD_FILE = "hadoop.security.credstore.java-keystore-provider.password-file"
DATABASE = "javax.jdo.option.ConnectionPassword"


def read(directory: Path, *properties: str, environment: Mapping[str, str] | None = None) -> Configuration:
    file = write(directory / "hive-site.xml", "".join(properties))
    return load(site_files=[file], environment=environment or {})


def database_password(configuration: Configuration) -> str:
    return configuration.settings.database.password.get_secret_value()


def key_password(configuration: Configuration) -> str:
    return configuration.settings.server.tls_key_password.get_secret_value()


@pytest.mark.parametrize("kind", ["jceks", "localjceks"])
def test_passwords_are_read_from_a_provider(tmp_path: Path, kind: str) -> None:
    configuration = read(tmp_path, of(PATH, f"{kind}://file{PASSWORDS}"))
    assert database_password(configuration) == DATABASE_PASSWORD
    assert key_password(configuration) == KEY_PASSWORD
    assert configuration.origin("database.password") == f"{kind}://file{PASSWORDS} ({DATABASE})"
    assert not configuration.site_review.ignored
    assert DATABASE_PASSWORD not in redacted(f"access denied with {DATABASE_PASSWORD}")


def test_a_provider_comes_before_the_text_of_a_site_file(tmp_path: Path) -> None:
    configuration = read(tmp_path, of(PATH, f"jceks://file{PASSWORDS}"), of(DATABASE, "text"))
    assert database_password(configuration) == DATABASE_PASSWORD


def test_what_no_provider_has_is_read_from_the_site_file(tmp_path: Path) -> None:
    given = of(PATH, f"jceks://file{PROTECTED}"), of(DATABASE, "the text")
    environment = {"HADOOP_CREDSTORE_PASSWORD": PROTECTION}
    configuration = read(tmp_path, *given, environment=environment)
    assert (database_password(configuration), key_password(configuration)) == ("the text", "changeit")
    assert PROTECTION not in redacted(f"a trace with {PROTECTION}")
    strict = read(
        tmp_path, *given, of("hadoop.security.credential.clear-text-fallback", "false"), environment=environment
    )
    assert (database_password(strict), key_password(strict)) == ("", "changeit")


@pytest.mark.parametrize("better", ["environment", "file", "command"])
def test_settings_come_before_a_provider(tmp_path: Path, better: str) -> None:
    (tmp_path / "password").write_text("better\n")
    environment = {
        "environment": {"HMS_CACHE__DATABASE__PASSWORD": "better"},
        "file": {"HMS_CACHE__DATABASE__PASSWORD_FILE": str(tmp_path / "password")},
        "command": {"HMS_CACHE__DATABASE__PASSWORD_COMMAND": f"cat {tmp_path / 'password'}"},
    }[better]
    configuration = read(tmp_path, of(PATH, f"jceks://file{PASSWORDS}"), environment=environment)
    assert (database_password(configuration), key_password(configuration)) == ("better", KEY_PASSWORD)


def test_the_first_of_several_providers_wins(tmp_path: Path) -> None:
    copy = tmp_path / "a copy.jceks"
    shutil.copy(PASSWORDS, copy)
    both = f"user:///, jceks://file{str(copy).replace(' ', '%20')} ,jceks://file{PASSWORDS}"
    configuration = read(tmp_path, of(PATH, both))
    assert configuration.origin("database.password").startswith(f"jceks://file{tmp_path}/a%20copy.jceks")
    (told,) = configuration.site_review.ignored
    assert told.name == PATH
    assert "user:///" in told.note and "database.password_file" in told.note


@pytest.mark.parametrize(
    "uri",
    [
        *("jceks://hdfs@namenode:8020/hive.jceks", "jceks://s3a@bucket/hive.jceks", "localbcfks://file/etc/hive.bcfks"),
        *(
            "jceks://file@host/etc/hive.jceks",
            "jceks:///etc/hive.jceks",
            "jceks://[",
            "jceks://file/etc/not/there.jceks",
        ),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, uri: str) -> None:
    configuration = read(tmp_path, of(PATH, uri), of(DATABASE, "text"))
    assert database_password(configuration) == "text"
    (told,) = configuration.site_review.ignored
    assert uri in told.note


def test_the_password_of_a_provider_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "store.password").write_text(f"{PROTECTION}\n")
    path = of(PATH, f"jceks://file{PROTECTED}")
    for name in ("store.password", str(tmp_path / "store.password")):
        assert key_password(read(tmp_path, path, of(PASSWORD_FILE, name))) == "changeit"
    with pytest.raises(ConfigurationError, match=f"{PASSWORD_FILE}: .*/other cannot be read: No such file"):
        read(tmp_path, path, of(PASSWORD_FILE, "other"))


@pytest.mark.parametrize("content", [PROTECTED.read_bytes(), b"nonsense", PASSWORDS.read_bytes()[:-30]])
def test_a_provider_that_cannot_be_opened_stops_the_start_with_a_remedy(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "hive.jceks"
    file.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"HADOOP_CREDSTORE_PASSWORD.*database\.password_file"):
        read(tmp_path, of(PATH, f"jceks://file{file}"))
    assert read(tmp_path, of(PATH, "")).site_review.ignored == ()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_provider_that_must_not_be_read_is_told(tmp_path: Path) -> None:
    file = tmp_path / "hive.jceks"
    shutil.copy(PASSWORDS, file)
    file.chmod(0)
    with pytest.raises(ConfigurationError, match="Permission denied"):
        read(tmp_path, of(PATH, f"jceks://file{file}"))
