"""Audit lines in the shape that Hive administrators parse, or as JSON, written off the hot path.

A line is `ugi=USER<TAB>ip=ADDRESS<TAB>cmd=TEXT<TAB>` (HMSHandler's audit logger). User and text are whatever a client
says, so they are escaped: a call makes one line, of these three fields. Calls only queue it; one thread writes. The
queue is bounded in bytes (P11): when the log is slower than the calls, lines are lost and counted.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections import deque
from typing import Literal

from hms_cache.server.line_texts import escaped

audit_log = logging.getLogger("hms_cache.audit")

LONGEST_FIELD_CHARACTERS = 4_000
"""Of a user's name or a call's text in a line: names of objects have 256 at most, so several fit. What is longer ends
in `…`."""

QUEUE_BYTES = 8 * 1024 * 1024
"""Default of `server.audit_queue_bytes`."""

_LINE_OVERHEAD_BYTES = 120
"""The tuple of a queued line and its place in the queue."""


class AuditLog:
    """Writes audit lines; `mode` is `all`, `writes` or `off`. Thread-safe."""

    def __init__(
        self, mode: str = "writes", form: Literal["hive", "json"] = "hive", queue_bytes: int = QUEUE_BYTES
    ) -> None:
        self._all = mode == "all"
        self._on = mode != "off"
        self._form = form
        self._queue_bytes = queue_bytes
        self._changed = threading.Condition()
        """Guards the queue, what it weighs, and whether the end has come."""
        self._lines: deque[tuple[str, str, str, int]] = deque()
        self._queued_bytes = 0
        self._ended = False
        self._thread = threading.Thread(target=self._write, name="hms-audit", daemon=True)
        self.lost = 0
        """Lines that found the queue full, since the start."""

    def start(self) -> None:
        """Starts the writing thread (none when the mode is `off`)."""
        if self._on:
            self._thread.start()

    def wants(self, *, is_write: bool) -> bool:
        """Whether a call of this kind is logged: asked before its line is built."""
        return self._all or (self._on and is_write)

    @property
    def queued_bytes(self) -> int:
        """Memory of the lines that wait."""
        return self._queued_bytes

    def record(self, user: str, address: str, command: str) -> None:
        """Queues one line; never waits for the log."""
        user, command = _cut(user), _cut(command)
        weight = _LINE_OVERHEAD_BYTES + sys.getsizeof(user) + sys.getsizeof(address) + sys.getsizeof(command)
        with self._changed:
            if self._queued_bytes + weight > self._queue_bytes:
                self.lost += 1
                return
            self._queued_bytes += weight
            self._lines.append((user, address, command, weight))
            self._changed.notify()

    def stop(self, timeout_s: float = 2.0) -> None:
        """Writes what is queued, then ends the thread."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _write(self) -> None:
        while True:
            with self._changed:
                while not self._lines and not self._ended:
                    self._changed.wait()
                if not self._lines:
                    return
                user, address, command, weight = self._lines.popleft()
            # The line counts until it is written: its writer may be what waits.
            audit_log.info("%s", self._line(user, address, command))
            with self._changed:
                self._queued_bytes -= weight

    def _line(self, user: str, address: str, command: str) -> str:
        if self._form == "json":
            return json.dumps({"ugi": user, "ip": address, "cmd": command})
        return f"ugi={escaped(user)}\tip={escaped(address)}\tcmd={escaped(command)}\t"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_FIELD_CHARACTERS else f"{text[:LONGEST_FIELD_CHARACTERS]}…"
