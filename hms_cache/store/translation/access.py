"""What a client may do with a table, and which bucketing it sees.

Hive's transformer modifies its input lists while it processes several tables, so that a client's access to one depends
on those before it; here each table is processed independently.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import NamedTuple

from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.store.translation.capabilities import (
    ACCEPTS_UNMODIFIED_METADATA,
    BUCKETS_VERSION_2,
    CONNECTOR_READ,
    CONNECTOR_WRITE,
    EXTERNAL_READ,
    EXTERNAL_WRITE,
    FULL_ACID_READ,
    FULL_ACID_WRITE,
    FULL_ACID_WRITES,
    INSERT_ONLY_READ,
    INSERT_ONLY_WRITE,
    INSERT_ONLY_WRITES,
    MATERIALIZED_VIEWS,
    RAW_METADATA,
    SQL,
    TABLE_CAPABILITIES_PARAMETER,
    missing,
    reads,
    writes,
)
from hms_cache.thrift_gen.hive_metastore.constants import ACCESSTYPE_NONE, ACCESSTYPE_READONLY, ACCESSTYPE_READWRITE
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition, StorageDescriptor, Table


class Access(NamedTuple):
    """A client's access, and the capabilities that it lacks for more."""

    access_type: int | None
    required_reads: list[str] | None = None
    required_writes: list[str] | None = None
    hides_buckets: bool = False


def translate_table(table: Table, capabilities: Collection[str]) -> Table:
    """A copy with access type and required capabilities, and without buckets for clients that would misuse them.

    Tables of other catalogs than the default one are not changed.
    """
    if (table.catName or DEFAULT_CATALOG).lower() != DEFAULT_CATALOG:
        return table
    listed = (table.parameters or {}).get(TABLE_CAPABILITIES_PARAMETER)
    if listed is None:
        access = _access_by_type(table, capabilities)
    else:
        access = _access_by_list(table, "".join(listed.split()).upper().split(","), capabilities)
    changed = copy.copy(table)
    if access.access_type is not None:
        changed.accessType = access.access_type
    if access.required_reads is not None:
        changed.requiredReadCapabilities = access.required_reads
    if access.required_writes is not None:
        changed.requiredWriteCapabilities = access.required_writes
    if access.hides_buckets and table.sd is not None and ACCEPTS_UNMODIFIED_METADATA not in capabilities:
        changed.sd = _without_buckets(table.sd)
    return changed


def translate_partitions(partitions: list[Partition], table: Table, capabilities: Collection[str]) -> list[Partition]:
    """The partitions, without buckets for clients that would misuse them."""
    if (
        (table.catName or DEFAULT_CATALOG).lower() != DEFAULT_CATALOG
        or BUCKETS_VERSION_2 in capabilities
        or ACCEPTS_UNMODIFIED_METADATA in capabilities
        or RAW_METADATA[1] in capabilities
    ):
        return partitions
    listed = (table.parameters or {}).get(TABLE_CAPABILITIES_PARAMETER)
    if table.tableType == "MANAGED_TABLE":
        if str((table.parameters or {}).get("transactional", "false")).lower() != "false":
            return partitions
    elif table.tableType != "EXTERNAL_TABLE":
        return partitions
    if listed is not None and not missing("".join(listed.split()).upper().split(","), capabilities):
        return partitions
    return [_partition_without_buckets(each) for each in partitions]


def _partition_without_buckets(partition: Partition) -> Partition:
    if partition.sd is None or (partition.sd.numBuckets or 0) <= 0:
        return partition
    changed = copy.copy(partition)
    changed.sd = _without_buckets(partition.sd)
    return changed


def _without_buckets(descriptor: StorageDescriptor) -> StorageDescriptor:
    changed = copy.copy(descriptor)
    changed.numBuckets = -1
    return changed


def _is_bucketed(table: Table) -> bool:
    return table.sd is not None and (table.sd.numBuckets or 0) > 0


def _is_insert_only(table: Table) -> bool:
    return str((table.parameters or {}).get("transactional_properties")).lower() == "insert_only"


def _access_by_type(table: Table, has: Collection[str]) -> Access:
    if table.tableType == "EXTERNAL_TABLE":
        return _external(table, has)
    if table.tableType == "MANAGED_TABLE":
        return _managed(table, has)
    if table.tableType == "VIRTUAL_VIEW":
        if SQL in has or CONNECTOR_READ in has:
            return Access(ACCESSTYPE_READONLY)
        return Access(ACCESSTYPE_NONE, [SQL, CONNECTOR_READ])
    if table.tableType == "MATERIALIZED_VIEW":
        if (CONNECTOR_READ in has or FULL_ACID_READ in has) and MATERIALIZED_VIEWS in has:
            return Access(ACCESSTYPE_READONLY)
        return Access(ACCESSTYPE_NONE, [CONNECTOR_READ, MATERIALIZED_VIEWS])
    return Access(ACCESSTYPE_NONE)


