"""A secured site: a realm, a certificate authority, a directory and a token issuer, and one server with a port for each
mechanism."""

from __future__ import annotations

import enum
import json
import logging
import os
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificates

from hms_cache.app.service import Service
from hms_cache.authentication.delegation.token_format import Token
from hms_cache.config import load
from tests.clients.spark.test_kerberos import SERVICE, credentials_file
from tests.clients.spark.test_secure_port import TRUST_PASSWORD, trust_store
from tests.server.kerberos_realm import REALM, Realm, SaslSocket
from tests.server.test_bearer_tokens import Issuer
from tests.server.test_delegation_tokens import link_over, requested
from tests.server.test_ldap import PEOPLE
from tests.server.test_tls import Authority, wait_for

USER = "ann"
PASSWORD = "ann's password"


class Mechanism(enum.Enum):
    """How a client authenticates, or protects its messages."""

    TLS = "TLS"
    MUTUAL_TLS = "mutual TLS"
    KERBEROS_AUTH = "Kerberos auth"
    KERBEROS_INT = "Kerberos auth-int"
    KERBEROS_CONF = "Kerberos auth-conf"
    TOKEN = "delegation token"
    PLAIN = "PLAIN (LDAP) over TLS"
    JWT = "JWT over HTTPS"

    @property
    def quality(self) -> str | None:
        """The port's only quality of protection; None if it has none."""
        return {"KERBEROS_AUTH": "auth", "KERBEROS_INT": "auth-int", "KERBEROS_CONF": "auth-conf"}.get(self.name)

    @property
    def protection(self) -> str:
        """The same as `hadoop.rpc.protection` says it."""
        return {"auth-int": "integrity", "auth-conf": "privacy"}.get(self.quality or "", "authentication")

    @property
    def by_kerberos(self) -> bool:
        """Whether the port accepts tickets and delegation tokens."""
        return self.name.startswith("KERBEROS") or self is Mechanism.TOKEN

    @property
    def by_tls(self) -> bool:
        """Whether the port uses TLS."""
        return not self.by_kerberos

    @property
    def audited(self) -> str:
        """Its name in the audit log."""
        if self.name.startswith("KERBEROS"):
            return "GSSAPI"
        return {"TOKEN": "DIGEST-MD5", "PLAIN": "PLAIN", "JWT": "JWT"}.get(self.name, "none")


class Port:
    """A port of the server that accepts one mechanism only."""

    def __init__(self, service: Service, number: int) -> None:
        self.service = service
        self.number = number

    @property
    def uri(self) -> str:
        """For clients of Thrift over TCP."""
        return f"thrift://localhost:{self.number}"

    def counted(self, which: str, outcome: str = "ok") -> int:
        """Returns how many `authentications` or `tls_handshakes` of the server had this outcome."""
        return int(getattr(self.service.metrics.server, which).values().get((outcome,), 0))


