"""Rows of partitions as the bytes that clients are sent, without structs.

Of a partition's encoding most describes its storage, which thousands of partitions have in common. That is encoded once
for each template; of each row come its values, times, location and parameters.
"""

from __future__ import annotations

from typing import Final

from hms_cache.store.partitions.reads import PartitionRows, partition_of_row
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition
from hms_cache.wire.encoded_lists import EncodedList
from hms_cache.wire.partition_parts import encode_beginning, encode_descriptor, encode_parameters, encode_partition

_LENGTH_BYTES: Final = 4


def encoded_partitions(rows: PartitionRows) -> EncodedList[Partition]:
    """The partitions of the rows, in their order, as a list that knows its encoding.

    Looked at, it is what `partitions_of_rows` makes. Raises MetaException (a name that has not the table's keys).
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
