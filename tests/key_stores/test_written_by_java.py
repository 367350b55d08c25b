"""Key stores written by this machine's Java: another release may write them differently than those in `data/`."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pyspark
import pytest

from hms_cache.config import load
from hms_cache.key_stores.java_key_store import private_key, read_key_store
from tests.config.test_site_files import of, write

pytestmark = pytest.mark.soak

JARS = Path(pyspark.__file__).parent / "jars"


def java(program: str) -> str:
    found = shutil.which(program) or f"{os.environ.get('JAVA_HOME', '')}/bin/{program}"
    assert Path(found).exists(), f"{program} is needed"
    return found


def credential(name: str, value: str, uri: str, environment: dict[str, str]) -> None:
    shell = [java("java"), "-cp", f"{JARS}/*", "org.apache.hadoop.security.alias.CredentialShell"]
    done = subprocess.run(
        [*shell, "create", name, "-value", value, "-provider", uri],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("password", [None, "pass word%&"])
@pytest.mark.parametrize("kind", ["jceks", "localjceks"])
def test_credentials_that_hadoop_writes(tmp_path: Path, kind: str, password: str | None) -> None:
    environment = {} if password is None else {"HADOOP_CREDSTORE_PASSWORD": password}
    uri = f"{kind}://file{tmp_path}/hive.jceks"
    values = {"javax.jdo.option.ConnectionPassword": "ä" * 300, "hive.metastore.keystore.password": "1"}
    for name, value in values.items():
        credential(name, value, uri, environment)
    site = write(tmp_path / "hive-site.xml", of("hadoop.security.credential.provider.path", uri))
    settings = load(site_files=[site], environment=environment).settings
    assert settings.database.password.get_secret_value() == "ä" * 300
    assert settings.server.tls_key_password.get_secret_value() == "1"


@pytest.mark.parametrize("algorithm", ["RSA", "EC", "DSA"])
@pytest.mark.parametrize("kind", ["JKS", "JCEKS"])
def test_keys_that_keytool_writes(tmp_path: Path, kind: str, algorithm: str) -> None:
    file = tmp_path / "store"
    words = ["-genkeypair", "-alias", "Server", "-keyalg", algorithm, "-storetype", kind, "-dname", "CN=localhost"]
    command = [java("keytool"), *words, "-keystore", str(file), "-storepass", "changeit", "-keypass", "changeit"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    (entry,) = read_key_store(file.read_bytes(), "changeit").private_keys
    assert entry.alias == "server"
    assert private_key(entry, "changeit").startswith(b"\x30")
