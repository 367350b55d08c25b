"""Google Cloud Storage as a separate program: gcp-storage-emulator, or fake-gcs-server, which lists in pages and serves
several requests at a time. Both hold their objects in memory."""

from __future__ import annotations

import json
import os
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import downloads
from tests.programs import listening, running
from tests.servers import MAX_WAIT_S

# gcsfs asks each bucket's kind over gRPC, which the emulator does not speak. It is read when gcsfs is imported.
os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")

_PROGRAM = """
import threading
from http.server import HTTPServer
from gcp_storage_emulator.server import create_server

HTTPServer.request_queue_size = 128  # of connections that wait; it serves one after the other
server = create_server("127.0.0.1", 0, in_memory=True)
server.start()
print(server._api._httpd.server_port, flush=True)
threading.Event().wait()
"""


class GoogleStore:
    """An endpoint, and its contents."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self.options: dict[str, Any] = {"endpoint_url": self.endpoint, "token": "anon", "project": "tests"}

    def make_bucket(self, name: str) -> None:
        self._ask("/storage/v1/b?project=tests", json.dumps({"name": name}).encode(), "application/json")

    def put(self, bucket: str, key: str) -> None:
        """Puts an object of five bytes; an empty one if the key ends in a slash."""
        self.write(bucket, key, b"" if key.endswith("/") else b"12345")

    def write(self, bucket: str, key: str, content: bytes) -> None:
        """An object with this content, replacing an existing one."""
        # The emulator accepts an empty object in this form only.
        described = json.dumps({"name": key}).encode()
        parts = (b"Content-Type: application/json\n\n" + described, b"Content-Type: a/b\n\n" + content)
        body = b"".join(b"--_part_\n" + part + b"\n" for part in parts) + b"--_part_--"
        path = f"/upload/storage/v1/b/{bucket}/o?uploadType=multipart"
        self._ask(path, body, 'multipart/related; boundary="_part_"')

    def keys(self, bucket: str) -> list[str]:
        """All of them, in order."""
        found: list[str] = []
        page = self._ask(f"/storage/v1/b/{bucket}/o")
        while True:
            found += [each["name"] for each in page.get("items", ())]
            if not page.get("nextPageToken"):
                return sorted(found)
            token = urllib.parse.quote(page["nextPageToken"], safe="")
            page = self._ask(f"/storage/v1/b/{bucket}/o?pageToken={token}")

    def _ask(self, path: str, body: bytes | None = None, kind: str = "") -> Any:
        request = urllib.request.Request(self.endpoint + path, body, {"Content-Type": kind} if kind else {})
        with urllib.request.urlopen(request, timeout=MAX_WAIT_S) as answer:
            return json.load(answer)


@contextmanager
def google_store(directory: Path) -> Iterator[GoogleStore]:
    """A server that is ready, stopped at the end."""
    with running([sys.executable, "-c", _PROGRAM], directory / "google.log") as port:
        yield GoogleStore(port)


def find_paged() -> Path:
    """Returns the program fake-gcs-server; Go builds it at the first use. Raises `downloads.FetchFailed`."""
    return downloads.go_program("github.com/fsouza/fake-gcs-server", "v1.56.1")


@contextmanager
def paged_google_store(program: Path, directory: Path) -> Iterator[GoogleStore]:
    """A server that is ready, stopped at the end."""

    def command(port: int) -> list[str]:
        return [
            *(str(program), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"),
            *("-public-host", f"127.0.0.1:{port}", "-external-url", f"http://127.0.0.1:{port}"),
        ]

    with listening(command, directory / "fake-gcs.log") as port:
        yield GoogleStore(port)
