"""Partition names: escaping and unescaping, compared with Hive's table of characters and by properties."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hms_cache.metadata.partition_name_codec import values_of_partition_name
from hms_cache.metadata.partition_names import (  # type: ignore[attr-defined]
    DEFAULT_PARTITION_VALUE,
    PartitionNaming,
    escape_path_name,
    make_partition_name,
    parse_partition_name,
    unescape_path_name,
    values_for_keys,
    values_of_name,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import InvalidObjectException, MetaException

# printed by org.apache.hadoop.hive.common.FileUtils of hive-exec 4.0.1 for every char
ESCAPED_IN_HIVE = [*range(32), 34, 35, 37, 39, 42, 47, 58, 61, 63, 91, 92, 93, 94, 123, 127]

values = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


def test_exactly_the_characters_of_hive_are_escaped() -> None:
    for code in range(0x300):
        expected = f"%{code:02X}" if code in ESCAPED_IN_HIVE else chr(code)
        assert escape_path_name(chr(code)) == expected


@pytest.mark.parametrize(
    ("escaped", "plain"),
    [
        ("%+5x", "\x05x"),
        ("%-5x", "%-5x"),
        ("a%2", "a%2"),
        ("a%25", "a%"),
        ("%41%zz%4", "A%zz%4"),
        ("%e9", "é"),
        ("%１２", "\x12"),
        ("%4١", "A"),
        ("%%41", "%A"),
        ("% 5", "% 5"),
        ("%1_", "%1_"),
        ("", ""),
    ],
)
def test_unescaping_is_as_lenient_as_java(escaped: str, plain: str) -> None:
    assert unescape_path_name(escaped) == plain


@given(values)
def test_unescaping_undoes_escaping(value: str) -> None:
    escaped = escape_path_name(value)
    assert "/" not in escaped
    assert unescape_path_name(escaped) == value


@given(st.lists(values, min_size=1, max_size=4))
def test_names_give_their_values_back(row: list[str]) -> None:
    keys = [f"Key{index}=/" for index in range(len(row))]
    name = make_partition_name(keys, row)
    assert name == PartitionNaming(keys).name(row)
    assert values_of_name(name) == row
    assert parse_partition_name(name) == {key.lower(): value for key, value in zip(keys, row, strict=True)}
    assert values_for_keys(name, [key.lower() for key in keys]) == row


@pytest.mark.parametrize("value", ["", None])
def test_an_empty_value_takes_the_default_name(value: str | None) -> None:
    assert make_partition_name(["dt"], [value]) == f"dt={DEFAULT_PARTITION_VALUE}"


def test_wrong_numbers_of_values() -> None:
    with pytest.raises(MetaException, match=r"Invalid partition key & values; keys \[dt, hr, \], values \[a, \]"):
        PartitionNaming(["dt", "hr"]).name(["a"])
    with pytest.raises(MetaException):
        make_partition_name([], [])


def test_values_follow_the_keys_of_the_table() -> None:
    assert values_for_keys("hr=1/dt=a", ["dt", "hr"]) == ["a", "1"]
    with pytest.raises(InvalidObjectException, match="incomplete partition name - missing hr"):
        values_for_keys("dt=a", ["dt", "hr"])
    with pytest.raises(MetaException, match="Unexpected component x"):
        values_of_name("dt=a/x")


damaged = st.lists(st.sampled_from(["%", "%4", "%41", "%zz", "+", "5", "a", "k=", "=", "/", "１", "٣"]), max_size=10)


@example("k=%+5")
@example("k=%１5/k2=%41")
@example("k=%٣1")
@given(damaged.map("".join))
def test_events_and_the_store_read_a_name_alike(name: str) -> None:
    """What an event removes from memory and what the database contains is the same partition, with damaged escapes or
    not."""
    of_event = values_of_partition_name(name)
    if of_event is None:
        with pytest.raises(MetaException):
            values_of_name(name)
        return
    assert list(of_event) == values_of_name(name)
    specification = parse_partition_name(name)
    if name.count("=") == name.rstrip("/").count("/") + 1 and len(specification) == len(of_event) and "=/" not in name:
        assert tuple(specification.values()) == of_event


@given(st.lists(values, min_size=1, max_size=3))
def test_events_read_what_the_store_writes(of_partition: list[str]) -> None:
    name = make_partition_name([f"k{number}" for number in range(len(of_partition))], of_partition)
    assert values_of_partition_name(name) == tuple(of_partition)
