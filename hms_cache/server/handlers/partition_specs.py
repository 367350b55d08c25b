"""Partition specs: partitions grouped under shared storage descriptors, and back (Hive's PartitionSpec answers)."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np

from hms_cache.cache.partitions.block_specs import kinds_below, without_descriptor, without_descriptors
from hms_cache.cache.partitions.selected_partitions import EncodedPartitions, SelectedPartitions
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.tjson import write_struct
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    MetaException,
    Partition,
    PartitionListComposingSpec,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    PartitionWithoutSD,
    StorageDescriptor,
    Table,
)

GROUPING_PARAMETER = "hive.hcatalog.partition.spec.grouping.enabled"
"""The table parameter that requests shared descriptors where a client could also get a plain list."""


def listed_or_grouped(table: Table, partitions: list[Partition], sent: TableName | None = None) -> list[PartitionSpec]:
    """One spec that lists the partitions, even if there are none; grouped ones if the table's parameters ask for them.

    `sent`: the name of the table in that one spec, if it is not the stored one. Source: HMSHandler.get_partitions_pspec
    and get_part_specs_by_filter, 4.0.1.
    """
    if (table.parameters or {}).get(GROUPING_PARAMETER, "").lower() == "true":
        return group_partitions(table, partitions)
    root = (table.sd.location if table.sd is not None else None) or ""
    listing = _listing_specification(table, root, partitions)
    if sent is not None:
        listing.catName, listing.dbName, listing.tableName = sent
    return [listing]


def group_partitions(table: Table, partitions: Iterable[Partition]) -> list[PartitionSpec]:
    """Partitions below the table's directory share one descriptor for each kind; the others are listed whole.

    Source: Hive's grouping by storage descriptor (MetaStoreServerUtils, 3.1 and 4.0). Shared descriptors come first, in
    the order of their first partition.
    """
    root = (table.sd.location if table.sd is not None else None) or ""
    if isinstance(partitions, EncodedPartitions) and partitions.is_encoded:
        return _group_encoded(table, root, partitions.selected)
    shared: dict[Any, PartitionSpec] = {}
    elsewhere: list[Partition] = []
    for partition in partitions:
        descriptor = partition.sd
        if descriptor is None or _is_below(root, descriptor):
            key = _descriptor_key(descriptor)
            specification = shared.get(key)
            if specification is None:
                specification = shared[key] = _shared_specification(table, root, partition, [])
            assert specification.sharedSDPartitionSpec is not None
            specification.sharedSDPartitionSpec.partitions.append(without_descriptor(partition, root))
        else:
            elsewhere.append(partition)
    specifications = list(shared.values())
    if elsewhere:
        specifications.append(_listing_specification(table, root, elsewhere))
    return specifications


def _group_encoded(table: Table, root: str, selected: SelectedPartitions) -> list[PartitionSpec]:
    """The same for encoded partitions: one of each kind is examined."""
    kinds = kinds_below(selected, root)
    numbers, firsts = np.unique(kinds, return_index=True)
    grouped: dict[Any, list[int]] = {}
    models: dict[Any, Partition] = {}
    elsewhere: list[int] = []
    for at in np.argsort(firsts).tolist():
        model = selected.subset(firsts[at : at + 1]).structs()[0]
        if model.sd is not None and not _is_below(root, model.sd):
            elsewhere.append(int(numbers[at]))
            continue
        key = _descriptor_key(model.sd)
        models.setdefault(key, model)
        grouped.setdefault(key, []).append(int(numbers[at]))
    specifications = [
        _shared_specification(table, root, models[key], without_descriptors(_of_kinds(selected, kinds, chosen), root))
        for key, chosen in grouped.items()
    ]
    if elsewhere:
        listed = _of_kinds(selected, kinds, elsewhere).encoded_structs()
        specifications.append(_listing_specification(table, root, listed))
    return specifications


def _of_kinds(selected: SelectedPartitions, kinds: Any, chosen: list[int]) -> SelectedPartitions:
    return selected.subset(np.flatnonzero(np.isin(kinds, chosen)))


def _is_below(root: str, descriptor: StorageDescriptor) -> bool:
    location = descriptor.location
    return location is None or bool(root and location.startswith(root))


def _shared_specification(
    table: Table, root: str, first: Partition, partitions: list[PartitionWithoutSD]
) -> PartitionSpec:
    """Without a root if the descriptors have no location, or if there are none, because projections leave them out."""
    common = StorageDescriptor() if first.sd is None else copy.copy(first.sd)
    root = root if common.location is not None else ""
    common.location = root or None  # type: ignore[assignment]  # left out of the message
    return PartitionSpec(
        catName=table.catName,
        dbName=table.dbName,
        tableName=table.tableName,
        rootPath=root or None,
        sharedSDPartitionSpec=PartitionSpecWithSharedSD(partitions=partitions, sd=common),
        isStatsCompliant=first.isStatsCompliant,
    )


def _listing_specification(table: Table, root: str, partitions: list[Partition]) -> PartitionSpec:
    return PartitionSpec(
        catName=table.catName,
        dbName=table.dbName,
        tableName=table.tableName,
        rootPath=root or None,
        partitionList=PartitionListComposingSpec(partitions=partitions),
    )


def _descriptor_key(descriptor: StorageDescriptor | None) -> Any:
    if descriptor is None:
        return None
    serde = descriptor.serdeInfo
    return (
        descriptor.location is None,
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


_MAX_SHARED_CHARACTERS = 100 * 1024 * 1024
"""The path and the descriptor that partitions share, except the columns, are written for each partition: in all, as
much as a request may contain in which they share nothing."""


def _shared_characters(root: str, descriptor: StorageDescriptor, partitions: int) -> int:
    """Bytes that are written for these partitions for what they share, except the columns."""
    own = copy.copy(descriptor)
    own.cols, own.location = [], ""
    return (len(root) + len(write_struct(own))) * partitions if partitions > 1 else 0


def expand_specs(specifications: Iterable[PartitionSpec]) -> list[Partition]:
    """The partitions that specs describe, which refer to what they have in common.

    Raises MetaException for a spec without either form, or without a descriptor, and for one that would become too
    large.
    """
    partitions: list[Partition] = []
    shared_characters = 0
    for specification in specifications:
        if specification.partitionList is not None:
            # If a spec has both forms, Hive uses the list.
            partitions.extend(specification.partitionList.partitions or ())
        elif specification.sharedSDPartitionSpec is not None:
            if specification.sharedSDPartitionSpec.sd is None:
                raise MetaException("The shared storage descriptor of the partitions cannot be null.")
            root = specification.rootPath or specification.sharedSDPartitionSpec.sd.location or ""
            shared, shorts = specification.sharedSDPartitionSpec.sd, specification.sharedSDPartitionSpec.partitions
            shared_characters += _shared_characters(root, shared, len(shorts or ()))
            if shared_characters > _MAX_SHARED_CHARACTERS:
                raise MetaException(
                    f"A path and storage descriptor of {len(root) + len(write_struct(shared))} characters, columns"
                    f" included, are too long for {len(shorts or ())} partitions: send fewer at a time"
                )
            for short in shorts or ():
                descriptor = copy.copy(shared)
                # A missing path is written as the text `null`, as in Java: Hive's client tests look for such a
                # directory.
                path = "null" if short.relativePath is None else short.relativePath
                descriptor.location = f"{root}{path}" if root or short.relativePath is not None else None
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
        else:
            raise MetaException("PartitionSpec has neither a partition list nor a shared storage descriptor")
    return partitions
