"""Rows encoded without structs are byte for byte equal to their encoded structs."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_cache.metadata.object_names import TableName
from hms_cache.server.encoded_answers import encode_in_pieces
from hms_cache.store.contract.partitions import PartitionQuery
from hms_cache.store.partitions.encoded_rows import encoded_partitions
from hms_cache.store.partitions.reads import PartitionRows, partitions_of_rows
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, StorageDescriptor
from hms_cache.wire import METHODS, encode_payload
from hms_cache.wire.encodings import BINARY, COMPACT
from tests.cache.blocks.partitions import descriptor, name_of, page
from tests.store.partitions.catalog import PartitionCatalog, partition

TEMPLATES = [
    descriptor(None),
    descriptor(None, columns=0, parameters={"a": "ü"}),
    descriptor(None, serdeInfo=None, bucketCols=["a"], storedAsSubDirectories=True, numBuckets=4),
    StorageDescriptor(),
]
TEXTS = st.text(alphabet=st.characters(codec="utf-8"), max_size=5)
VALUES = st.tuples(
    st.one_of(st.sampled_from(["2024-01-01", "__HIVE_DEFAULT_PARTITION__", "a/b=%", "ü"]), TEXTS.filter(bool)),
    st.one_of(st.sampled_from(["1", "10"]), TEXTS.filter(bool)),
)
ROWS = st.tuples(
    VALUES,
    st.one_of(st.none(), st.integers(0, len(TEMPLATES) - 1)),
    st.one_of(st.none(), st.just(""), st.just("s3a://lake/ü"), TEXTS),
    st.dictionaries(TEXTS, TEXTS, max_size=4),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-1, 2**63 - 1),
    st.dictionaries(st.integers(0, 1), st.just(""), max_size=2),
)


def rows_of(found: list[Any]) -> PartitionRows:
    """Rows as the store reads them, of the parts that differ."""
    values, templates, locations, parameters, times, write_ids, empty = (list(one) for one in zip(*found, strict=True))
    made = page(0, len(found))
    return dataclasses.replace(
        made,
        names=[name_of(one) for one in values],
        create_times=times,
        last_access_times=times[::-1],
        write_ids=write_ids,
        locations=locations,
        template_numbers=templates,
        templates=TEMPLATES,
        parameters=parameters,
        empty_values={row: one for row, one in enumerate(empty) if one},
    )


def encoded(encoding: Any, answer: Any) -> bytes:
    """The complete result of `get_partitions`, from structs."""
    method = METHODS["get_partitions"]
    return encode_payload(encoding, method, method.result(answer))


@settings(max_examples=200, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=6))
def test_rows_are_encoded_as_their_structs(found: list[Any]) -> None:
    rows = rows_of(found)
    structs = partitions_of_rows(rows)
    pieces = encode_in_pieces(BINARY, METHODS["get_partitions"], encoded_partitions(rows))
    assert pieces is not None
    assert b"".join(pieces) == encoded(BINARY, structs)
    assert encoded(COMPACT, encoded_partitions(rows)) == encoded(COMPACT, structs)
    assert list(encoded_partitions(rows)) == structs


def test_a_name_with_other_keys_is_refused_when_it_is_read() -> None:
    """And not while the reply is sent, when the client cannot get an error any more."""
    rows = page(0, 2)
    rows.names[1] = "dt=2024-01-01"
    with pytest.raises(MetaException, match="Expected 2 components"):
        encoded_partitions(rows)


def test_partitions_from_the_database_are_not_made_into_structs(catalog: PartitionCatalog) -> None:
    """A reply with many is sent as it is encoded; access to one decodes it."""
    catalog.create_table()
    table = TableName("hive", "d", "t")
    catalog.writes.add_partitions(table, [partition("2024-01-01", str(hour)) for hour in range(300)])
    answer = catalog.reads.get_partitions(PartitionQuery(table)).partitions
    assert len(answer) == 300
    pieces = encode_in_pieces(BINARY, METHODS["get_partitions"], answer)
    assert pieces is not None
    assert b"".join(pieces) == encoded(BINARY, [*answer])
