"""A set whose servers are upgraded one by one: for some time two versions serve one database."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.cache.world import partition, table
from tests.consistency.workload import Size
from tests.database_kinds import SERVER_KINDS
from tests.lease.runs import members
from tests.lease.test_linearizability import AFTERWARDS, FAULTS, reads_by_outcome
from tests.servers import ServerProcess, metastore_client
from tests.upgrades.earlier import VERSIONS, EarlierServer, EitherServer, package_of

pytestmark = [pytest.mark.soak, pytest.mark.long]

SIZE = Size(reads=12_000, writes=300, raw=False)


@pytest.fixture(params=list(VERSIONS))
def earlier(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[EarlierServer]:
    monkeypatch.setattr(EarlierServer, "package", package_of(request.param, tmp_path / "earlier"), raising=False)
    return EarlierServer


@pytest.mark.parametrize("database_kind", SERVER_KINDS, indirect=True)
@pytest.mark.parametrize("has_more_of_the_earlier", [True, False])
def test_reads_by_lease_are_exact_while_two_versions_are_members(
    database_url: str,
    tmp_path: Path,
    initialize: None,
    earlier: type[EarlierServer],
    has_more_of_the_earlier: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(EitherServer, "launched", int(not has_more_of_the_earlier))
    seed = time.time_ns() % 100_000
    with members(tmp_path, database_url, seed, kind=EitherServer) as run:
        with run.beside(seed, FAULTS):
            run.workload.run(SIZE)
        run.workload.run(AFTERWARDS)
        found = run.violations()
        told = [reads_by_outcome(server) for server in run.servers]
        with capsys.disabled():
            print(f"\nseed {seed}: {len(run.workload.history.reads)} reads, {dict(run.faults)}", *told, sep="\n")
    assert not found, f"seed {seed}\n" + "\n".join(map(str, found[:5]))
    assert all(one["lease"]["alarm"] == "" for one in told)
    assert all(one["lease"]["acknowledgements_given"] for one in told)
    assert all(one["checks"] < one["hit"] for one in told), "each had leases"


TABLES = [f"t{number}" for number in range(10)]


def fill(client: Any) -> list[Any]:
    """Creates tables and partitions. Returns all answers about them."""
    for name in TABLES:
        client.create_table(table("default", name))
    client.create_table(table("default", "p", keys=(("day", "string"),)))
    client.add_partitions([partition(table("default", "p"), (str(day),)) for day in range(30)])
    return everything(client)


def everything(client: Any) -> list[Any]:
    return [
        client.get_all_tables("default"),
        client.get_partitions("default", "p", -1),
        *(client.get_table("default", name) for name in TABLES),
    ]


@pytest.mark.parametrize("is_downgrade", [False, True])
def test_a_cache_dump_of_the_other_version_is_right_or_discarded(
    tmp_path: Path, earlier: type[EarlierServer], is_downgrade: bool
) -> None:
    kinds: list[type[ServerProcess]] = [earlier, ServerProcess]
    before, after = reversed(kinds) if is_downgrade else kinds
    url = f"sqlite:///{tmp_path / 'metastore.db'}"
    settings: dict[str, object] = {"cache.dump_file": str(tmp_path / "dump"), "cache.warm": "full"}
    server = before(tmp_path / "before", url, settings)
    server.start()
    with metastore_client(server.port) as client:
        answers = fill(client)
        assert everything(client) == answers  # now from memory
    assert server.stop() == 0
    assert (tmp_path / "dump").exists()
    server = after(tmp_path / "after", url, settings)
    server.start()
    with metastore_client(server.port) as client:
        assert everything(client) == answers
        client.drop_table("default", "t0", False)
        assert "t0" not in client.get_all_tables("default")
    assert server.stop() == 0
    assert "Traceback" not in server.log
