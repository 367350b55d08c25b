"""Locations as Hadoop writes them."""

from __future__ import annotations

import contextlib
import os
import posixpath
import tempfile
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.config.sections import WarehouseSettings
from hms_cache.store.warehouse import Location, Warehouse, file_systems
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
        ("file:/a/./b//../c/.", LOCAL, "file:/a/c"),
        ("file:/a/b/..", LOCAL, "file:/a"),
        ("file:/../../a", LOCAL, "file:/a"),
        ("s3a://bucket/..", LOCAL, "s3a://bucket/"),
        ("/a/..b/...", LOCAL, "file:/a/..b/..."),
        ("file:/a/%2e%2e/b", LOCAL, "file:/a/%2e%2e/b"),
        ("file:/::memory", LOCAL, "file:/::memory"),
        ("file:/ev::v2", LOCAL, "file:/ev::v2"),
        ("file:/a?b#c*", LOCAL, "file:/a?b#c*"),
        ("file:/a\\..\\b", LOCAL, "file:/a\\..\\b"),
        ("abfss://c@account.dfs.core.windows.net/x", LOCAL, "abfss://c@account.dfs.core.windows.net/x"),
    ],
)
def test_text(text: str, default: Location, expected: str) -> None:
    assert str(Location.parse(text, default)) == expected


@pytest.mark.parametrize("text", ["", "relative", "file:relative", "../x", "a::file:/b", "memory::file:/x", "/a\0b"])
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
        ("file:/b/../a/c", "file:/a", True),
    ],
)
def test_inside(inner: str, outer: str, expected: bool) -> None:
    assert Location.parse(inner).is_inside(Location.parse(outer)) is expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("s3a://b/x", "s3://b/y", "s3://b/x"),
        ("s3://B/x", "s3n://b/y", "s3n://b/x"),
        ("s3n://key:secret@b/x", "s3a://b/y", "s3a://b/x"),
        ("s3n://key:secret@b/x", "s3a://c/y", "s3n://key:secret@b/x"),
        ("gs://b/x", "gcs://b/y", "gcs://b/x"),
        (
            "abfs://c@a.dfs.core.windows.net/x",
            "wasb://c@a.blob.core.windows.net/y",
            "wasb://c@a.blob.core.windows.net/x",
        ),
        ("hdfs://n/x", "hdfs://N/y", "hdfs://N/x"),
        ("hdfs://n/x", "hdfs://N:8020/y", "hdfs://N:8020/x"),
        ("hdfs://n:8020/x", "hdfs://n/y", "hdfs://n/x"),
        ("hdfs://n:9000/x", "hdfs://n/y", "hdfs://n:9000/x"),
        ("webhdfs://n/x", "webhdfs://n:9870/y", "webhdfs://n:9870/x"),
        ("s3a://b/x", "s3a://c/y", "s3a://b/x"),
        ("s3a://b/x", "gs://b/y", "s3a://b/x"),
        ("file:/x", "hdfs://n/y", "file:/x"),
    ],
)
def test_spelled_as(one: str, other: str, expected: str) -> None:
    assert str(Location.parse(one).spelled_as(Location.parse(other))) == expected


def test_parts() -> None:
    location = Location.parse("s3://bucket/a/b")
    assert (location.name, str(location.parent), location.url) == ("b", "s3://bucket/a", "s3://bucket/a/b")
    assert str(location.child("c", "d")) == "s3://bucket/a/b/c/d"
    assert Location.parse("file:/").is_root
    assert Location.parse("file:/").parent.is_root


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", "a\0"])
def test_what_is_no_name_is_no_child(name: str) -> None:
    with pytest.raises(MetaException, match="cannot be the name of a directory"):
        LOCAL.child("w", name)


def test_relative_paths_lead_where_they_say() -> None:
    table = Location.parse("file:/w/d.db/t")
    assert str(table.resolve("k=1")) == "file:/w/d.db/t/k=1"
    assert str(table.resolve("../other")) == "file:/w/d.db/other"
    assert str(table.resolve("../../../../..")) == "file:/"


segments = st.one_of(
    st.sampled_from(
        ["..", ".", "", "a", "b", "w", "link", "out", "::", "a::b", "*", "?", "#x", "%2e%2e", "~", " ", "é"]
    ),
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), max_size=5),
)
paths = st.lists(segments, max_size=7).map(lambda names: "/" + "/".join(names))


@given(paths, paths)
def test_the_normal_form_is_one(path: str, below: str) -> None:
    location = Location.parse(f"file://{path}")
    names = location.path.strip("/").split("/")
    assert not {".", ".."} & set(names) and "//" not in location.path
    assert Location.parse(str(location)) == location == Location.parse(location.url)
    # Ours is what the operating system makes of the path, if no link is involved.
    assert location.path == posixpath.normpath("/" + path.lstrip("/"))
    child = location.resolve(below)
    assert child.is_inside(location) == child.path.startswith(location.path.rstrip("/") + "/") or child == location