def _external(table: Table, has: Collection[str]) -> Access:
    if _is_bucketed(table):
        if BUCKETS_VERSION_2 in has:
            return Access(ACCESSTYPE_READWRITE)
        return Access(ACCESSTYPE_READONLY, None, [BUCKETS_VERSION_2], hides_buckets=True)
    if EXTERNAL_READ not in has:
        return Access(ACCESSTYPE_NONE, [EXTERNAL_READ], [EXTERNAL_WRITE])
    if EXTERNAL_WRITE not in has:
        return Access(ACCESSTYPE_READONLY, None, [EXTERNAL_WRITE])
    return Access(ACCESSTYPE_READWRITE)


def _managed(table: Table, has: Collection[str]) -> Access:
    transactional = (table.parameters or {}).get("transactional")
    if transactional is None or transactional.lower() == "false":
        return Access(ACCESSTYPE_READWRITE)
    if transactional.lower() != "true":
        return Access(None)
    if _is_insert_only(table):
        write, read, all_writes = INSERT_ONLY_WRITE, INSERT_ONLY_READ, INSERT_ONLY_WRITES
    else:
        write, read, all_writes = FULL_ACID_WRITE, FULL_ACID_READ, FULL_ACID_WRITES
    if write in has or CONNECTOR_WRITE in has:
        return Access(ACCESSTYPE_READWRITE)
    if read in has or CONNECTOR_READ in has:
        return Access(ACCESSTYPE_READONLY, None, list(all_writes))
    return Access(ACCESSTYPE_NONE, [CONNECTOR_READ, read], list(all_writes))


def _access_by_list(table: Table, required: list[str], has: Collection[str]) -> Access:
    """The access to a table that lists the capabilities it requires."""
    has_all = not missing(required, has)
    if table.tableType == "EXTERNAL_TABLE":
        return Access(ACCESSTYPE_READWRITE) if has_all else _listed_external(table, required, has)
    if table.tableType == "MANAGED_TABLE":
        return Access(ACCESSTYPE_READWRITE) if has_all else _listed_managed(table, required, has)
    if table.tableType in ("VIRTUAL_VIEW", "MATERIALIZED_VIEW"):
        if has_all:
            return Access(ACCESSTYPE_READONLY)
        return Access(ACCESSTYPE_NONE, missing(reads(required), reads(has)))
    return Access(ACCESSTYPE_NONE, reads(required), writes(required))


def _listed_external(table: Table, required: list[str], has: Collection[str]) -> Access:
    hides_buckets = BUCKETS_VERSION_2 in required and BUCKETS_VERSION_2 not in has
    required_writes = [BUCKETS_VERSION_2] if hides_buckets else []
    if EXTERNAL_WRITE in required and EXTERNAL_WRITE in has and not _is_bucketed(table):
        return Access(ACCESSTYPE_READWRITE, hides_buckets=hides_buckets)
    if EXTERNAL_READ in required and EXTERNAL_READ in has:
        required_writes.append(EXTERNAL_WRITE)
        return Access(ACCESSTYPE_READONLY, None, required_writes, hides_buckets)
    required_writes += writes(required)
    return Access(ACCESSTYPE_NONE, [EXTERNAL_READ], required_writes, hides_buckets)


def _listed_managed(table: Table, required: list[str], has: Collection[str]) -> Access:
    transactional = (table.parameters or {}).get("transactional")
    if transactional is None or transactional.lower() == "false":
        lacking = missing(required, has)
        return Access(ACCESSTYPE_READONLY, None, writes(lacking))
    if transactional.lower() != "true":
        return Access(None)
    lacking_writes = missing(writes(required), writes(has))
    is_insert_only = _is_insert_only(table)
    if FULL_ACID_WRITE in has or CONNECTOR_WRITE in has or not missing(writes(required), has):
        return Access(ACCESSTYPE_READWRITE)
    may_read = FULL_ACID_READ in has
    if is_insert_only:
        may_read = INSERT_ONLY_READ in has or not missing(reads(required), has)
    if may_read or CONNECTOR_READ in has:
        return Access(ACCESSTYPE_READONLY, None, lacking_writes)
    return Access(ACCESSTYPE_NONE, missing(reads(required), reads(has)), lacking_writes)
