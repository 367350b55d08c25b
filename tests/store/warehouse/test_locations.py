"""Locations as Hadoop writes them."""

from __future__ import annotations

import pytest

from hms_cache.store.warehouse import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

LOCAL = Location("file", "", "/")
HDFS = Location("hdfs", "nn:8020", "/")


@pytest.mark.parametrize(
    ("text", "default", "expected"),
    [
        ("/x/y", LOCAL, "file:/x/y"),
        ("file:/x", LOCAL, "file:/x"),
        ("file:///x", LOCAL, "file:/x"),
        ("file:///x//y/", LOCAL, "file:/x/y"),
        ("file:/", LOCAL, "file:/"),
        ("/x", HDFS, "hdfs://nn:8020/x"),
        ("hdfs:///x", HDFS, "hdfs://nn:8020/x"),
        ("hdfs://other/x", HDFS, "hdfs://other/x"),
        ("file:/x", HDFS, "file:/x"),
        ("s3a://bucket", LOCAL, "s3a://bucket/"),
        ("s3a://bucket/", LOCAL, "s3a://bucket/"),
        ("s3a://bucket/a b/%20=é", LOCAL, "s3a://bucket/a b/%20=é"),
        ("abfss://c@account.dfs.core.windows.net/x", LOCAL, "abfss://c@account.dfs.core.windows.net/x"),
    ],
)
def test_text(text: str, default: Location, expected: str) -> None:
    assert str(Location.parse(text, default)) == expected


@pytest.mark.parametrize("text", ["", "relative", "file:relative"])
def test_no_locations(text: str) -> None:
    with pytest.raises(MetaException):
        Location.parse(text, LOCAL)


def test_without_a_default_a_scheme_is_needed() -> None:
    with pytest.raises(MetaException, match="No file system in /x"):
        Location.parse("/x")


@pytest.mark.parametrize(
    ("inner", "outer", "expected"),
    [
        ("file:/a/b", "file:/a", True),
        ("file:/a/b/c", "file:/", True),
        ("file:/a", "file:/a", False),
        ("file:/ab", "file:/a", False),
        ("hdfs://n/a/b", "hdfs://m/a", False),
        ("hdfs://N/a/b", "hdfs://n/a", True),
        ("file:/a/../b", "file:/a", False),
    ],
)
def test_inside(inner: str, outer: str, expected: bool) -> None:
    assert Location.parse(inner).is_inside(Location.parse(outer)) is expected


def test_parts() -> None:
    location = Location.parse("s3://bucket/a/b")
    assert (location.name, str(location.parent), location.url) == ("b", "s3://bucket/a", "s3://bucket/a/b")
    assert str(location.child("c", "d")) == "s3://bucket/a/b/c/d"
    assert Location.parse("file:/").is_root
    assert Location.parse("file:/").parent.is_root
