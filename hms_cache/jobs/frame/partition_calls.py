"""Adds and drops partitions of one table; each call is atomic."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from hms_cache.client import MetastoreClient
from hms_cache.jobs.frame.own_partitions import refusal
from hms_cache.jobs.sources.metastore_reader import CAPABILITIES
from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.partition_name_codec import unescape_path_name
from hms_cache.metadata.partition_names import values_of_name
from hms_cache.store.warehouse.locations import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddPartitionsRequest,
    DropPartitionsRequest,
    GetTableRequest,
    NoSuchObjectException,
    Partition,
    RequestPartsSpec,
    Table,
)


def table_now(client: MetastoreClient, name: TableName) -> Table | None:
    """Reads the table again. None if it was dropped, or is now one whose partitions jobs must not change. Raises
    TException."""
    request = GetTableRequest(dbName=name.database, tblName=name.table, capabilities=CAPABILITIES, catName=name.catalog)
    try:
        table: Table = client.call("get_table_req", request).table
    except NoSuchObjectException:
        return None
    has_location = table.sd is not None and bool(table.sd.location)
    return table if table.partitionKeys and has_location and refusal(table) is None else None


def root_of(table: Table) -> Location:
    """The table's directory. Raises MetaException."""
    return Location.parse(table.sd.location, Location("file", "", "/"))


def is_named_by(table: Table, name: str, location: str) -> bool:
    """Whether a directory found earlier is still that of a partition with this name. The table may have been replaced
    or moved, or may have other keys. Raises MetaException."""
    keys = [key.name.lower() for key in table.partitionKeys]
    named = [unescape_path_name(part.partition("=")[0]) for part in name.split("/")]
    place, root = Location.parse(location), root_of(table)
    depth = place.path.count("/") - root.path.rstrip("/").count("/")
    return named == keys and place.is_inside(root) and depth == len(keys)


def new_partition(table: Table, name: str, location: str) -> Partition:
    """A partition at this directory, in the table's own format."""
    descriptor = copy.deepcopy(table.sd)
    descriptor.location = location
    return Partition(
        catName=table.catName,
        values=values_of_name(name),
        dbName=table.dbName,
        tableName=table.tableName,
        sd=descriptor,
        parameters={},
    )


def add_partitions(client: MetastoreClient, table: Table, partitions: Sequence[Partition]) -> int:
    """Returns the number of partitions this call added: others may add some at the same time. Raises TException."""
    request = AddPartitionsRequest(
        dbName=table.dbName,
        tblName=table.tableName,
        parts=list(partitions),
        ifNotExists=True,
        needResult=True,
        catName=table.catName,
    )
    return len(client.call("add_partitions_req", request).partitions or ())


def drop_partitions(client: MetastoreClient, table: Table, names: Sequence[str], *, deletes_data: bool) -> int:
    """Returns the number of partitions this call dropped: others may drop some at the same time. Raises TException."""
    request = DropPartitionsRequest(
        dbName=table.dbName,
        tblName=table.tableName,
        parts=RequestPartsSpec(names=list(names)),
        deleteData=deletes_data,
        ifExists=True,
        needResult=True,
        catName=table.catName,
    )
    return len(client.call("drop_partitions_req", request).partitions or ())
