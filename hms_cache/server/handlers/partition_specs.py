"""Partition specs: partitions grouped under shared storage descriptors, and back (Hive's PartitionSpec answers)."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    MetaException,
    Partition,
    PartitionListComposingSpec,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    PartitionWithoutSD,
    Table,
)


def group_partitions(table: Table, partitions: Iterable[Partition]) -> list[PartitionSpec]:
    """Partitions below the table's directory share a descriptor per kind, the others are listed whole.

    Source: Hive's grouping by storage descriptor (MetaStoreServerUtils, 3.1 and 4.0). Shared descriptors come first,
    in the order of their first partition.
    """
    root = (table.sd.location if table.sd is not None else None) or ""
    shared: dict[Any, PartitionSpec] = {}
    elsewhere: list[Partition] = []
    for partition in partitions:
        descriptor = partition.sd
        location = descriptor.location if descriptor is not None else None
        if descriptor is not None and (location is None or (root and location.startswith(root))):
            key = _descriptor_key(descriptor)
            specification = shared.get(key)
            if specification is None:
                common = copy.copy(descriptor)
                common.location = root or None
                specification = shared[key] = PartitionSpec(
                    catName=table.catName,
                    dbName=table.dbName,
                    tableName=table.tableName,
                    rootPath=root or None,
                    sharedSDPartitionSpec=PartitionSpecWithSharedSD(partitions=[], sd=common),
                    isStatsCompliant=partition.isStatsCompliant,
                    writeId=table.writeId,
                )
            specification.sharedSDPartitionSpec.partitions.append(
                PartitionWithoutSD(
                    values=partition.values,
                    createTime=partition.createTime,
                    lastAccessTime=partition.lastAccessTime,
                    relativePath=location[len(root) :] if location is not None else None,
                    parameters=partition.parameters,
                    privileges=partition.privileges,
                )
            )
        else:
            elsewhere.append(partition)
    specifications = list(shared.values())
    if elsewhere:
        specifications.append(
            PartitionSpec(
                catName=table.catName,
                dbName=table.dbName,
                tableName=table.tableName,
                rootPath=root or None,
                partitionList=PartitionListComposingSpec(partitions=elsewhere),
                writeId=table.writeId,
            )
        )
    return specifications


def _descriptor_key(descriptor: Any) -> Any:
    serde = descriptor.serdeInfo
    return (
        tuple((c.name, c.type, c.comment) for c in descriptor.cols or ()),
        descriptor.inputFormat,
        descriptor.outputFormat,
        descriptor.compressed,
        descriptor.numBuckets,
        tuple(descriptor.bucketCols or ()),
        tuple((c.col, c.order) for c in descriptor.sortCols or ()),
        tuple(sorted((descriptor.parameters or {}).items())),
        descriptor.storedAsSubDirectories,
        repr(descriptor.skewedInfo),
        (serde.name, serde.serializationLib, tuple(sorted((serde.parameters or {}).items()))) if serde else None,
    )


def expand_specs(specifications: Iterable[PartitionSpec]) -> list[Partition]:
    """The partitions that specs describe. Raises MetaException for a spec that holds neither form."""
    partitions: list[Partition] = []
    for specification in specifications:
        if specification.sharedSDPartitionSpec is not None:
            root = specification.rootPath or specification.sharedSDPartitionSpec.sd.location or ""
            for short in specification.sharedSDPartitionSpec.partitions or ():
                descriptor = copy.deepcopy(specification.sharedSDPartitionSpec.sd)
                descriptor.location = f"{root}{short.relativePath}" if short.relativePath is not None else None
                partitions.append(
                    Partition(
                        values=short.values,
                        dbName=specification.dbName,
                        tableName=specification.tableName,
                        catName=specification.catName,
                        createTime=short.createTime,
                        lastAccessTime=short.lastAccessTime,
                        sd=descriptor,
                        parameters=short.parameters,
                        privileges=short.privileges,
                    )
                )
        elif specification.partitionList is not None:
            partitions.extend(specification.partitionList.partitions or ())
        else:
            raise MetaException("PartitionSpec has neither a partition list nor a shared storage descriptor")
    return partitions
