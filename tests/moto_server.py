"""S3 as a program of its own: moto's server, which holds its objects in memory."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.programs import running
from tests.servers import PATIENCE_S

_PROGRAM = """
import collections, json, threading
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

class Counting:
    # Beside the store: how many requests there were, and how many bytes of each object were sent.
    def __init__(self, application):
        self.application, self.lock = application, threading.Lock()
        self.requests, self.sent = 0, collections.Counter()

    def __call__(self, environ, start_response):
        path = environ["PATH_INFO"]
        if path == "/-/traffic":
            with self.lock:
                body = json.dumps({"requests": self.requests, "sent": self.sent}).encode()
            start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
            return [body]
        is_object = environ["REQUEST_METHOD"] == "GET" and path.count("/") > 1 and not path.endswith("/")
        with self.lock:
            self.requests += 1
        if not is_object:
            return self.application(environ, start_response)
        return self.counted(path, self.application(environ, start_response))

    def counted(self, path, body):
        for part in body:
            with self.lock:
                self.sent[path] += len(part)
            yield part

class Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept, as S3 keeps them

    def log(self, *arguments):
        pass

application = Counting(DomainDispatcherApplication(create_backend_app))
server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


class Traffic(NamedTuple):
    """What was asked of a store: requests of all kinds, and bytes sent of each object, by ``bucket/key``."""

    requests: int
    sent: dict[str, int]


class ObjectStore:
    """An endpoint, and what it holds."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self.options: dict[str, Any] = {
            "key": "any",
            "secret": "any",
            "client_kwargs": {"endpoint_url": self.endpoint, "region_name": "us-east-1"},
        }
        import s3fs  # where it is not installed, these tests are skipped

        self._client = s3fs.S3FileSystem(**self.options, skip_instance_cache=True, use_listings_cache=False)

    def make_bucket(self, name: str) -> None:
        self._client.call_s3("create_bucket", Bucket=name)

    def put(self, bucket: str, key: str, storage_class: str = "STANDARD") -> None:
        """An object of five bytes, or none where the key ends in a slash."""
        content = b"" if key.endswith("/") else b"12345"
        self._client.call_s3("put_object", Bucket=bucket, Key=key, Body=content, StorageClass=storage_class)

    def write(self, bucket: str, key: str, content: bytes) -> None:
        """An object of this content, in place of what there is."""
        self._client.call_s3("put_object", Bucket=bucket, Key=key, Body=content)

    def delete(self, bucket: str, key: str) -> None:
        """An object; nothing if it is not there."""
        self._client.call_s3("delete_object", Bucket=bucket, Key=key)

    def traffic(self) -> Traffic:
        """Since the server started."""
        with urllib.request.urlopen(f"{self.endpoint}/-/traffic", timeout=PATIENCE_S) as answer:
            found = json.load(answer)
        return Traffic(found["requests"], {path.lstrip("/"): sent for path, sent in found["sent"].items()})

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
    with running([sys.executable, "-c", _PROGRAM], directory / "moto.log") as port:
        yield ObjectStore(port)
