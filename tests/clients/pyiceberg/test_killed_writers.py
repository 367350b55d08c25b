"""A PyIceberg process that is killed between `lock` and `unlock`: its lock times out, and others commit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.conftest import ServerStarter
from tests.clients.pyiceberg.test_catalog import SCHEMA, catalog, ids_in, rows

pytestmark = pytest.mark.soak

SETTINGS = {"transactions.timeout_s": 3, "transactions.housekeeping_interval_s": 0.5}

_DIES = """
import sys
from pyiceberg.catalog.hive import HiveCatalog
catalog = HiveCatalog("ours", uri=sys.argv[1])
table = catalog.load_table("shop.orders")
def stop(*_, **__):
    print("locked", flush=True)
    sys.stdin.read()
catalog._get_hive_table = stop
with table.transaction() as transaction:
    transaction.set_properties(killed="yes")
"""


def test_the_lock_of_a_killed_writer_is_released_after_the_time_out(
    start_server: ServerStarter, tmp_path: Path
) -> None:
    server = start_server("sqlite", **SETTINGS)
    ours = catalog(server, tmp_path / "warehouse", **{"lock-check-retries": "50", "lock-check-max-wait-time": "1"})
    ours.create_namespace("shop")
    ours.create_table("shop.orders", SCHEMA)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _DIES, server.uri], stdin=pipe, stdout=pipe, text=True) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "locked\n"
        writer.kill()
    table = ours.load_table("shop.orders")
    table.append(rows(1, 2))
    assert ids_in(ours.load_table("shop.orders")) == [1, 2]
    assert "killed" not in ours.load_table("shop.orders").properties
