"""Encodes rows of partitions for clients without creating structs.

Most of a partition's encoding describes its storage, which it shares with thousands of others. That part is encoded
once per template; values, times, location and parameters are encoded per row.
"""

from __future__ import annotations

from typing import Final

from hms_cache.store.partitions.reads import PartitionRows, partition_of_row
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition
from hms_cache.wire.encoded_lists import EncodedList
from hms_cache.wire.partition_parts import encode_beginning, encode_descriptor, encode_parameters, encode_partition

_LENGTH_BYTES: Final = 4


def encoded_partitions(rows: PartitionRows) -> EncodedList[Partition]:
    """The partitions of the rows, in their order, as a list that is already encoded.

    If its elements are accessed, the list equals the result of `partitions_of_rows`. Raises MetaException if a name
    does not have the table's number of keys.
    """
    values = [rows.values(row) for row in range(len(rows))]

    def structs() -> list[Partition]:
        return [partition_of_row(rows, row, own) for row, own in enumerate(values)]

    return EncodedList(len(rows), structs, lambda: _encode(rows, values))


def _encode(rows: PartitionRows, values: list[list[str]]) -> list[bytes]:
    """Raises UnencodableReply."""
    table = rows.table
    scratch = Partition(dbName=table.database, tableName=table.name, catName=table.catalog)
    descriptors = [encode_descriptor(template) for template in rows.templates]
    pieces: list[bytes] = []
    for row, own in enumerate(values):
        number, location = rows.template_numbers[row], rows.locations[row]
        if number is None or location is None:
            pieces.append(encode_partition(partition_of_row(rows, row, own)))
            continue
        scratch.values, scratch.parameters, scratch.writeId = own, rows.parameters[row], rows.write_ids[row]
        scratch.createTime, scratch.lastAccessTime = rows.create_times[row], rows.last_access_times[row]
        before, after = descriptors[number]
        encoded = location.encode()
        pieces += (
            encode_beginning(scratch),
            before,
            len(encoded).to_bytes(_LENGTH_BYTES, "big"),
            encoded,
            after,
            encode_parameters(scratch),
        )
    return pieces
