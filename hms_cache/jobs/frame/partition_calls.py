"""Partitions of one table added and dropped, each time all or none of them in one call of a metastore."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from hms_cache.client import MetastoreClient
from hms_cache.metadata.partition_names import values_of_name
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddPartitionsRequest,
    DropPartitionsRequest,
    Partition,
    RequestPartsSpec,
    Table,
)


def new_partition(table: Table, name: str, location: str) -> Partition:
    """One of the table's own format at this directory."""
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
    """How many this call added: others may do so at the same time. Raises TException."""
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
    """How many this call dropped: others may do so at the same time. Raises TException."""
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
