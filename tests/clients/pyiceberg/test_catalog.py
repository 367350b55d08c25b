"""PyIceberg's HiveCatalog: namespaces and tables from their creation to their end."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from tests.clients.conftest import ServerStarter
from tests.servers import ServerProcess, metastore_client

DATABASES = ["sqlite", pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.soak])]

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "country", StringType()))
BY_COUNTRY = PartitionSpec(PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="country"))


def catalog(server: ServerProcess, warehouse: Path, **properties: str) -> HiveCatalog:
    return HiveCatalog("ours", uri=server.uri, warehouse=f"file://{warehouse}", **properties)


def rows(*ids: int) -> pyarrow.Table:
    return pyarrow.table({"id": list(ids), "country": ["nl" if number % 2 else "de" for number in ids]})


def ids_in(table: Any, **scan: str) -> list[int]:
    found: list[int] = table.scan(**scan).to_arrow()["id"].to_pylist()
    return sorted(found)


@pytest.mark.parametrize("kind", DATABASES)
def test_namespaces(start_server: ServerStarter, tmp_path: Path, kind: str) -> None:
    ours = catalog(start_server(kind), tmp_path / "warehouse")
    ours.create_namespace("shop", {"comment": "all orders", "team": "data"})
    with pytest.raises(NamespaceAlreadyExistsError):
        ours.create_namespace("shop")
    ours.create_namespace_if_not_exists("shop")
    assert ours.list_namespaces() == [("default",), ("shop",)]
    assert ours.namespace_exists("shop") and not ours.namespace_exists("nope")
    ours.update_namespace_properties("shop", removals={"team"}, updates={"region": "eu"})
    properties = ours.load_namespace_properties("shop")
    assert properties["comment"] == "all orders"
    assert properties["region"] == "eu"
    assert "team" not in properties
    with pytest.raises(NoSuchNamespaceError):
        ours.load_namespace_properties("nope")
    ours.create_table("shop.orders", SCHEMA)
    with pytest.raises(NamespaceNotEmptyError):
        ours.drop_namespace("shop")
    ours.drop_table("shop.orders")
    ours.drop_namespace("shop")
    with pytest.raises(NoSuchNamespaceError):
        ours.drop_namespace("shop")
    assert ours.list_namespaces() == [("default",)]


@pytest.mark.parametrize("kind", DATABASES)
def test_a_tables_life(start_server: ServerStarter, tmp_path: Path, kind: str) -> None:
    server = start_server(kind)
    ours, other = (catalog(server, tmp_path / "warehouse") for _ in range(2))
    ours.create_namespace("shop")
    table = ours.create_table("shop.orders", SCHEMA, partition_spec=BY_COUNTRY, properties={"owner": "me"})
    with pytest.raises(TableAlreadyExistsError):
        ours.create_table("shop.orders", SCHEMA)
    table.append(rows(1, 2, 3))
    table.append(rows(4))
    assert ids_in(other.load_table("shop.orders")) == [1, 2, 3, 4]
    assert ids_in(other.load_table("shop.orders"), row_filter="country = 'nl'") == [1, 3]
    table.overwrite(rows(7, 8), overwrite_filter="country = 'nl'")
    table.delete("id = 8")
    assert ids_in(other.load_table("shop.orders")) == [2, 4, 7]

    with table.update_schema() as update:
        update.add_column("note", StringType(), "what else is to be said")
        update.rename_column("country", "land")
    with table.transaction() as change:
        change.set_properties(colour="red")
        change.remove_properties("owner")
    loaded = other.load_table("shop.orders")
    assert [field.name for field in loaded.schema().fields] == ["id", "land", "note"]
    assert loaded.properties["colour"] == "red" and "owner" not in loaded.properties

    ours.rename_table("shop.orders", "shop.sales")
    assert not other.table_exists("shop.orders") and other.table_exists("shop.sales")
    with pytest.raises(NoSuchTableError):
        other.load_table("shop.orders")
    assert ids_in(other.load_table("shop.sales")) == [2, 4, 7]
    ours.create_table("shop.more", SCHEMA)
    with pytest.raises(NoSuchNamespaceError):
        ours.rename_table("shop.sales", "nope.sales")
    assert sorted(other.list_tables("shop")) == [("shop", "more"), ("shop", "sales")]

    location = other.load_table("shop.sales").metadata_location
    ours.drop_table("shop.sales")
    with pytest.raises(NoSuchTableError):
        ours.drop_table("shop.sales")
    assert other.list_tables("shop") == [("shop", "more")]
    assert ids_in(ours.register_table("shop.again", location)) == [2, 4, 7]  # its files belonged to Iceberg
    with pytest.raises(TableAlreadyExistsError):
        ours.register_table("shop.again", location)


@pytest.mark.parametrize("kind", DATABASES)
def test_created_in_a_transaction(start_server: ServerStarter, tmp_path: Path, kind: str) -> None:
    ours = catalog(start_server(kind), tmp_path / "warehouse")
    ours.create_namespace("shop")
    with ours.create_table_transaction("shop.orders", SCHEMA) as change:
        change.append(rows(1, 2))
        assert not ours.table_exists("shop.orders")
    assert ids_in(ours.load_table("shop.orders")) == [1, 2]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("rounds", [8, pytest.param(200, marks=[pytest.mark.soak, pytest.mark.long])])
@pytest.mark.parametrize("kind", DATABASES)
def test_of_two_writers_one_wins_each_round(
    start_server: ServerStarter, tmp_path: Path, kind: str, rounds: int
) -> None:
    """Both start from the same version; PyIceberg takes the metastore's lock around each commit."""
    server = start_server(kind)
    quickly = {"lock-check-min-wait-time": "0.01", "lock-check-max-wait-time": "0.05", "lock-check-retries": "500"}
    writers = [catalog(server, tmp_path / "warehouse", **quickly) for _ in range(2)]
    writers[0].create_namespace("shop")
    writers[0].create_table("shop.orders", SCHEMA, properties={"commit.retry.num-retries": "0"})
    together = threading.Barrier(2, timeout=120)

    def write(number: int) -> list[int]:
        """The ids of this writer's acknowledged appends."""
        written = []
        for round_number in range(rounds):
            together.wait()
            table = writers[number].load_table("shop.orders")
            together.wait()
            identifier = 2 * round_number + number
            try:
                table.append(rows(identifier))
            except CommitFailedException:
                continue
            written.append(identifier)
        return written

    with ThreadPoolExecutor(2) as pool:
        written = sorted(chain.from_iterable(pool.map(write, range(2))))
    assert [identifier // 2 for identifier in written] == list(range(rounds)), "one winner a round"
    table = writers[0].load_table("shop.orders")
    assert ids_in(table) == written
    assert len(table.metadata.snapshots) == rounds
    with metastore_client(server.port) as client:
        from hmsclient.genthrift.hive_metastore.ttypes import ShowLocksRequest

        assert client.show_locks(ShowLocksRequest()).locks == []
