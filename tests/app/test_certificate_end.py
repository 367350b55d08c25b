"""The expiry of the server's certificate is a metric, and a warning in the log in good time."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
import trustme

from hms_cache.app.security.expiry import DAY_S, CertificateEnd
from hms_cache.app.service import Service
from hms_cache.config import Configuration
from hms_cache.metrics import Metrics
from tests.app.test_service import configured
from tests.manual_clock import ManualClock


def write_certificate(file: Path, ends: datetime.datetime) -> None:
    made = trustme.CA().issue_cert("localhost", not_after=ends, not_before=ends - datetime.timedelta(days=300))
    made.private_key_and_cert_chain_pem.write_to_path(file)


def secured(directory: Path, **settings: object) -> Configuration:
    return configured(
        directory,
        **{"server__tls_enabled": True, "server__tls_certificate_file": str(directory / "server.pem")} | settings,
    )


def test_it_is_told_once_a_day_from_a_month_before_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock(epoch_s=1_700_000_000)
    ends = datetime.datetime.fromtimestamp(clock.epoch_s(), datetime.UTC) + datetime.timedelta(days=32)
    write_certificate(tmp_path / "server.pem", ends)
    gauge = Metrics().server.certificate_end
    settings = secured(tmp_path).settings
    watched = CertificateEnd(settings, gauge, clock)
    lines: list[list[str]] = []
    for _ in range(35):
        caplog.clear()
        for _ in range(24):
            watched.check()
            clock.advance(DAY_S / 24)
        lines.append([one.getMessage().partition(".")[0] for one in caplog.records])
    assert lines == [
        *([[]] * 2),
        *([f"the certificate ends in {days} days"] for days in range(29, -1, -1)),
        *([["the certificate has ended: clients refuse it"]] * 3),
    ]
    write_certificate(tmp_path / "server.pem", ends + datetime.timedelta(days=365))
    watched.renewed(settings)()
    caplog.clear()
    clock.advance(DAY_S)
    watched.check()
    assert caplog.records == []
    assert gauge._value.get() == (ends + datetime.timedelta(days=365)).timestamp()


@pytest.mark.parametrize("of_management", [False, True])
def test_a_server_tells_of_its_own_and_of_a_new_one(tmp_path: Path, of_management: bool) -> None:
    first = datetime.datetime.now(datetime.UTC).replace(microsecond=0) + datetime.timedelta(days=100)
    settings = {"server__tls_enabled": False, "admin__enabled": True, "admin__port": 0, "admin__tls_enabled": True}
    write_certificate(tmp_path / "server.pem", first)
    configuration = secured(tmp_path, **(settings if of_management else {}))
    service = Service(configuration)
    service.start()
    try:
        found = service.metrics.registry.get_sample_value
        assert found("hms_cache_certificate_end_timestamp_seconds") == first.timestamp()
        write_certificate(tmp_path / "server.pem", first + datetime.timedelta(days=365))
        service.reload(configuration)
        assert found("hms_cache_certificate_end_timestamp_seconds") == first.timestamp() + 365 * DAY_S
    finally:
        service.stop()


def test_without_tls_there_is_none(tmp_path: Path) -> None:
    service = Service(configured(tmp_path))
    service.start()
    try:
        assert service.metrics.registry.get_sample_value("hms_cache_certificate_end_timestamp_seconds") == 0
    finally:
        service.stop()
