"""Commands to a running server whose address is wrong, or belongs to another program."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hms_cache.cli.main import commands
from hms_cache.errors import HmsCacheError
from tests.admin.running import TOKEN, Running

#: One of each kind: a read, a command, and one whose reply comes line by line.
ASKING = (
    ("status",),
    ("top", "--once", "--interval", "0.2"),
    ("locks", "list"),
    ("locks", "release", "7"),
    ("events", "pause"),
    ("events", "seek", "7"),
    ("flush",),
    ("sync", "--wait", "0s"),
)


class Stranger(BaseHTTPRequestHandler):
    """Another program, which answers everything in the same way."""

    status, kind, body, location = 200, "text/plain", "", ""
    seen: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.seen.append((f"{self.command} {self.path}", self.headers["Authorization"]))
        self.send_response(self.status)
        self.send_header("Content-Type", self.kind)
        self.send_header("Content-Length", str(len(self.body.encode())))
        if self.location:
            self.send_header("Location", self.location)
        self.end_headers()
        self.wfile.write(self.body.encode())

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


@contextmanager
def stranger(**answer: object) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """Its address, and the requests that it has received with their tokens."""
    seen: list[tuple[str, str | None]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Other", (Stranger,), {"seen": seen, **answer}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def run(directory: Path, *arguments: str, token: bytes = TOKEN.encode(), **environment: str) -> Result:
    (directory / "given").write_bytes(token)
    return CliRunner().invoke(
        commands, arguments, env={"HMS_CACHE_TOKEN_FILE": str(directory / "given"), **environment}
    )


@pytest.mark.parametrize(
    "answer",
    [
        {"body": ""},
        {"body": "welcome"},
        {"body": "{}", "kind": "application/json"},
        {"body": "[1]", "kind": "application/json"},
        {"body": json.dumps({"status": "ok", "worker": 0}), "kind": "application/json"},
        {"body": '{"error": "x"}', "kind": "application/json", "status": 404},
        {"body": '{"error": "x"}', "kind": "application/json", "status": 502},
        {"body": "", "status": 503},
        {"body": "Not Found", "status": 404},
        {"body": "<h1>Bad Gateway</h1>", "kind": "text/html", "status": 502},
    ],
    ids=lambda answer: f"{answer.get('status', 200)} {answer['body'][:12]}",
)
def test_another_program_is_told_from_a_server(answer: dict[str, object], tmp_path: Path) -> None:
    with stranger(**answer) as (address, _):
        for command in ASKING:
            if command[0] == "events" and '"status"' in str(answer["body"]):
                continue
            done = run(tmp_path, *command, "--management", address)
            assert isinstance(done.exception, HmsCacheError), (command, done.exception, done.output)
            text = str(done.exception)
            assert "hms-cache" in text or address in text or "the server ended before the command" in text, command
            assert "<h1>" not in text, command


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_token_follows_no_redirect_and_goes_to_no_proxy(status: int, tmp_path: Path) -> None:
    """The token is for the named server; and a command turned into a read would look successful."""
    everything = json.dumps({"status": "ACTIVE", "reason": "", "released": 7, "locks": [], "is_complete": True})
    with stranger(body=everything, kind="application/json") as (other, seen_there):
        with stranger(status=status, location=f"{other}/elsewhere") as (address, seen):
            for command in ASKING:
                done = run(tmp_path, *command, "--management", address, http_proxy=other, HTTP_PROXY=other)
                assert isinstance(done.exception, HmsCacheError) and other in str(done.exception), command
        assert len(seen) == len(ASKING)
        assert seen_there == []


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:9085", "hms1", "", "ftp://hms1", "file:///etc/passwd", "http://", "http://h:x", "http://u:p@h:1"],
)
def test_what_is_no_address_is_a_bad_command_line(address: str, tmp_path: Path) -> None:
    for command in ASKING:
        done = run(tmp_path, *command, "--management", address)
        assert done.exit_code == 2 and "http://HOST:PORT" in done.output, (command, done.output)


def test_a_server_is_found_with_a_slash_after_its_address(tmp_path: Path) -> None:
    running = Running(tmp_path)
    try:
        for command, slashes in itertools.product(
            (("status",), ("locks", "list"), ("events", "resync")), ("", "/", "//")
        ):
            done = run(tmp_path, *command, "--management", running.management + slashes)
            assert done.exit_code == 0, (command, done.exception)
        for command in (("events", "resync"), ("events", "seek", "0"), ("sync",), ("status",), ("locks", "list")):
            done = run(tmp_path, *command, "--json", "--management", running.management)
            assert isinstance(json.loads(done.stdout), dict), command
    finally:
        running.close()


def test_a_token_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with stranger() as (address, seen):
        for command in ASKING:
            done = run(tmp_path, *command, "--management", address, token=b"\xff\xfe")
            assert isinstance(done.exception, HmsCacheError) and "given" in str(done.exception), command
        assert seen == []
