"""Property maps as Java writes them. The samples were written by Hive 4.0.1's `SerializationProxy.toBytes`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.store.properties.serialized_maps import read_map, write_map

NO_PROPERTIES = bytes.fromhex(
    "aced00057372003e6f72672e6170616368652e6861646f6f702e686976652e6d65746173746f72652e70726f706572746965"
    "732e53657269616c697a6174696f6e50726f78790000002f14ca8d9d0c0000787077200000002f14ca8d9d000000002f14ca"
    "b4af00057461626c65000000010000000078"
)
TWO_PROPERTIES = bytes.fromhex(
    "aced00057372003e6f72672e6170616368652e6861646f6f702e686976652e6d65746173746f72652e70726f706572746965"
    "732e53657269616c697a6174696f6e50726f78790000002f14ca8d9d0c0000787077390000002f14ca8d9d000000002f14ca"
    "b4af00057461626c65000000010000000200026b30000b76c3a4c080eda0bdedb88000026b310002787878"
)


def test_what_java_wrote_is_read_and_written_alike() -> None:
    two = {"k0": "v\u00e4\0\U0001f600", "k1": "xx"}
    for content, properties in ((NO_PROPERTIES, {}), (TWO_PROPERTIES, two)):
        assert read_map(content) == properties
        assert write_map("table", properties) == content


TEXTS = st.text(st.characters(codec="utf-8"), max_size=600)


@given(st.dictionaries(TEXTS, TEXTS, max_size=12))
def test_round_trip(properties: dict[str, str]) -> None:
    assert read_map(write_map("database", properties)) == properties


@given(st.binary(max_size=60), st.integers(0, len(TWO_PROPERTIES)))
def test_damaged_content_is_refused(noise: bytes, position: int) -> None:
    for damaged in (TWO_PROPERTIES[:position] + noise, noise):
        if damaged[: len(TWO_PROPERTIES)] == TWO_PROPERTIES:
            continue
        try:
            read_map(damaged)
        except ValueError:
            continue


def test_what_cannot_be_kept_or_read() -> None:
    with pytest.raises(ValueError, match="a text of 65536 bytes; at most 65535 can be kept"):
        write_map("table", {"k": "x" * 65_536})
    for damaged in (
        b"",
        TWO_PROPERTIES[:-9],
        TWO_PROPERTIES[:84],
        TWO_PROPERTIES[:83] + b"\x7a\xff\xff\xff\xff",
        TWO_PROPERTIES.replace(b"\x00\x02k1", b"\x00\x09k1"),
        b"\xac\xed\x00\x05t\x00\x01x",
    ):
        with pytest.raises(ValueError):
            read_map(damaged)
