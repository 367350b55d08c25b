"""Property: whatever locations a client sends, in any order, the files of others remain unchanged.

These are all files outside of the warehouse, and the tables of another client: at the places given by their names,
below a database of an older release at a place of its own, and at a place that an external table names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.conftest import ServerLookup
from tests.hostile.hostile_locations import KEYS, VICTIM, Attacker, Tree
from tests.processes.writers import connected
from tests.servers import server_process
from tests.store.contract.harness import table

CALLS = 50


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.long])],
    ids=["sqlite", "mariadb"],
)
def port_and_root(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, database_servers: ServerLookup
) -> Iterator[tuple[int, Path]]:
    root = tmp_path_factory.mktemp("scratch")
    databases = database_servers(request.param)
    url = databases.initialized_database()
    settings: dict[str, object] = {
        "warehouse.directory": root / "warehouse",
        "cache.warm": "off",
        # The attacker reads what it alters by `get_table`, also insert-only tables.
        "catalog.client_capability_check": False,
    }
    with server_process(tmp_path_factory.mktemp("server"), url, settings) as server, connected(server.port) as client:
        _victim(client, root)
        yield server.port, root
    databases.give_back(url)


def _victim(client: Any, root: Path) -> None:
    client.create_database(ttypes.Database(name=VICTIM))
    client.create_table(table("t1", dbName=VICTIM, keys=KEYS))
    client.create_table(table("plain", dbName=VICTIM))
    own = root / "warehouse" / f"{VICTIM}.db"
    client.create_table(
        table(
            "ext",
            dbName=VICTIM,
            location=f"file:{own}/ext",
            tableType="EXTERNAL_TABLE",
            parameters={"EXTERNAL": "TRUE"},
        )
    )
    sd = table("x").sd
    client.add_partitions([ttypes.Partition(values=["1", "1"], dbName=VICTIM, tableName="t1", sd=sd, parameters={})])
    client.create_database(ttypes.Database(name=f"{VICTIM}2", locationUri=f"file:{root}/declared"))
    client.create_table(table("t1", dbName=f"{VICTIM}2", keys=KEYS))
    for place in (own / "t1/k=1/l=1", own / "plain", own / "ext", root / "declared/t1", root / "declared/t1/k=1"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "data").write_text(str(place))


def attacked(port: int, root: Path, seed: int) -> Attacker:
    tree = Tree(root, root / "warehouse", root / f"outside{seed}")
    tree.warehouse.mkdir(exist_ok=True)
    tree.build()
    with connected(port) as client:
        attacker = Attacker(client, tree, seed)

        def check(what: str) -> None:
            damage = tree.damage()
            assert not damage, "\n".join([f"seed {seed}, after {what}:", *damage, "calls:", *attacker.log])

        attacker.attack(CALLS, check)
        assert client.get_table(VICTIM, "t1").sd.location.endswith(f"{VICTIM}.db/t1")
    for link in ("link", "up", "loop"):
        (tree.warehouse / link).unlink(missing_ok=True)
    return attacker


@pytest.mark.soak
def test_what_is_not_the_clients_own_stays(port_and_root: tuple[int, Path]) -> None:
    attackers = [attacked(*port_and_root, seed) for seed in range(12)]
    done = sum(attacker.answered for attacker in attackers)
    assert done > 12 * CALLS / 5, "most calls are refused: the attack is none"


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_what_is_not_the_clients_own_stays_in_ten_times_as_many(port_and_root: tuple[int, Path]) -> None:
    for seed in range(100, 220):
        attacked(*port_and_root, seed)
