"""Places of the measured tables' files: local directories, or S3."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tests.s3_objects import Buckets

_LINKS_OF_A_FILE = 30_000
"""Ext4 allows 65,000."""

BUCKET = "bench"


class Lake(Protocol):
    """A tree of files."""

    name: str
    """One letter with which the names of its tables begin."""

    root: str
    """Its location."""

    def write(self, location: str, content: bytes) -> None:
        """Writes a new file."""
        ...

    def delete(self, location: str) -> None:
        """Deletes a directory with its contents."""
        ...


class LocalLake:
    """Files in a directory. Files with equal contents are links to one file, since there are a million of them; that
    file is in `contents`, or in the directory itself."""

    name = "s"

    def __init__(self, directory: Path, contents: Path | None = None) -> None:
        self._contents = contents or directory
        self.root = f"file:{directory}"
        self._links = 0
        self._source: Path | None = None

    def write(self, location: str, content: bytes) -> None:
        """See `Lake`."""
        if self._source is None or self._links % _LINKS_OF_A_FILE == 0:
            self._contents.mkdir(parents=True, exist_ok=True)
            self._source = self._contents / f"data-{self._links}"
            self._source.write_bytes(content)
        self._links += 1
        path = location.removeprefix("file:")
        os.makedirs(path.rpartition("/")[0], exist_ok=True)
        os.link(self._source, path)

    def delete(self, location: str) -> None:
        """See `Lake`."""
        path = Path(location.removeprefix("file:"))
        shutil.rmtree(path)
        with suppress(OSError):  # other partitions are in it
            path.parent.rmdir()  # an empty one is a difference, which `files` tells


class S3Lake:
    """Files in a bucket of a server."""

    name = "o"
    root = f"s3a://{BUCKET}"

    def __init__(self, store: Buckets) -> None:
        self._store = store
        self._store.make_bucket(BUCKET)

    def write(self, location: str, content: bytes) -> None:
        """See `Lake`."""
        self._store.write(BUCKET, location.removeprefix(f"{self.root}/"), content)

    def delete(self, location: str) -> None:
        """See `Lake`."""
        prefix = location.removeprefix(f"{self.root}/")
        for key in self._store.keys(BUCKET):
            if key.startswith(f"{prefix}/"):
                self._store.delete(BUCKET, key)


class GatewayLake(S3Lake):
    """Files in the bucket of a gateway over a file system: each file in the bucket's directory is an object."""

    name = "g"

    def __init__(self, store: Buckets, bucket: Path) -> None:
        super().__init__(store)
        self.bucket = bucket
        self._files = LocalLake(bucket, bucket.parent.with_name("contents"))

    def write(self, location: str, content: bytes) -> None:
        """See `Lake`."""
        self._files.write(self._path(location), content)

    def delete(self, location: str) -> None:
        """See `Lake`."""
        self._files.delete(self._path(location))

    def _path(self, location: str) -> str:
        return f"file:{self.bucket}{location.removeprefix(self.root)}"


def s3_class_path() -> dict[str, str]:
    """Setting for Spark's first session in a process, whose JVM later sessions reuse."""
    from tests.jobs.month.hadoop_aws import fetch

    return {"spark.driver.extraClassPath": os.pathsep.join(map(str, fetch()))}


@contextmanager
def s3_lake(directory: Path) -> Iterator[tuple[S3Lake, Mapping[str, str]]]:
    """Yields a lake on a server of moto, and the settings with which Spark reads it. Servers and jobs that are started
    meanwhile find it through the environment."""
    from tests.moto_server import object_store

    with object_store(directory) as store, _found_by_environment(store) as variables:
        yield S3Lake(store), _spark_settings(store, variables)


@contextmanager
def gateway_lake(directory: Path) -> Iterator[tuple[GatewayLake, Mapping[str, str]]]:
    """Like `s3_lake`, on a server whose objects are files. Moto reads all its keys for each page of a listing, which
    takes hours for a million objects."""
    from tests import s3_gateway

    bucket = directory / "buckets" / BUCKET
    with s3_gateway.gateway(s3_gateway.find(), directory) as store, _found_by_environment(store) as variables:
        yield GatewayLake(store, bucket), _spark_settings(store, variables)
    shutil.rmtree(bucket, ignore_errors=True)


def _spark_settings(store: Buckets, variables: Mapping[str, str]) -> dict[str, str]:
    s3a = "spark.hadoop.fs.s3a"
    return {
        **s3_class_path(),
        f"{s3a}.endpoint": store.endpoint,
        f"{s3a}.path.style.access": "true",
        f"{s3a}.access.key": "any",
        f"{s3a}.secret.key": "any",
        f"{s3a}.endpoint.region": "us-east-1",
        # Spark's workers in Python have the environment of the JVM, which began before there was a store.
        **{f"spark.executorEnv.{name}": value for name, value in variables.items()},
    }


@contextmanager
def _found_by_environment(store: Buckets) -> Iterator[dict[str, str]]:
    found = {
        "AWS_ENDPOINT_URL": store.endpoint,
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    before = {name: os.environ.get(name) for name in found}
    os.environ.update(found)
    try:
        yield found
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
