"""Reads the state of a running server through its management port."""

from __future__ import annotations

import json
import re
import threading
import urllib.request
from collections.abc import Callable
from typing import Any

from tests.servers import MAX_WAIT_S, ServerProcess


def status_of(server: ServerProcess) -> dict[str, Any]:
    """`/status` as JSON."""
    with urllib.request.urlopen(f"http://127.0.0.1:{management_port(server)}/status", timeout=MAX_WAIT_S) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def management_port(server: ServerProcess) -> int:
    """The address of its management port, from its log."""
    found = re.findall(r"management port on [^ ]*:(\d+)", server.log)
    return int(found[-1])


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Polls a condition of another process, MAX_WAIT_S at most."""
    pause = threading.Event()
    for _ in range(int(MAX_WAIT_S / 0.05)):
        if holds():
            return
        pause.wait(0.05)
    raise AssertionError(f"not within {MAX_WAIT_S:g} s: {what}")
