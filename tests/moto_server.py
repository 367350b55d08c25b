"""S3 as a program of its own: moto's server, which holds its objects in memory."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.servers import PATIENCE_S

_PROGRAM = """
import sys
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
"""


class ObjectStore:
    """An endpoint, and what it holds."""

    def __init__(self, port: int) -> None:
        self.options: dict[str, Any] = {
            "key": "any",
            "secret": "any",
            "client_kwargs": {"endpoint_url": f"http://127.0.0.1:{port}", "region_name": "us-east-1"},
        }
        import s3fs  # where it is not installed, these tests are skipped

        self._client = s3fs.S3FileSystem(**self.options, skip_instance_cache=True, use_listings_cache=False)

    def make_bucket(self, name: str) -> None:
        self._client.call_s3("create_bucket", Bucket=name)

    def put(self, bucket: str, key: str, storage_class: str = "STANDARD") -> None:
        """An object of five bytes, or none where the key ends in a slash."""
        content = b"" if key.endswith("/") else b"12345"
        self._client.call_s3("put_object", Bucket=bucket, Key=key, Body=content, StorageClass=storage_class)

    def keys(self, bucket: str) -> list[str]:
        """All of them."""
        found: list[str] = []
        options: dict[str, Any] = {"Bucket": bucket}
        while True:
            page = self._client.call_s3("list_objects_v2", **options)
            found += [each["Key"] for each in page.get("Contents", ())]
            if not page.get("IsTruncated"):
                return found
            options["ContinuationToken"] = page["NextContinuationToken"]


@contextmanager
def object_store(directory: Path) -> Iterator[ObjectStore]:
    """A server that is ready, stopped at the end."""
    with (directory / "moto.log").open("w") as log:
        process = subprocess.Popen([sys.executable, "-c", _PROGRAM], stdout=subprocess.PIPE, stderr=log, text=True)
    timer = threading.Timer(PATIENCE_S, process.kill)
    timer.start()
    try:
        assert process.stdout is not None
        yield ObjectStore(int(process.stdout.readline()))
    finally:
        timer.cancel()
        process.terminate()
        process.wait(30)
