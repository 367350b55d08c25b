"""The results of a shadow: counts by method and outcome, and the differences."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import asdict
from typing import Any, Final, Literal

from hms_cache.app.shadow.comparing import Difference
from hms_cache.values import frozen

#: Maximum number of differences kept in full; a few hundred show what is wrong. All are counted.
MAX_KEPT: Final = 1000
#: Maximum number of distinct notes kept, since they contain sizes and texts that clients sent. Further ones are counted
#: together.
MAX_NOTES: Final = 1000
OTHER_NOTES: Final = "other notes"
#: Maximum number of differences kept for one call's answer.
MAX_DIFFERENCES: Final = 20

Outcome = Literal["equal", "different", "transient", "unanswered", "dropped"]
"""``transient``: the answers differed, but no longer when both were asked again (a write came between). ``unanswered``:
one of the metastores did not answer. ``dropped``: the queue was full, so nothing was compared."""

OUTCOMES: Final[tuple[Outcome, ...]] = ("equal", "different", "transient", "unanswered", "dropped")


@frozen
class DifferentCall:
    """One call that the two metastores answered differently each time."""

    method: str
    arguments: str
    differences: tuple[Difference, ...]


class Report:
    """Collects results. Thread-safe: one lock protects everything."""

    def __init__(self, primary: str, other: str) -> None:
        self._primary = primary
        self._other = other
        self._lock = threading.Lock()
        self._started_s = time.time()
        self._counts: Counter[tuple[str, Outcome]] = Counter()
        self._notes: Counter[str] = Counter()
        self._calls: list[DifferentCall] = []

    def count(self, method: str, outcome: Outcome) -> None:
        """Counts one call with this outcome."""
        with self._lock:
            self._counts[method, outcome] += 1

    def note(self, text: str) -> None:
        """Counts a reason why calls were not compared."""
        with self._lock:
            self._notes[text if text in self._notes or len(self._notes) < MAX_NOTES else OTHER_NOTES] += 1

    def differ(self, method: str, arguments: str, differing: list[Difference]) -> None:
        """Records one call with different answers."""
        with self._lock:
            self._counts[method, "different"] += 1
            if len(self._calls) < MAX_KEPT:
                self._calls.append(DifferentCall(method, arguments, tuple(differing[:MAX_DIFFERENCES])))

    def total(self, outcome: Outcome) -> int:
        """Returns the number of calls with this outcome, over all methods."""
        with self._lock:
            return sum(count for (_, found), count in self._counts.items() if found == outcome)

    @property
    def is_clean(self) -> bool:
        """Whether calls were compared, all answers were equivalent, and no metastore failed to answer."""
        return self.total("equal") > 0 and not self.total("different") and not self.total("unanswered")

    def as_json(self) -> dict[str, Any]:
        """Returns the whole report in plain values."""
        with self._lock:
            methods: dict[str, dict[str, int]] = {}
            for (method, outcome), count in sorted(self._counts.items()):
                methods.setdefault(method, dict.fromkeys(OUTCOMES, 0))[outcome] = count
            return {
                "primary": self._primary,
                "other": self._other,
                "seconds": round(time.time() - self._started_s, 3),
                "totals": {name: sum(counts[name] for counts in methods.values()) for name in OUTCOMES},
                "methods": methods,
                "notes": dict(self._notes),
                "differences": [asdict(call) for call in self._calls],
            }
