"""Copies of structs are equal to them, and share nothing that can be changed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hms_cache.metadata.struct_copies import copied
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.wire.strategies import structs

COPIED = (
    *(ttypes.Table, ttypes.Database, ttypes.Catalog, ttypes.Function, ttypes.CreationMetadata),
    *(ttypes.SQLAllTableConstraints, ttypes.ColumnStatistics, ttypes.Partition),
)


def changeable_parts(value: Any) -> list[Any]:
    """All lists, maps, sets and structs in it, itself included."""
    if isinstance(value, list):
        inner = [part for one in value for part in changeable_parts(one)]
    elif isinstance(value, dict):
        inner = [part for one in value.values() for part in changeable_parts(one)]
    elif hasattr(type(value), "thrift_spec"):
        inner = [part for name in value.__slots__ for part in changeable_parts(getattr(value, name))]
    elif isinstance(value, set):
        inner = []
    else:
        return []
    return [value, *inner]


@pytest.mark.parametrize("kind", COPIED, ids=lambda kind: kind.__name__)
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_a_copy_is_equal_and_shares_nothing(kind: Any, data: st.DataObject) -> None:
    given_one = data.draw(structs(kind))
    copy = copied(given_one)
    assert copy == given_one and type(copy) is kind
    assert not {id(part) for part in changeable_parts(given_one)} & {id(part) for part in changeable_parts(copy)}


def test_what_is_no_struct_is_copied_too() -> None:
    class Named(dict[str, list[str]]):
        """A map of another kind."""

    given_one = [Named(a=["b"]), {"c", "d"}, (["e"],)]
    copy = copied(given_one)
    assert copy == given_one and type(copy[0]) is Named
    assert copy[0]["a"] is not given_one[0]["a"]  # type: ignore[call-overload, index]
