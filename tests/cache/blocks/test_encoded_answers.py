"""Spliced results are byte for byte equal to the encoded structs."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_cache.cache.encoded_tables import EncodedTables
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.server.encoded_answers import encode_in_pieces
from hms_cache.server.handlers.partition_specs import group_partitions
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import METHODS, encode_payload
from hms_cache.wire.codec import encode_struct
from hms_cache.wire.encoded_lists import EncodedList
from hms_cache.wire.encodings import BINARY, COMPACT
from tests.cache.blocks.partitions import KEYS, ROOT, descriptor, name_of, ordinary, partition, partitions

RESPONSES: dict[str, Callable[[Any], Any]] = {
    "get_partitions": lambda found: found,
    "get_partitions_req": lambda found: ttypes.PartitionsResponse(partitions=found),
    "get_partitions_by_names_req": lambda found: ttypes.GetPartitionsByNamesResult(partitions=found),
    "get_partitions_ps_with_auth_req": lambda found: ttypes.GetPartitionsPsWithAuthResponse(partitions=found),
    "get_partitions_by_expr": lambda found: ttypes.PartitionsByExprResult(partitions=found, hasUnknownPartitions=True),
}
TABLE_RESPONSES: dict[str, Callable[[Any], Any]] = {
    "get_table_objects_by_name": lambda found: found,
    "get_table_objects_by_name_req": lambda found: ttypes.GetTablesResult(tables=found),
}
NAME_RESPONSES: dict[str, Callable[[Any], Any]] = {
    "get_partition_names": lambda found: found,
    "get_partition_names_ps_req": lambda found: ttypes.GetPartitionNamesPsResponse(names=found),
}
SPEC_RESPONSES: dict[str, Callable[[Any], Any]] = {
    "get_partitions_pspec": lambda specs: specs,
    "get_partitions_spec_by_expr": lambda specs: ttypes.PartitionsSpecByExprResult(
        partitionsSpec=specs, hasUnknownPartitions=False
    ),
    "get_partitions_with_specs": lambda specs: ttypes.GetPartitionsResponse(partitionSpec=specs),
}


def plain(method: str, value: Any, encoding: Any = BINARY) -> bytes:
    """The result as the encoder writes it."""
    return encode_payload(encoding, METHODS[method], METHODS[method].result(value))


def spliced(method: str, value: Any) -> bytes:
    """The result in pieces, joined."""
    pieces = encode_in_pieces(BINARY, METHODS[method], value)
    assert pieces is not None, "nothing was found to splice"
    return b"".join(pieces)


def set_with_changes(held: list[ttypes.Partition], changed: list[ttypes.Partition]) -> tuple[PartitionSet, list[Any]]:
    made = PartitionSet(KEYS, held, complete=True)
    made.put(changed)
    model = {name_of(one.values): one for one in [*held, *changed]}
    return made, [model[name] for name in sorted(model)]


@settings(max_examples=40, deadline=None)
@given(held=st.lists(partitions(), max_size=8), changed=st.lists(partitions(), max_size=3))
def test_every_response_with_partitions_is_what_structs_encode_to(
    held: list[ttypes.Partition], changed: list[ttypes.Partition]
) -> None:
    made, model = set_with_changes(held, changed)
    for method, respond in RESPONSES.items():
        assert spliced(method, respond(made.all().encoded_structs())) == plain(method, respond(model))
        compact = respond(made.all().encoded_structs())
        assert encode_in_pieces(COMPACT, METHODS[method], compact) is None
        assert plain(method, compact, COMPACT) == plain(method, respond(model), COMPACT)
    for method, respond in NAME_RESPONSES.items():
        names = [name_of(one.values) for one in model]
        assert spliced(method, respond(made.all().encoded_names())) == plain(method, respond(names))
        assert plain(method, respond(made.all().encoded_names()), COMPACT) == plain(method, respond(names), COMPACT)


@settings(max_examples=60, deadline=None)
@given(
    held=st.lists(partitions(), max_size=8),
    changed=st.lists(partitions(), max_size=3),
    root=st.sampled_from([ROOT, "s3a://lake", "hdfs://old/", "", None]),
)
def test_partition_specs_are_grouped_from_the_encoding_as_from_structs(
    held: list[ttypes.Partition], changed: list[ttypes.Partition], root: str | None
) -> None:
    made, model = set_with_changes(held, changed)
    table = ttypes.Table(catName="hive", dbName="sales", tableName="orders", sd=descriptor(root), writeId=3)
    expected = group_partitions(table, copy.deepcopy(model))
    assert [*group_partitions(table, made.all().structs())] == expected
    for method, respond in SPEC_RESPONSES.items():
        encoded = group_partitions(table, made.all().encoded_structs())
        if model:
            assert spliced(method, respond(encoded)) == plain(method, respond(expected))
        again = group_partitions(table, made.all().encoded_structs())
        assert plain(method, respond(again), COMPACT) == plain(method, respond(expected), COMPACT)


def test_partitions_that_differ_in_what_follows_their_parameters_are_grouped_whole() -> None:
    """Here the name of the catalog: the parts that a spec omits from each partition differ in length."""
    held = []
    for hour, catalog in (("1", "other"), ("2", "hive"), ("3", None)):
        one = partition(("2024-01-01", hour), 0)
        one.catName, one.parameters = catalog, {"a": ""}
        held.append(one)
    made, model = set_with_changes(held, [])
    table = ttypes.Table(catName="hive", dbName="sales", tableName="orders", sd=descriptor(ROOT))
    for method, respond in SPEC_RESPONSES.items():
        encoded = group_partitions(table, made.all().encoded_structs())
        assert spliced(method, respond(encoded)) == plain(method, respond(group_partitions(table, model)))


def test_many_ordinary_partitions_are_spliced_into_shared_specs() -> None:
    made, model = set_with_changes([*ordinary(500)], [partition(("2030-01-01", "1"))])
    table = ttypes.Table(catName="hive", dbName="sales", tableName="orders", sd=descriptor(ROOT))
    encoded = group_partitions(table, made.all().encoded_structs())
    shared = encoded[0].sharedSDPartitionSpec.partitions
    assert isinstance(shared, EncodedList)
    assert shared.is_encoded
    assert spliced("get_partitions_pspec", encoded) == plain("get_partitions_pspec", group_partitions(table, model))
    assert shared.is_encoded, "splicing made no structs"


def test_tables_are_spliced_and_may_be_looked_at_without_being_made() -> None:
    frozen = [
        ttypes.Table(tableName=name, dbName="sales", sd=descriptor(ROOT), parameters={"a": name}, writeId=3)
        for name in ("t", "u")
    ]
    for tables in (frozen, []):
        encoded = [encode_struct(table) for table in tables]
        for method, respond in TABLE_RESPONSES.items():
            assert spliced(method, respond(EncodedTables(tables, encoded))) == plain(method, respond(tables))
            compact = respond(EncodedTables(tables, encoded))
            assert encode_in_pieces(COMPACT, METHODS[method], compact) is None
            assert plain(method, compact, COMPACT) == plain(method, respond(tables), COMPACT)
    answer = EncodedTables(frozen, [encode_struct(table) for table in frozen])
    assert [table.tableName for table in answer.frozen] == ["t", "u"]
    assert answer.is_encoded
    answer[0].owner = "somebody"
    assert not answer.is_encoded
    assert frozen[0].owner is None, "the elements are copies"


LOOKS: list[Callable[[list[Any]], Any]] = [
    len,
    list,
    tuple,
    sorted,
    bool,
    repr,
    set,
    copy.copy,
    copy.deepcopy,
    lambda found: found[1],
    lambda found: found[-1:],
    lambda found: [*found],
    lambda found: [*reversed(found)],
    lambda found: "b" in found,
    lambda found: operator.add(found, ["z"]),
    lambda found: operator.add(["z"], found),
    lambda found: found * 2,
    lambda found: 2 * found,
    lambda found: found == ["a", "b", "c"],
    lambda found: ["a", "b", "c"] == found,
    lambda found: found != ["a"],
    lambda found: found < ["b"],
    lambda found: ["b"] > found,
    lambda found: found >= ["a", "b", "c"],
    lambda found: found <= ["a"],
    lambda found: found.index("b"),
    lambda found: found.count("c"),
    lambda found: found.copy(),
    lambda found: ",".join(found),
    lambda found: dict(enumerate(found)),
    lambda found: max(found),
]
CHANGES: list[Callable[[list[Any]], Any]] = [
    lambda found: found.append("z"),
    lambda found: found.extend(["z"]),
    lambda found: found.insert(0, "z"),
    lambda found: found.pop(),
    lambda found: found.remove("b"),
    lambda found: found.clear(),
    lambda found: found.reverse(),
    lambda found: found.sort(key=lambda text: -ord(text)),
    lambda found: operator.setitem(found, 0, "z"),
    lambda found: operator.delitem(found, 0),
    lambda found: operator.iadd(found, ["z"]),
    lambda found: operator.imul(found, 2),
]


def encoded_list() -> EncodedList[str]:
    return EncodedList(3, lambda: ["a", "b", "c"], lambda: [b"abc"])


@pytest.mark.parametrize("number", range(len(LOOKS)))
def test_an_encoded_list_looks_like_the_list_it_encodes(number: int) -> None:
    found = LOOKS[number](encoded_list())
    expected = LOOKS[number](["a", "b", "c"])
    assert found == expected


BOTH: list[Callable[[list[Any], list[Any]], Any]] = [
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.add,
    operator.iadd,
    lambda one, other: (one.extend(other), [*one]),
    lambda one, other: (operator.setitem(one, slice(1, 2), other), [*one]),
    lambda one, other: [other] == [one],
    lambda one, other: (one, 1) == (other, 1),
]


@pytest.mark.parametrize("number", range(len(BOTH)))
def test_two_encoded_lists_are_to_each_other_as_lists_are(number: int) -> None:
    expected = BOTH[number](["a", "b", "c"], ["a", "b", "c"])
    assert BOTH[number](encoded_list(), encoded_list()) == expected
    assert BOTH[number](["a", "b", "c"], encoded_list()) == expected
    assert BOTH[number](encoded_list(), ["a", "b", "c"]) == expected


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_an_encoded_list_changes_like_a_list_and_is_encoded_no_more(number: int) -> None:
    found, expected = encoded_list(), ["a", "b", "c"]
    CHANGES[number](found)
    CHANGES[number](expected)
    assert [*found] == expected
    assert not found.is_encoded


def test_the_length_is_known_without_decoding() -> None:
    found = encoded_list()
    assert (len(found), found.is_encoded) == (3, True)
