"""The operations of PyIceberg's HiveCatalog."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow
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

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "country", StringType()))
BY_COUNTRY = PartitionSpec(PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="country"))


def run(uri: str, root: Path, directory: Path) -> None:
    """Two catalogs on one metastore, a namespace, tables and their changes, refusals among them."""
    ours, other = (HiveCatalog("ours", uri=uri, warehouse=f"file://{root}/wh") for _ in range(2))
    ours.create_namespace("shop", {"comment": "all orders", "team": "data"})
    with suppress(NamespaceAlreadyExistsError):
        ours.create_namespace("shop")
    other.list_namespaces()
    ours.update_namespace_properties("shop", removals={"team"}, updates={"region": "eu"})
    other.load_namespace_properties("shop")
    with suppress(NoSuchNamespaceError):
        ours.load_namespace_properties("nope")
    table = ours.create_table("shop.orders", SCHEMA, partition_spec=BY_COUNTRY, properties={"owner": "me"})
    with suppress(TableAlreadyExistsError):
        other.create_table("shop.orders", SCHEMA)
    table.append(_rows(1, 2, 3))
    old = other.load_table("shop.orders")
    table.append(_rows(4))
    with suppress(CommitFailedException):
        old.append(_rows(5))
    table.refresh().overwrite(_rows(7, 8), overwrite_filter="country = 'nl'")
    table.delete("id = 8")
    table.upsert(_rows(7, 9), join_cols=["id"])
    with table.update_schema() as update:
        update.add_column("note", StringType(), "what else is to be said")
        update.rename_column("country", "land")
    with table.transaction() as change:
        change.set_properties(colour="red")
        change.remove_properties("owner")
    other.load_table("shop.orders").scan().to_arrow()
    table.manage_snapshots().create_tag(table.metadata.snapshots[0].snapshot_id, "first").commit()
    with ours.create_table_transaction("shop.made", SCHEMA) as change:
        change.append(_rows(1, 2))
    ours.rename_table("shop.orders", "shop.sales")
    for name in ("shop.orders", "shop.sales"):
        other.table_exists(name)
    with suppress(NoSuchTableError):
        other.load_table("shop.orders")
    with suppress(NoSuchNamespaceError):
        ours.rename_table("shop.sales", "nope.sales")
    location = other.load_table("shop.sales").metadata_location
    other.list_tables("shop")
    ours.drop_table("shop.sales")
    with suppress(NoSuchTableError):
        ours.drop_table("shop.sales")
    ours.register_table("shop.again", location)
    with suppress(TableAlreadyExistsError):
        ours.register_table("shop.again", location)
    with suppress(NamespaceNotEmptyError):
        other.drop_namespace("shop")
    for name in ("shop.again", "shop.made"):
        ours.drop_table(name)
    ours.drop_namespace("shop")
    with suppress(NoSuchNamespaceError):
        ours.drop_namespace("shop")


def _rows(*ids: int) -> pyarrow.Table:
    return pyarrow.table({"id": list(ids), "country": ["nl" if number % 2 else "de" for number in ids]})