@given(path=paths)
def test_what_is_opened_is_what_was_judged(path: str) -> None:
    """On file systems of this machine: each path passed to the operating system is in the allowed directory."""
    with tempfile.TemporaryDirectory() as scratch:
        root = os.path.realpath(scratch)
        for name in ("w/a/b", "out/a"):
            os.makedirs(f"{root}/{name}")
        for place in ("w/link", "w/a/link"):
            os.symlink(f"{root}/out", f"{root}/{place}")
        Path(f"{root}/out/a/file").write_bytes(b"1")
        outside = snapshot(f"{root}/out")
        warehouse = Warehouse(WarehouseSettings(directory=f"file:{root}/w"))
        allowed = warehouse.allow(warehouse.location(f"file:{root}/w{path}"))
        if allowed is not None:
            real = os.path.realpath(f"{root}/w{path}")
            assert real == allowed.location.path or os.path.realpath(allowed.location.path).startswith(f"{root}/w")
            with contextlib.suppress(MetaException):
                warehouse.make_directory(allowed)
                warehouse.directory_statistics(allowed)
                warehouse.delete_contents(allowed, skip_trash=True)
                warehouse.delete_directory(allowed, skip_trash=True)
        assert snapshot(f"{root}/out") == outside
        assert sorted(os.listdir(root)) == ["out", "w"]


@given(path=paths, protocol=st.sampled_from(["memory", "ftp", "hdfs"]))
def test_what_a_driver_opens_is_what_was_judged(path: str, protocol: str) -> None:
    """On other file systems: the driver's path, however often it is stripped, is the location's, or it is refused."""
    import fsspec

    driver = fsspec.get_filesystem_class(protocol)
    location = Location.parse(f"{protocol}://host{path}")
    try:
        opened = file_systems._path_in(driver, protocol, location)
    except MetaException:
        assert any(character in path for character in "?#:[]%") or not path.isascii() or not path.isprintable()
        return
    assert driver._strip_protocol(opened) == opened
    assert opened.strip("/") in (location.path.strip("/"), f"host{location.path}".strip("/"))


def test_a_link_that_leads_out_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").write_bytes(b"1")
    place = tmp_path / "w" / "t"
    place.mkdir(parents=True)
    (place / "link").symlink_to(tmp_path / "out", target_is_directory=True)
    (place / "own").write_bytes(b"12")
    warehouse = Warehouse(WarehouseSettings(directory=f"file:{tmp_path}/w"))
    table = warehouse.location(f"{place}")
    assert warehouse.allow(table.child("link")) is None
    assert warehouse.allow(table.child("link", "deeper")) is None
    allowed = warehouse.allow(table)
    assert allowed is not None
    counted = warehouse.directory_statistics(allowed)
    assert counted is not None
    assert counted.file_count == 2, "the link is a file, not what it leads to"
    # The directory becomes a link after it was checked: nothing is opened.
    judged = warehouse.allow(warehouse.location(f"{tmp_path}/w/late/t"))
    assert judged is not None
    (tmp_path / "w" / "late").symlink_to(tmp_path / "out", target_is_directory=True)
    for operation in (warehouse.make_directory, warehouse.directory_statistics, warehouse.names):
        with pytest.raises(MetaException, match="A symbolic link leads out"):
            operation(judged)
    with pytest.raises(MetaException, match="A symbolic link leads out"):
        warehouse.delete_directory(judged, skip_trash=True)
    warehouse.delete_directory(allowed, skip_trash=True)
    assert not place.exists()
    assert (tmp_path / "out" / "file").exists()


def test_a_warehouse_that_is_a_link_is_the_operators(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "w").symlink_to(tmp_path / "disk", target_is_directory=True)
    warehouse = Warehouse(WarehouseSettings(directory=f"file:{tmp_path}/w"))
    table = warehouse.allow(warehouse.location(f"{tmp_path}/w/t"))
    assert table is not None
    assert warehouse.make_directory(table)
    assert (tmp_path / "disk" / "t").is_dir()
    warehouse.delete_directory(table, skip_trash=True)
    assert os.listdir(tmp_path / "disk") == []


def test_patterns_in_paths_delete_only_what_is_named() -> None:
    """`rm` of fsspec expands them."""
    store = MemoryFileSystem()
    store.store.clear()
    for name in ("/w/ev*/a", "/w/ev1/a", "/w/ev?/b", "/w/[ev]/c"):
        store.pipe_file(name, b"1")
    warehouse = Warehouse(WarehouseSettings(directory="memory:/w"))
    for name in ("ev*", "ev?", "[ev]"):
        place = warehouse.allow(warehouse.location(f"memory:/w/{name}"))
        assert place is not None
        warehouse.delete_directory(place, skip_trash=True)
    assert list(store.store) == ["/w/ev1/a"]


def snapshot(root: str) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    for directory, names, files in os.walk(root):
        found.update({os.path.join(directory, name): None for name in names})
        found.update({os.path.join(directory, name): Path(directory, name).read_bytes() for name in files})
    return found
