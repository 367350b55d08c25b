"""Clients whose certificates were revoked, by lists that authorities issued."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from hms_cache.app.checks import Findings
from hms_cache.app.security.checks import check_security
from hms_cache.config import load
from hms_cache.errors import ConfigurationError, StartupError
from tests.server.conftest import Running, Serve
from tests.server.test_tls import Authority, handshakes, protected, reloaded, wait_for

NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
DAY = datetime.timedelta(days=1)


def serial_of(certificate: trustme.LeafCert) -> int:
    return x509.load_pem_x509_certificate(certificate.cert_chain_pems[0].bytes()).serial_number


def revocation_list(ca: trustme.CA, *revoked: trustme.LeafCert, ends: datetime.datetime = NOW + 30 * DAY) -> bytes:
    """As the authority publishes it, in PEM."""
    issuer = x509.load_pem_x509_certificate(ca.cert_pem.bytes()).subject
    made = x509.CertificateRevocationListBuilder(issuer, ends - 60 * DAY, ends)
    for one in revoked:
        entry = x509.RevokedCertificateBuilder(serial_of(one), ends - 60 * DAY).build()
        made = made.add_revoked_certificate(entry)
    key: Any = serialization.load_pem_private_key(ca.private_key_pem.bytes(), None)
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


class Site:
    """An authority with a subordinate one, which sign clients, and the file with their lists."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority(directory)
        self.lower = self.authority.ca.create_child_ca()
        self.file = directory / "lists.pem"
        self.good, self.revoked = (self.authority.ca.issue_cert(f"{one}@example.com") for one in ("good", "revoked"))
        self.below, self.revoked_below = (self.lower.issue_cert(f"{one}@example.com") for one in ("good", "revoked"))

    def publish(self, *lists: bytes) -> None:
        self.file.write_bytes(b"".join(lists))

    def settings(self, **more: Any) -> dict[str, Any]:
        return self.authority.settings(
            **{
                "server.tls_client_certificates": "required",
                "server.tls_client_ca_file": str(self.authority.ca_file),
                "server.tls_client_crl_file": str(self.file),
                **more,
            }
        )

    def admitted(self, server: Running, shown: Sequence[trustme.LeafCert | None]) -> Iterator[bool]:
        for certificate in shown:
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                context = self.authority.client(certificate)
                context.minimum_version = context.maximum_version = version
                before = handshakes(server)
                try:
                    yield protected(server, context).call("getStatus") == 2
                except (ssl.SSLError, ConnectionResetError, EOFError):
                    yield False
                    name = "client_certificate"
                    wait_for(
                        lambda before=before, name=name: handshakes(server).get(name, 0) == before.get(name, 0) + 1
                    )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_who_is_in_a_list_is_refused(serve: Serve, site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.publish(revocation_list(site.lower, site.revoked_below), revocation_list(site.authority.ca, site.revoked))
    server = serve(**site.settings())
    shown = (site.good, site.revoked, site.below, site.revoked_below)
    assert [*site.admitted(server, shown)] == [True, True, False, False, True, True, False, False]
    assert "CERTIFICATE_VERIFY_FAILED: certificate revoked" in caplog.text


def test_who_shows_none_is_admitted_where_none_is_required(serve: Serve, site: Site) -> None:
    site.publish(revocation_list(site.authority.ca, site.revoked))
    server = serve(**site.settings(**{"server.tls_client_certificates": "optional"}))
    assert [*site.admitted(server, (None, site.good, site.revoked))] == [True] * 4 + [False] * 2


def test_without_a_list_of_its_authority_that_is_in_force_nobody_is_admitted(
    serve: Serve, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise, an attacker who prevents the file's renewal would be accepted with a certificate revoked since."""
    site.publish(revocation_list(site.authority.ca, ends=NOW - DAY))
    assert [*site.admitted(serve(**site.settings()), (site.good,))] == [False, False]
    assert "CRL has expired" in caplog.text
    site.publish(revocation_list(site.authority.ca))
    assert [*site.admitted(serve(**site.settings()), (site.good, site.below))] == [True, True, False, False]
    assert "unable to get certificate CRL" in caplog.text


def test_another_authority_cannot_revoke_nor_keep_somebody_in(serve: Serve, site: Site) -> None:
    """A list signed by another key is not valid: here it is the only one, so no client is accepted."""
    site.publish(revocation_list(trustme.CA(), site.good))
    assert [*site.admitted(serve(**site.settings()), (site.good, site.revoked))] == [False] * 4


def test_a_new_list_counts_from_a_reload_on(serve: Serve, site: Site) -> None:
    site.publish(revocation_list(site.authority.ca))
    server = serve(**site.settings())
    found = server.service.metrics.registry.get_sample_value
    end = "hms_cache_revocation_list_end_timestamp_seconds"
    open_connection = protected(server, site.authority.client(site.revoked))
    assert open_connection.call("getStatus") == 2
    assert found(end) == (NOW + 30 * DAY).timestamp()
    site.publish(revocation_list(site.authority.ca, site.revoked, ends=NOW + 20 * DAY))
    reloaded(server, server.service, site.settings())
    assert found(end) == (NOW + 20 * DAY).timestamp()
    assert [*site.admitted(server, (site.good, site.revoked))] == [True, True, False, False]
    assert open_connection.call("getStatus") == 2
    site.publish(b"nothing")
    with pytest.raises(StartupError):
        reloaded(server, server.service, site.settings())
    assert found(end) == (NOW + 20 * DAY).timestamp()
    assert [*site.admitted(server, (site.good, site.revoked))] == [True, True, False, False]


@pytest.mark.parametrize("content", ["", "no list", "cut", "certificates", "missing"])
def test_files_that_are_no_lists_stop_the_start_with_a_remedy(serve: Serve, site: Site, content: str) -> None:
    made = revocation_list(site.authority.ca)
    stranger = trustme.CA()
    contents = {
        "": b"",
        "no list": site.authority.ca.cert_pem.bytes(),
        "cut": made[:100] + made[-60:],
        "certificates": made + stranger.cert_pem.bytes(),
    }
    if content in contents:
        site.publish(contents[content])
    with pytest.raises(StartupError) as raised:
        serve(**site.settings())
    assert "server.tls_client_crl_file" in str(raised.value) and raised.value.remedy


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        (NOW - DAY, [("error", "has ended")]),
        (NOW + DAY / 2, [("warning", "ends within a day")]),
        (NOW + 30 * DAY, []),
    ],
)
def test_the_check_looks_at_the_lists(site: Site, ends: datetime.datetime, told: list[tuple[str, str]]) -> None:
    site.publish(revocation_list(site.authority.ca, ends=ends))
    findings = Findings()
    check_security(findings, load(command_line=site.settings(), environment={}).settings)
    found = [(one.severity, one.problem) for one in findings.found if "tls_client_crl_file" in one.problem]
    assert [severity for severity, _ in found] == [severity for severity, _ in told]
    assert all(end in problem for (_, problem), (_, end) in zip(found, told, strict=True))


def test_the_check_finds_a_file_without_lists(site: Site) -> None:
    site.publish(b"nothing")
    findings = Findings()
    check_security(findings, load(command_line=site.settings(), environment={}).settings)
    assert [one.severity for one in findings.found if "tls_client_crl_file" in one.problem] == ["error"]


def test_lists_without_certificates_of_clients_are_a_mistake(site: Site) -> None:
    settings = site.settings(**{"server.tls_client_certificates": "none"})
    with pytest.raises(ConfigurationError, match="tls_client_crl_file needs tls_client_certificates"):
        load(command_line=settings, environment={})