class AuditLines(logging.Handler):
    """What the ports log about calls."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, Any]] = []

    def of_creation(self) -> list[dict[str, Any]]:
        """Returns the audit lines of created tables, which are written a moment after the answer."""
        wait_for(lambda: bool(self._of_creation()))
        return self._of_creation()

    def _of_creation(self) -> list[dict[str, Any]]:
        return [one for one in self.lines if one["method"].startswith("create_table") and one["outcome"] == "ok"]

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(record.getMessage()))


class Site:
    """Everything that runs for the matrix. `close` ends it."""

    def __init__(self, directory: Path, realm: Realm, directory_port: int, issuer: Issuer) -> None:
        self.directory = directory
        self.realm = realm
        self.issuer = issuer
        self.authority = Authority(directory)
        self.trust_store = trust_store(self.authority)
        certificate = self.authority.ca.issue_cert("ann@clients.test")
        self.client_file = self.authority.written(certificate, "client.pem")
        self.client_store = self._key_store(certificate)
        self._directory_port = directory_port
        self._service: Service | None = None
        self._stack = ExitStack()
        self.audit = AuditLines()
        logger = logging.getLogger("hms_cache.audit")
        logger.setLevel(logging.INFO)
        logger.addHandler(self.audit)
        self._stack.callback(logger.removeHandler, self.audit)

    def port(self, mechanism: Mechanism | None) -> Port:
        """Returns a port of the server, which starts at the first use. None: the port without authentication."""
        if self._service is None:
            service = Service(load(command_line=self._settings(), environment={}))
            service.start()
            self._stack.callback(service.stop)
            self._service = service
        index = 0 if mechanism is None else 1 + list(Mechanism).index(mechanism)
        return Port(self._service, self._service.addresses[index][1])

    def token(self) -> Token:
        """Returns a new delegation token of the user, requested with a ticket."""
        port = self.port(Mechanism.TOKEN)
        with socket.create_connection(("127.0.0.1", port.number), timeout=60) as raw:
            sock = SaslSocket(raw)
            assert sock.gssapi(self.ticket, SERVICE) == (5, b"")
            return requested(link_over(sock), f"{USER}@{REALM}")

    @property
    def ticket(self) -> Path:
        """The user's cache of tickets."""
        return self.realm.directory / f"{USER}.cache"

    def token_file(self, directory: Path) -> Path:
        """As YARN gives it to a container."""
        return credentials_file(directory / "tokens", self.token())

    def password_store(self, class_path: str, directory: Path) -> str:
        """Creates Hadoop's credential provider with the user's password, like an administrator."""
        address = f"localjceks://file{directory / 'passwords.jceks'}"
        if (directory / "passwords.jceks").exists():
            return address
        shell = "org.apache.hadoop.security.alias.CredentialShell"
        command = ["java", "-cp", class_path, shell, "create", USER, "-value", PASSWORD, "-provider", address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return address

    def close(self) -> None:
        """Ends the ports."""
        self._stack.close()

    def _key_store(self, certificate: trustme.LeafCert) -> Path:
        """The client's certificate as Java reads it."""
        key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
        chain = load_pem_x509_certificates(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
        file = self.directory / "client.p12"
        protection = BestAvailableEncryption(TRUST_PASSWORD.encode())
        file.write_bytes(pkcs12.serialize_key_and_certificates(b"ann", key, chain[0], chain[1:], protection))  # type: ignore[arg-type]
        return file

    def _settings(self) -> dict[str, Any]:
        return self.authority.settings(
            **{
                "server.port": 0,
                "server.tls_enabled": False,
                "server.tls_client_ca_file": str(self.authority.ca_file),
                "server.mechanisms": "none",
                "server.listeners": [_listener(one) for one in Mechanism],
                "server.audit_format": "json",
                "admin.enabled": False,
                "database.url": f"sqlite:///{self.directory / 'metastore.db'}",
                "warehouse.directory": f"file:{self.directory / 'warehouse'}",
                "warehouse.external_directory": f"file:{self.directory / 'external'}",
                "warehouse.allowed_locations": f"file:{self.directory}",
                "authentication.kerberos_enabled": True,
                "authentication.kerberos_principal": SERVICE,
                "authentication.kerberos_keytab_file": str(self.realm.directory / "hive_localhost.keytab"),
                "authentication.proxy_users": "trino users=* hosts=*",
                "authentication.plain": "ldap",
                "authentication.ldap_url": f"ldap://127.0.0.1:{self._directory_port}",
                "authentication.ldap_user_dn_pattern": f"uid=%s,{PEOPLE}",
                "authentication.jwt_jwks_url": self.issuer.url,
                "authentication.jwt_issuer": "issuer",
                "authentication.jwt_audience": "hms",
            }
        )


def _listener(mechanism: Mechanism) -> dict[str, Any]:
    """The port of a mechanism, as a table of the settings."""
    by = {Mechanism.PLAIN: "ldap", Mechanism.JWT: "jwt"}.get(mechanism, "kerberos" if mechanism.by_kerberos else "none")
    return {
        "port": 0,
        "mechanisms": by,
        "tls_enabled": mechanism.by_tls,
        "transport_mode": "http" if mechanism is Mechanism.JWT else "binary",
        "tls_client_certificates": "required" if mechanism is Mechanism.MUTUAL_TLS else "",
        "quality_of_protection": mechanism.quality or "",
    }


def environment(**more: str) -> dict[str, str]:
    """Of a client's process."""
    return dict(os.environ) | more
