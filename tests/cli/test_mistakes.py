"""An operator's mistakes are reported in a sentence by each command: tracebacks are for defects."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.prepared.commands import run_command

FINITE = "is not a finite number"

MISTAKES: tuple[tuple[tuple[str, ...], int, str], ...] = (
    (("shadow", "--record", "/nonexistent/reads"), 1, "cannot be written"),
    (("shadow", "--replay", "binary", "--against", "thrift://h:1"), 1, "not a recorded read"),
    (("shadow", "--listen", "127.0.0.1:0", "--record", "reads", "--duration", "nan"), 2, FINITE),
    (("shadow", "--walk", "--server", "thrift://a..b", "--against", "thrift://h:1"), 2, "not the URI"),
    (("top", "--interval", "nan"), 2, FINITE),
    (("jobs", "verify", "--server", "thrift://h:1", "--database", "sqlite:///x", "--sample", "nan"), 2, FINITE),
    (("jobs", "repair", "--metastore", "thrift://a..b:1"), 2, "not the URI"),
    (("check", "--database", "mysql://u:hush@a..b/d"), 2, "no valid host"),
    (("schema", "check", "--database", "mysql://u:hush@h:99999/d"), 2, "no valid host"),
    (
        ("jobs", "verify", "--server", "thrift://h:1", "--database", "jdbc:oracle:thin:u/hush@h"),
        2,
        "database 'oracle' is not supported",
    ),
    (("serve", "--host", "a..b", "--port", "0", "--set", "admin.port=0"), 1, "The host has to be a name"),
    (
        ("serve", "--port", "0", "--set", "server.audit_syslog=a..b:514", "--set", "admin.port=0"),
        1,
        "cannot be reached",
    ),
    (("flush", "\udcff", "--token-file", "site.xml", "--management", "http://127.0.0.1:1"), 1, "no answer from"),
    (("config", "print", "--set", "password=hush"), 2, "is not SECTION.KEY=VALUE"),
    (("status", "--management", "http://u:hush@h:1"), 2, "is not http://HOST:PORT"),
    (("config", "print", "--site", "site.xml"), 2, "cannot be read"),
)


@pytest.mark.parametrize(
    ("arguments", "status", "told"), MISTAKES, ids=lambda one: " ".join(one[:4]) if isinstance(one, tuple) else ""
)
def test_a_mistake_is_told_in_a_sentence(tmp_path: Path, arguments: tuple[str, ...], status: int, told: str) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x01\n")
    (tmp_path / "site.xml").write_text('<configuration><include href="%s"/></configuration>' % ("long" * 100))
    done = run_command(arguments, tmp_path)
    output = done.stdout + done.stderr
    assert (done.returncode, "Traceback" in output) == (status, False), output
    assert told in output and "hush" not in output


@contextmanager
def answering(status: int, kind: str, body: bytes) -> Iterator[str]:
    """Another program at the address of a management port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (403, "text/plain", b"\x1b]0;title\x07no"),
        (404, "text/html", b"<html>\x1b[31m"),
        (200, "application/json", b'{"\\u001b[31m": 1}'),
        (200, "application/json", b"\x1b[31m"),
    ],
)
def test_what_a_server_says_is_shown_and_not_obeyed(tmp_path: Path, status: int, kind: str, body: bytes) -> None:
    with answering(status, kind, body) as url:
        done = run_command(("status", "--management", url), tmp_path)
    output = done.stdout + done.stderr
    assert done.returncode == 1 and "Traceback" not in output
    assert "\x1b" not in output and "\x07" not in output


def test_names_of_directories_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    """Clients choose locations; `check` lists unused directories."""
    (tmp_path / "warehouse" / "\x1b]0;title\x07.db").mkdir(parents=True)
    assert run_command(("schema", "init", "--database", "sqlite:///hms.db"), tmp_path).returncode == 0
    done = run_command(("check", "--database", "sqlite:///hms.db", "--warehouse", "warehouse"), tmp_path)
    output = done.stdout + done.stderr
    assert "title" in output and "Traceback" not in output
    assert "\x1b" not in output and "\x07" not in output
