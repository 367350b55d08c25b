"""A server with a port for each way to authenticate; a real KDC, a real directory, a token issuer."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hms_cache.app.service import Service
from hms_cache.client import MetastoreClient, authentication_of
from hms_cache.client.authentication.values import Authentication
from hms_cache.config import load
from tests.server.kerberos_realm import REALM, Realm, running_realm
from tests.server.test_bearer_tokens import Issuer
from tests.server.test_ldap import ENTRIES, PEOPLE, running_directory
from tests.server.test_tls import Authority

SERVICE = f"hive/localhost@{REALM}"
PASSWORD = "ann's password"

PORTS: dict[str, dict[str, Any]] = {
    "none": {"mechanisms": "none"},
    "kerberos": {"mechanisms": "kerberos"},
    "kerberos auth": {"mechanisms": "kerberos", "quality_of_protection": "auth"},
    "kerberos auth-int": {"mechanisms": "kerberos", "quality_of_protection": "auth-int"},
    "kerberos auth-conf": {"mechanisms": "kerberos", "quality_of_protection": "auth-conf"},
    "kerberos tls": {"mechanisms": "kerberos", "tls_enabled": True},
    "ldap": {"mechanisms": "ldap"},
    "ldap tls": {"mechanisms": "ldap", "tls_enabled": True},
    "http none": {"mechanisms": "none", "transport_mode": "http"},
    "jwt": {"mechanisms": "jwt", "transport_mode": "http"},
    "jwt tls": {"mechanisms": "jwt", "transport_mode": "http", "tls_enabled": True},
}


class Site:
    """What runs, and where."""

    def __init__(self, directory: Path, realm: Realm, directory_port: int, issuer: Issuer) -> None:
        self.directory = directory
        self.realm = realm
        self.issuer = issuer
        self.authority = Authority(directory)
        self.ticket = realm.directory / "ann.cache"
        self.keytab = realm.directory / "ann.keytab"
        self.password_file = self.written("password", PASSWORD + "\n")
        self.bearer_file = self.written("bearer", issuer.token())
        first, *others = PORTS.values()
        settings = self.authority.settings(
            **{
                "server.port": 0,
                "server.tls_enabled": False,
                "server.mechanisms": first["mechanisms"],
                "server.listeners": [{"port": 0, "tls_enabled": False, **one} for one in others],
                "security.accept_insecure": True,
                "admin.enabled": False,
                "database.url": f"sqlite:///{directory / 'metastore.db'}",
                "warehouse.directory": f"file:{directory / 'warehouse'}",
                **self.kerberos_settings,
                "authentication.plain": "ldap",
                "authentication.ldap_url": f"ldap://127.0.0.1:{directory_port}",
                "authentication.ldap_user_dn_pattern": f"uid=%s,{PEOPLE}",
                "authentication.jwt_jwks_url": issuer.url,
                "authentication.jwt_issuer": "issuer",
                "authentication.jwt_audience": "hms",
            }
        )
        self.service = Service(load(command_line=settings, environment={}))
        self.service.start()

    def written(self, name: str, text: str) -> Path:
        file = self.directory / name
        file.write_text(text)
        return file

    @property
    def kerberos_settings(self) -> dict[str, Any]:
        """The Kerberos settings of a server of this realm."""
        return {
            "authentication.kerberos_enabled": True,
            "authentication.kerberos_principal": SERVICE,
            "authentication.kerberos_keytab_file": str(self.realm.directory / "hive_localhost.keytab"),
        }

    def kerberos_server(self, directory: Path, **settings: Any) -> Service:
        """Another server of this realm, with Kerberos only; not started."""
        given = {
            "server.port": 0,
            "admin.enabled": False,
            "database.url": f"sqlite:///{directory / 'metastore.db'}",
            **self.kerberos_settings,
            **settings,
        }
        return Service(load(command_line=given, environment={}))

    @property
    def tls(self) -> ssl.SSLContext:
        return self.authority.client()

    def uri(self, port: str) -> str:
        number = self.service.addresses[list(PORTS).index(port)][1]
        by_http, by_tls = PORTS[port].get("transport_mode") == "http", PORTS[port].get("tls_enabled", False)
        if by_http:
            return f"http{'s' if by_tls else ''}://localhost:{number}/metastore"
        return f"thrift{'+tls' if by_tls else ''}://localhost:{number}"

    def client(self, port: str, auth: str | Authentication, **more: Any) -> MetastoreClient:
        how = authentication_of(auth, {}) if isinstance(auth, str) else auth
        return MetastoreClient(self.uri(port), how, tls_context=self.tls, **more)

    def token(self) -> str:
        """A delegation token owned by ann."""
        with self.client("kerberos", self.kerberos) as client:
            text: str = client.call("get_delegation_token", f"ann@{REALM}", f"ann@{REALM}")
        return text

    @property
    def kerberos(self) -> str:
        return f"kerberos server=hive/_HOST@{REALM} ticket_cache=FILE:{self.ticket}"

    @property
    def ldap(self) -> str:
        return f"ldap user=ann password_file={self.password_file}"


@contextmanager
def running_site(directory: Path) -> Iterator[Site]:
    """Skips the test if a KDC or a directory is not installed."""
    for name in ("realm", "directory", "server"):
        (directory / name).mkdir()
    with (
        running_realm(directory / "realm") as realm,
        running_directory(directory / "directory", ENTRIES) as directory_port,
        closing(Issuer()) as issuer,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("KRB5_CONFIG", str(realm.configuration))
        patch.setenv("KRB5CCNAME", "FILE:/nonexistent")
        realm.keytab("hive/localhost")
        realm.ticket("ann")
        site = Site(directory / "server", realm, directory_port, issuer)
        try:
            yield site
        finally:
            site.service.stop()
