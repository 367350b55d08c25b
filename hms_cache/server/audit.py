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
"""Characters of a user's name or of a call's text in a line. Names of objects have at most 256, so several fit. Longer
texts are cut and end in `…`."""

_LONGEST_TEXT = 1_000
"""Characters of a text inside a struct. A line about a created object should say what it is, within
`LONGEST_FIELD_CHARACTERS`."""

_MAX_ELEMENTS = 200
"""Elements of a list or map inside a struct."""

_USER_IN_URL = re.compile(r"(://)[^/@\s]{1,1000}@")

QUEUE_BYTES = 8 * 1024 * 1024
"""Default of `server.audit_queue_bytes`."""

_LINE_OVERHEAD_BYTES = 120
"""The tuple of a queued line and its place in the queue."""


MAX_OBJECTS = 50
"""Events of a call that are listed in a line; the line also says how many more there were."""


GATHERING_S = 0.02
"""How long the thread waits after the first line that it finds, before it writes."""


class Audited(NamedTuple):
    """What a JSON line has in addition to Hive's three fields."""

    method: str
    outcome: str
    """As the metric of calls has it: `ok`, `fault`, `error`, `denied`."""
    principal: str | None
    """The name under which the client authenticated, from which its user was derived; None: it did not authenticate."""
    mechanism: str
    """The SASL name of the mechanism, or `none`."""
    objects: tuple[str, ...]
    """The object that the request named: `table hive.sales.orders`, …"""
    real_user: str = ""
    """The user who acts on behalf of the call's user, according to the token; empty if there is none."""
    events: tuple[tuple[int, int], ...] = ()
    """The first and the last event that the call logged."""

    def fields(self) -> str:
        """As JSON, without the braces."""
        values = {
            "method": self.method,
            "outcome": self.outcome,
            "allowed": self.outcome != "denied",
            "principal": None if self.principal is None else _cut(self.principal),
            "mechanism": self.mechanism,
            "objects": [_cut(one) for one in self.objects[:MAX_OBJECTS]],
        }
        if self.real_user:
            values["real_user"] = _cut(self.real_user)
        if self.events:
            values["events"] = self.events
        if len(self.objects) > MAX_OBJECTS:
            values["objects_omitted"] = len(self.objects) - MAX_OBJECTS
        return json.dumps(values)[1:-1]


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
        """Guards the queue, its size in bytes, and whether it is closed."""
        self._lines: deque[tuple[str, str, str, str, int]] = deque()
        self._queued_bytes = 0
        self._ended = False
        self._waits = False
        """Whether the thread is waiting to be notified. While it writes, calls need not wake it."""
        self._thread = threading.Thread(target=self._write, name="hms-audit", daemon=True)
        self.lost = 0
        """Lines that were dropped since the start because the queue was full."""

    def start(self) -> None:
        """Starts the writing thread (none when the mode is `off`)."""
        if self._on:
            self._thread.start()

    def wants(self, *, is_write: bool) -> bool:
        """Whether calls of this kind are logged. It is asked before the line is built."""
        return self._all or (self._on and is_write)

    @property
    def queued_bytes(self) -> int:
        """Memory taken by queued lines."""
        return self._queued_bytes

    @property
    def records_objects(self) -> bool:
        """Whether lines say what `Audited` holds."""
        return self._form == "json"

    def record(self, user: str, address: str, command: str, more: Audited | None = None) -> None:
        """Queues one line. Never waits for the log."""
        user, command = _cut(user), _cut(command)
        fields = more.fields() if more is not None and self.records_objects else ""
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
        """Writes the queued lines, then ends the thread."""
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
                    # Lines that arrive within this time are written together. A thread that woke for each line would
                    # interrupt the calls just as often.
                    if not self._ended:
                        self._changed.wait_for(lambda: self._ended, GATHERING_S)
                if not self._lines:
                    return
                drained, self._lines = self._lines, deque()
            for user, address, command, fields, weight in drained:
                # A line counts until it is written: writing may be what takes long.
                audit_log.info("%s", self._line(user, address, command, fields))
                with self._changed:
                    self._queued_bytes -= weight

    def _line(self, user: str, address: str, command: str, fields: str) -> str:
        if self._form == "json":
            line = json.dumps({"ugi": user, "ip": address, "cmd": command})
            return f"{line[:-1]}, {fields}}}" if fields else line
        return f"ugi={escaped(user)}\tip={escaped(address)}\tcmd={escaped(command)}\t"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_FIELD_CHARACTERS else f"{text[:LONGEST_FIELD_CHARACTERS]}…"


def struct_text(value: Any) -> str:
    """Like ``repr``, for a struct that a client sent, but without secrets and not much longer than a line.

    Masked are parameters with names of secrets, and users in URLs: the parameters of a JDBC table hold the password of
    its database.
    """
    if isinstance(value, str):
        cut = value if len(value) <= _LONGEST_TEXT else f"{value[:_LONGEST_TEXT]}…"
        return repr(_USER_IN_URL.sub(rf"\1{MASK}@", cut))
    if isinstance(value, dict):
        entries = [
            f"{struct_text(key)}: {repr(MASK) if is_secret_name(str(key)) else struct_text(one)}"
            for key, one in islice(value.items(), _MAX_ELEMENTS)
        ]
        return "{" + ", ".join(_omission_text(entries, len(value))) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_omission_text([struct_text(one) for one in value[:_MAX_ELEMENTS]], len(value))) + "]"
    if not hasattr(value, "thrift_spec"):
        return repr(value)
    fields = [f"{name}={struct_text(getattr(value, name))}" for name in value.__slots__]
    return f"{type(value).__name__}({', '.join(fields)})"


def _omission_text(texts: list[str], count: int) -> list[str]:
    return [*texts, "…"] if count > len(texts) else texts
