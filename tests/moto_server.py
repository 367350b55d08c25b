"""S3 as a separate program: moto's server, which holds its objects in memory."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.programs import running
from tests.s3_objects import Buckets
from tests.servers import MAX_WAIT_S

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
    """The traffic of a store: requests of all kinds, and bytes sent of each object, by ``bucket/key``."""

    requests: int
    sent: dict[str, int]


class ObjectStore(Buckets):
    """Including the requests to it."""

    def traffic(self) -> Traffic:
        """Since the server started."""
        with urllib.request.urlopen(f"{self.endpoint}/-/traffic", timeout=MAX_WAIT_S) as answer:
            found = json.load(answer)
        return Traffic(found["requests"], {path.lstrip("/"): sent for path, sent in found["sent"].items()})


@contextmanager
def object_store(directory: Path) -> Iterator[ObjectStore]:
    """A server that is ready, stopped at the end."""
    with running([sys.executable, "-c", _PROGRAM], directory / "moto.log") as port:
        yield ObjectStore(port)
