"""Contents of objects on S3 (moto), through Arrow where it returns the same as the driver."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_cache.jobs.statistics.rows.object_contents import ObjectContents
from tests.moto_server import object_store
from tests.s3_objects import Buckets

s3fs = pytest.importorskip("s3fs")

BUCKET = "contents"
CONTENTS = {
    "empty": b"",
    "a=1/plain": b"12345",
    "a=%C3%A9 b+c/é ü.parquet": b"odd",
    "packed.gz": gzip.compress(b"as it is"),
    "larger": bytes(range(256)) * 40_000,
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buckets]:
    with object_store(tmp_path_factory.mktemp("contents")) as made:
        made.make_bucket(BUCKET)
        for key, content in CONTENTS.items():
            made.write(BUCKET, key, content)
        yield made


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def driver(store: Buckets, **options: Any) -> Any:
    return s3fs.S3FileSystem(**{**store.options, **options}, skip_instance_cache=True)


def forbid_driver(monkeypatch: pytest.MonkeyPatch, file_system: Any) -> None:
    def refuse(*arguments: object, **options: object) -> bytes:
        raise AssertionError("the driver was asked")

    monkeypatch.setattr(file_system, "cat_file", refuse)


def test_they_are_read_through_arrow(store: Buckets, monkeypatch: pytest.MonkeyPatch) -> None:
    file_system = driver(store)
    contents = ObjectContents(file_system)
    contents.renew()
    forbid_driver(monkeypatch, file_system)
    assert {key: contents.read(f"{BUCKET}/{key}") for key in CONTENTS} == CONTENTS
    with pytest.raises(FileNotFoundError):
        contents.read(f"{BUCKET}/none")
    # That one did not exist says nothing about the others.
    assert contents.read(f"{BUCKET}/a=1/plain") == b"12345"


@pytest.mark.parametrize(
    "options",
    [
        {"requester_pays": True},
        {"s3_additional_kwargs": {"ExpectedBucketOwner": "123456789012"}},
        {"config_kwargs": {"retries": {"max_attempts": 1}}},
        {"use_ssl": False},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_that_arrow_does_not_have(store: Buckets, options: dict[str, Any]) -> None:
    contents = ObjectContents(driver(store, **options))
    contents.renew()
    assert contents.read(f"{BUCKET}/a=1/plain") == b"12345"
    assert contents.is_through_arrow is ("use_ssl" in options)


def test_nobody_is_the_drivers(store: Buckets) -> None:
    contents = ObjectContents(driver(store, anon=True, key=None, secret=None))
    contents.renew()
    with pytest.raises(PermissionError):
        contents.read(f"{BUCKET}/a=1/plain")
    assert not contents.is_through_arrow


def test_before_credentials_are_known_the_driver_reads(store: Buckets) -> None:
    contents = ObjectContents(driver(store))
    assert contents.read(f"{BUCKET}/a=1/plain") == b"12345"
    assert not contents.is_through_arrow


def test_new_credentials_are_taken(store: Buckets, monkeypatch: pytest.MonkeyPatch) -> None:
    file_system = driver(store)
    contents = ObjectContents(file_system)
    contents.renew()
    before = contents._arrow
    contents.renew()
    assert contents._arrow is before
    file_system.s3._request_signer._credentials.access_key = "another"
    contents.renew()
    assert contents._arrow is not before and contents.is_through_arrow
    assert contents.read(f"{BUCKET}/a=1/plain") == b"12345"


def test_after_an_error_the_driver_reads(store: Buckets, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As for a bucket in another region, to which Arrow does not follow."""
    contents = ObjectContents(driver(store))
    contents.renew()

    class Failing:
        def open_input_stream(self, name: str, compression: object) -> object:
            raise OSError("When reading information for key: AWS Error UNKNOWN (HTTP status 301)")

    monkeypatch.setattr(contents, "_arrow", Failing())
    assert contents.read(f"{BUCKET}/a=1/plain") == b"12345"
    contents.renew()
    assert not contents.is_through_arrow
    with pytest.raises(FileNotFoundError):
        contents.read(f"{BUCKET}/none")


def test_another_proxy_is_the_drivers(store: Buckets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    contents = ObjectContents(driver(store))
    contents.renew()
    assert not contents.is_through_arrow


def test_other_file_systems_are_their_drivers(tmp_path: Path) -> None:
    import fsspec

    (tmp_path / "a").write_bytes(b"1")
    contents = ObjectContents(fsspec.filesystem("file"))
    contents.renew()
    assert contents.read(str(tmp_path / "a")) == b"1" and not contents.is_through_arrow
