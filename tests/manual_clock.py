"""A clock that stands still until a test moves it."""

from __future__ import annotations

import threading


class ManualClock:
    """Both times move together, by :meth:`advance` only. Safe to share between threads (``_lock`` guards both)."""

    def __init__(self, *, monotonic_s: float = 1_000.0, epoch_s: float = 1_700_000_000.0) -> None:
        self._lock = threading.Lock()
        self._monotonic_s = monotonic_s
        self._epoch_s = epoch_s

    def monotonic_s(self) -> float:
        with self._lock:
            return self._monotonic_s

    def epoch_s(self) -> float:
        with self._lock:
            return self._epoch_s

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` (≥ 0) pass."""
        if seconds < 0:
            raise ValueError("a monotonic clock does not go back")
        with self._lock:
            self._monotonic_s += seconds
            self._epoch_s += seconds
