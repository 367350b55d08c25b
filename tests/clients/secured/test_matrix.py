"""Each client over each mechanism: it creates, writes and reads, or its own class lacks the mechanism.

`pytest -s -m soak tests/clients/secured` prints the table of docs/evidence/security.md at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.clients.secured import java_clients, python_clients
from tests.clients.secured.reasons import CANNOT, REFUSED
from tests.clients.secured.site import USER, Mechanism, Site
from tests.clients.trino.coordinator import Coordinator
from tests.clients.trino.distribution import TrinoMissing
from tests.server.kerberos_realm import REALM, running_realm
from tests.server.test_bearer_tokens import Issuer
from tests.server.test_ldap import ENTRIES, running_directory

pytest.importorskip("gssapi")
pytest.importorskip("kerberos")
pytest.importorskip("puresasl")
pytestmark = [pytest.mark.java, pytest.mark.spark, pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(1500)]

CLIENTS = ("spark-2.3", "spark-4.1", "hive-4.0.1", "trino-476", "hmsclient", "pyiceberg", "own")
RUNS: dict[str, java_clients.Run] = {
    "spark-2.3": java_clients.spark(None),
    "spark-4.1": java_clients.spark("4.1.0"),
    "hive-4.0.1": java_clients.hive,
    "hmsclient": python_clients.hmsclient,
    "pyiceberg": python_clients.pyiceberg,
    "own": python_clients.own,
}
READ = {
    "spark-2.3": [["2"]],
    "spark-4.1": [["2"]],
    "hive-4.0.1": ["1", "2"],
    "trino-476": [[2]],
    "hmsclient": ["p=x"],
    "pyiceberg": [1, 2],
    "own": ["p=x"],
}
"""What each has read of what it wrote."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    place = tmp_path_factory.mktemp("site")
    for name in ("realm", "directory", "ports"):
        (place / name).mkdir()
    with (
        running_realm(place / "realm") as realm,
        running_directory(place / "directory", ENTRIES) as directory_port,
        closing(Issuer()) as issuer,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("KRB5_CONFIG", str(realm.configuration))
        realm.keytab("hive/localhost")
        realm.ticket("trino")
        patch.setenv("KRB5CCNAME", f"FILE:{realm.ticket(USER)}")
        with closing(Site(place / "ports", realm, directory_port, issuer)) as made:
            yield made


@pytest.fixture(scope="module")
def coordinator(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Coordinator]:
    mechanisms = tuple(one for one in Mechanism if ("trino-476", one) not in CANNOT)
    try:
        trino = java_clients.trino_coordinator(site, tmp_path_factory.mktemp("trino"), mechanisms)
    except TrinoMissing as missing:
        pytest.skip(str(missing))
    yield trino
    trino.stop()


@pytest.fixture(scope="module")
def cells() -> Iterator[dict[tuple[str, Mechanism], str]]:
    found: dict[tuple[str, Mechanism], str] = {}
    yield found
    print("\n\n| client |", " | ".join(one.value for one in Mechanism), "|")
    print("|---" * (len(Mechanism) + 1) + "|")
    for client in CLIENTS:
        print(f"| {client} |", " | ".join(found.get((client, one), "not run") for one in Mechanism), "|")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mechanism", Mechanism, ids=lambda one: one.name.lower())
def test_the_client_creates_writes_and_reads(
    site: Site,
    cells: dict[tuple[str, Mechanism], str],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    client: str,
    mechanism: Mechanism,
) -> None:
    cells[client, mechanism] = "failed"
    reason = CANNOT.get((client, mechanism))
    if reason is not None:
        assert reason.holds(), f"{client} can speak {mechanism.value}"
        cells[client, mechanism] = "cannot"
        return
    run = RUNS.get(client) or java_clients.trino(request.getfixturevalue("coordinator"))
    port = site.port(mechanism)
    before = port.counted("authentications"), port.counted("tls_handshakes")
    site.audit.lines.clear()
    # All ports belong to one server: what was created over another one exists.
    database = re.sub(r"\W", "_", f"{client}_{mechanism.name}").lower()
    if (client, mechanism) in REFUSED:
        refused = port.counted("tls_handshakes", "client_certificate")
        with pytest.raises((AssertionError, RuntimeError)):
            run(site, mechanism, tmp_path, database)
        assert port.counted("tls_handshakes", "client_certificate") > refused
        assert port.counted("tls_handshakes") == before[1]
        # Lines of the previous client may still arrive.
        assert not [line for line in list(site.audit.lines) if database in line["cmd"]]
        cells[client, mechanism] = "cannot"
        return
    assert run(site, mechanism, tmp_path, database) == READ[client]
    if mechanism.by_tls:
        assert port.counted("tls_handshakes") > before[1]
    made = site.audit.of_creation()
    for line in made:
        assert line["mechanism"] == mechanism.audited
    if mechanism.audited != "none":
        assert {line["ugi"] for line in made} == {USER}
        assert port.counted("authentications") > before[0]
        assert {line["principal"] for line in made} <= {USER, f"{USER}@{REALM}"}
    cells[client, mechanism] = "works"
