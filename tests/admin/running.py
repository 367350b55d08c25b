"""A server in this process with a management port, called over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from hmsclient import HMSClient
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from hms_cache.admin.health import DatabaseProbe
from hms_cache.admin.history import History
from hms_cache.admin.siblings import Siblings
from hms_cache.admin.sources import AdminSources
from hms_cache.app.service import Service
from hms_cache.config import load
from tests.prepared.commands import run_command

TOKEN = "open sesame"


class Running:
    """A server with a management port, and one client."""

    def __init__(self, directory: Path, siblings: Siblings | None = None, **settings: object) -> None:
        self.directory = directory
        (directory / "token").write_text(f"{TOKEN}\n")
        self.service = Service(
            load(
                command_line={
                    "server.port": 0,
                    "admin.port": 0,
                    "admin.token_file": str(directory / "token"),
                    "database.url": f"sqlite:///{directory / 'hms.db'}",
                    "warehouse.directory": str(directory / "warehouse"),
                    # Its client is of Hive 2, and cannot declare support for insert-only tables.
                    "catalog.client_capability_check": False,
                }
                | {name.replace("__", "."): value for name, value in settings.items()},
                environment={},
            ),
            siblings=siblings or Siblings(),
        )
        self.uri = uri = self.service.start()
        self.transport = TBufferedTransport(TSocket("127.0.0.1", int(uri.rpartition(":")[2])))
        self.transport.open()
        self.client = HMSClient(TBinaryProtocol(self.transport))

    def close(self) -> None:
        self.transport.close()
        self.service.stop()

    def ask(self, path: str, token: str | None = None, post: bool = False) -> tuple[int, str]:
        assert self.service.management_address is not None
        host, port = self.service.management_address
        request = urllib.request.Request(f"http://{host}:{port}{path}", method="POST" if post else "GET")
        if token is not None:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def status(self) -> dict[str, object]:
        status, text = self.ask("/status")
        assert status == 200
        answer: dict[str, object] = json.loads(text)
        return answer

    def json(self, path: str) -> Any:
        """A page as JSON."""
        status, text = self.ask(path)
        assert status == 200, text
        return json.loads(text)

    def command(self, name: str, query: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
        """(result of this worker, summary) of a command."""
        status, text = self.ask(f"/commands/{name}?{query}", TOKEN, post=True)
        assert status == 200, text
        lines = [json.loads(line) for line in text.splitlines()]
        results = [line["result"] for line in lines if "result" in line]
        assert len(results) == 1
        return results[0], lines[-1]["finished"]

    @property
    def sources(self) -> AdminSources:
        assert self.service.admin_sources is not None
        return self.service.admin_sources

    @property
    def history(self) -> History:
        assert self.service.management is not None
        return self.service.management.history

    @property
    def probe(self) -> DatabaseProbe:
        assert self.service.management is not None
        return self.service.management.probe

    @property
    def management(self) -> str:
        assert self.service.management_address is not None
        host, port = self.service.management_address
        return f"http://{host}:{port}"


def hms_cache(directory: Path, *arguments: str) -> tuple[int, str]:
    """Runs the program in a separate process. Returns (exit status, output)."""
    done = run_command(arguments, directory)
    return done.returncode, done.stdout + done.stderr
