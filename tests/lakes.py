"""Object stores of several kinds with one interface: a database's directory in a bucket, and its objects."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.downloads import FetchFailed

_LONG = [pytest.mark.soak, pytest.mark.long]

_GATEWAY = pytest.param("gateway", marks=_LONG)

LAKES = ("s3", "google", pytest.param("azure", marks=_LONG), _GATEWAY, pytest.param("google_paged", marks=_LONG))
"""Kinds of object stores, as parameters of a test: moto and an emulator of Google's are Python. Azure's emulator, an S3
gateway over a file system, and one of Google's that lists in pages are fetched from other registries (npm, Go's)."""

S3_LAKES = ("s3", _GATEWAY)
"""Those that speak S3."""


class LakeServer(Protocol):
    """A store's endpoint."""

    options: dict[str, Any]
    """What its driver is opened with."""

    def make_bucket(self, name: str) -> None: ...

    def put(self, bucket: str, key: str) -> None:
        """Puts an object of five bytes; the marker of a directory if the key ends in a slash."""

    def keys(self, bucket: str) -> list[str]:
        """Returns all keys in order; markers end in a slash, whatever their keys are."""


class LakeServers:
    """A server of each kind, started at its first use."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._servers: dict[str, LakeServer] = {}
        self._stack = ExitStack()

    def __enter__(self) -> LakeServers:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def take(self, kind: str) -> LakeServer:
        """Skips the test if its requirements are not installed."""
        if kind not in self._servers:
            self._servers[kind] = self._start(kind)
        return self._servers[kind]

    def _start(self, kind: str) -> LakeServer:
        if kind == "s3":
            pytest.importorskip("s3fs")
            pytest.importorskip("moto")
            from tests.moto_server import object_store

            return self._stack.enter_context(object_store(self._directory))
        if kind == "gateway":
            pytest.importorskip("s3fs")
            from tests import s3_gateway

            return self._stack.enter_context(s3_gateway.gateway(_fetched(s3_gateway.find), self._directory))
        if kind == "azure":
            pytest.importorskip("adlfs")
            from tests import azurite

            return self._stack.enter_context(azurite.blob_store(_fetched(azurite.find), self._directory))
        from tests import google_storage  # before gcsfs, which it tells what the emulator cannot

        pytest.importorskip("gcsfs")
        if kind == "google_paged":
            program = _fetched(google_storage.find_paged)
            return self._stack.enter_context(google_storage.paged_google_store(program, self._directory))
        pytest.importorskip("gcp_storage_emulator")
        return self._stack.enter_context(google_storage.google_store(self._directory))


def _fetched(find: Callable[[], Path]) -> Path:
    try:
        return find()
    except FetchFailed as error:
        pytest.skip(str(error))


class Lake:
    """A new bucket, and a database's directory in it."""

    def __init__(self, kind: str, server: LakeServer, bucket: str) -> None:
        self.kind = kind
        self.options = server.options
        self._server = server
        self._bucket = bucket
        server.make_bucket(bucket)
        self.scheme = {"s3": "s3a", "gateway": "s3a", "azure": "abfss", "google": "gs", "google_paged": "gs"}[kind]
        self.url = self.url_of(bucket)
        self.root = f"{self.url}/w/d.db"

    def url_of(self, bucket: str) -> str:
        """As Hadoop writes it."""
        from tests.azurite import ACCOUNT

        host = f"{bucket}@{ACCOUNT}.dfs.core.windows.net" if self.kind == "azure" else bucket
        return f"{self.scheme}://{host}"

    def put(self, *keys: str, **options: str) -> None:
        for key in keys:
            self.put_at_top(f"w/d.db/{key}", **options)

    def put_at_top(self, key: str, **options: str) -> None:
        """By its whole key."""
        self._server.put(self._bucket, key, **options)

    def keys(self) -> list[str]:
        """Those of the database, except its own."""
        return [key.removeprefix("w/d.db/") for key in self._server.keys(self._bucket) if key != "w/d.db/"]
