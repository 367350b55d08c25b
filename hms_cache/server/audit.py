"""Audit lines in the shape that Hive administrators parse, or as JSON, written off the hot path.

A line is `ugi=USER<TAB>ip=ADDRESS<TAB>cmd=TEXT<TAB>` (HMSHandler's audit logger). User and text are whatever a client
says, so they are escaped: a call makes one line, of these three fields. JSON has more: see `Audited`.

Calls only queue a line; one thread writes. The queue is bounded in bytes (P11): when the log is slower than the calls,
lines are lost and counted.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
from collections import deque
from itertools import islice
from typing import Any, Literal, NamedTuple

from hms_cache.config.secrets import MASK, is_secret_name
from hms_cache.server.line_texts import escaped

audit_log = logging.getLogger("hms_cache.audit")

LONGEST_FIELD_CHARACTERS = 4_000
"""Of a user's name or a call's text in a line: names of objects have 256 at most, so several fit. What is longer ends
in `…`."""

_LONGEST_TEXT = 1_000
"""Characters of a text in a struct: a line tells what was created, and holds `LONGEST_FIELD_CHARACTERS`."""

_MAX_ELEMENTS = 200
"""Of a list or map in it."""

_USER_IN_URL = re.compile(r"(://)[^/@\s]{1,1000}@")

QUEUE_BYTES = 8 * 1024 * 1024
"""Default of `server.audit_queue_bytes`."""

_LINE_OVERHEAD_BYTES = 120
"""The tuple of a queued line and its place in the queue."""


MAX_OBJECTS = 50
"""Of a call in a line; how many more there were is told."""


GATHERING_S = 0.02
"""After the first line that finds nothing to be written, before it is."""


class Audited(NamedTuple):
    """What a line of JSON says beside Hive's three fields."""

    method: str
    outcome: str
    """As the metric of calls has it: `ok`, `fault`, `error`, `denied`."""
    principal: str | None
    """The name under which the client authenticated, of which its user was made; None: it did not."""
    mechanism: str
    """SASL's name of how; `none`."""
    objects: tuple[str, ...]
    """What the request named: `table hive.sales.orders`, …"""
    real_user: str = ""
    """Who acts for the user by a token; empty: nobody."""
    events: tuple[tuple[int, int], ...] = ()
    """First and last of the events that the call logged."""

    def fields(self) -> str:
        """As JSON, without the braces."""
        told = {
            "method": self.method,
            "outcome": self.outcome,
            "allowed": self.outcome != "denied",
            "principal": None if self.principal is None else _cut(self.principal),
            "mechanism": self.mechanism,
            "objects": [_cut(one) for one in self.objects[:MAX_OBJECTS]],
        }
        if self.real_user:
            told["real_user"] = _cut(self.real_user)
        if self.events:
            told["events"] = self.events
        if len(self.objects) > MAX_OBJECTS:
            told["objects_left_out"] = len(self.objects) - MAX_OBJECTS
        return json.dumps(told)[1:-1]


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
        self._lines: deque[tuple[str, str, str, str, int]] = deque()
        self._queued_bytes = 0
        self._ended = False
        self._waits = False
        """Whether the thread waits to be notified: calls that come while it writes need not wake it."""
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

    @property
    def tells_objects(self) -> bool:
        """Whether lines say what `Audited` holds."""
        return self._form == "json"

    def record(self, user: str, address: str, command: str, more: Audited | None = None) -> None:
        """Queues one line; never waits for the log."""
        user, command = _cut(user), _cut(command)
        fields = more.fields() if more is not None and self.tells_objects else ""
        weight = _LINE_OVERHEAD_BYTES + sum(map(sys.getsizeof, (user, address, command, fields)))
        with self._changed:
            if self._queued_bytes + weight > self._queue_bytes:
                self.lost += 1
                return
            self._queued_bytes += weight
            self._lines.append((user, address, command, fields, weight))
            if self._waits:
                self._waits = False
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
                if not self._lines and not self._ended:
                    self._waits = True
                    self._changed.wait_for(lambda: self._lines or self._ended)
                    self._waits = False
                    # What comes within this time is written with it: a thread that wakes for each line would take the
                    # interpreter from the calls as often.
                    if not self._ended:
                        self._changed.wait_for(lambda: self._ended, GATHERING_S)
                if not self._lines:
                    return
                taken, self._lines = self._lines, deque()
            for user, address, command, fields, weight in taken:
                # A line counts until it is written: its writer may be what waits.
                audit_log.info("%s", self._line(user, address, command, fields))
                with self._changed:
                    self._queued_bytes -= weight

    def _line(self, user: str, address: str, command: str, fields: str) -> str:
        if self._form == "json":
            told = json.dumps({"ugi": user, "ip": address, "cmd": command})
            return f"{told[:-1]}, {fields}}}" if fields else told
        return f"ugi={escaped(user)}\tip={escaped(address)}\tcmd={escaped(command)}\t"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_FIELD_CHARACTERS else f"{text[:LONGEST_FIELD_CHARACTERS]}…"


def struct_text(value: Any) -> str:
    """As ``repr``, of a struct that a client sent; without what is secret in it, and not much longer than a line.

    Masked are parameters under names of secrets, and users in URLs: a table of another database has its password.
    """
    if isinstance(value, str):
        cut = value if len(value) <= _LONGEST_TEXT else f"{value[:_LONGEST_TEXT]}…"
        return repr(_USER_IN_URL.sub(rf"\1{MASK}@", cut))
    if isinstance(value, dict):
        entries = [
            f"{struct_text(key)}: {repr(MASK) if is_secret_name(str(key)) else struct_text(one)}"
            for key, one in islice(value.items(), _MAX_ELEMENTS)
        ]
        return "{" + ", ".join(_left_out(entries, len(value))) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_left_out([struct_text(one) for one in value[:_MAX_ELEMENTS]], len(value))) + "]"
    if not hasattr(value, "thrift_spec"):
        return repr(value)
    fields = [f"{name}={struct_text(getattr(value, name))}" for name in value.__slots__]
    return f"{type(value).__name__}({', '.join(fields)})"


def _left_out(texts: list[str], count: int) -> list[str]:
    return [*texts, "…"] if count > len(texts) else texts
