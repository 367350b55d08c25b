"""Audit lines in the shape that Hive administrators parse, written off the hot path.

A line is `ugi=USER<TAB>ip=ADDRESS<TAB>cmd=TEXT<TAB>` (HMSHandler's audit logger). Calls only queue the line; one
thread writes. The queue is bounded (P11): when the log is slower than the calls, lines are dropped and counted.
"""

from __future__ import annotations

import logging
import queue
import threading

audit_log = logging.getLogger("hms_cache.audit")

QUEUE_LINES = 10_000
"""Lines kept while the log is slow: some seconds of writes at full speed, about 2 MB."""


class AuditLog:
    """Writes audit lines; `mode` is `all`, `writes` or `off`."""

    def __init__(self, mode: str = "writes") -> None:
        self._all = mode == "all"
        self._on = mode != "off"
        self._lines: queue.Queue[str | None] = queue.Queue(QUEUE_LINES)
        self._thread = threading.Thread(target=self._write, name="hms-audit", daemon=True)
        self.dropped = 0

    def start(self) -> None:
        """Starts the writing thread (none when the mode is `off`)."""
        if self._on:
            self._thread.start()

    def wants(self, *, is_write: bool) -> bool:
        """Whether a call of this kind is logged: asked before its line is built."""
        return self._all or (self._on and is_write)

    def record(self, user: str, address: str, command: str) -> None:
        """Queues one line; never waits."""
        try:
            self._lines.put_nowait(f"ugi={user}\tip={address}\tcmd={command}\t")
        except queue.Full:
            self.dropped += 1

    def stop(self, timeout_s: float = 2.0) -> None:
        """Writes what is queued, then ends the thread."""
        if self._thread.is_alive():
            self._lines.put(None, timeout=timeout_s)
            self._thread.join(timeout_s)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            audit_log.info("%s", line)
