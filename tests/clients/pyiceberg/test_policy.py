"""PyIceberg's HiveCatalog with a policy: what a writer, a reader and a stranger can do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest
from hive_metastore.ttypes import MetaException
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from tests.servers import ServerProcess, server_process

POLICY = """
[[grants]]
users = ["etl"]
actions = ["create", "alter", "drop", "write"]
databases = ["shop"]

[[grants]]
users = ["ann"]
actions = ["read"]
databases = ["shop"]
tables = ["orders"]
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    settings: dict[str, object] = {
        "authorization.provider": "policy",
        "authorization.policy_file": str(policy),
        "security.accept_insecure": True,
    }
    with server_process(tmp_path, f"sqlite:///{tmp_path / 'hms.db'}", settings) as running:
        yield running


def of(server: ServerProcess, warehouse: Path, user: str) -> HiveCatalog:
    return HiveCatalog(user, uri=server.uri, warehouse=f"file://{warehouse}", ugi=f"{user}:everyone")


def test_what_each_can_do(server: ServerProcess, tmp_path: Path) -> None:
    etl, ann, eve = (of(server, tmp_path / "warehouse", user) for user in ("etl", "ann", "eve"))
    etl.create_namespace("shop")
    rows = pyarrow.table({"id": [1, 2]})
    for name in ("orders", "salaries"):
        table = etl.create_table(f"shop.{name}", Schema(NestedField(1, "id", LongType())))
        table.append(rows)
    assert etl.list_tables("shop") == [("shop", "orders"), ("shop", "salaries")]

    assert ann.list_namespaces() == [("default",), ("shop",)]
    assert ann.list_tables("shop") == [("shop", "orders")]
    orders = ann.load_table("shop.orders")
    assert orders.scan().to_arrow()["id"].to_pylist() == [1, 2]
    for name in ("salaries", "absent"):
        assert not ann.table_exists(f"shop.{name}")
        with pytest.raises(NoSuchTableError):
            ann.load_table(f"shop.{name}")
    with pytest.raises(Exception, match="Permission denied: user ann"):
        orders.append(rows)
    with pytest.raises(MetaException, match="Permission denied: user ann may not drop"):
        ann.drop_table("shop.orders")
    with pytest.raises(MetaException, match="Permission denied: user ann may not create"):
        ann.create_namespace("other")
    assert etl.load_table("shop.orders").scan().to_arrow()["id"].to_pylist() == [1, 2]

    with pytest.raises(MetaException, match="Permission denied"):
        eve.list_namespaces()
    with pytest.raises((NoSuchNamespaceError, NoSuchTableError)):
        eve.load_table("shop.orders")

    etl.rename_table("shop.salaries", "shop.wages")
    etl.drop_table("shop.wages")
    assert etl.list_tables("shop") == [("shop", "orders")]
