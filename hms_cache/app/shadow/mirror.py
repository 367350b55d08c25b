"""Sends the primary's reads to the other metastore and compares the answers."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from hms_cache.app.shadow.comparing import Answer, Difference, Rules, differences
from hms_cache.app.shadow.metastore import Endpoint, Metastore, NoAnswer
from hms_cache.app.shadow.reads import summary
from hms_cache.app.shadow.report import Report
from hms_cache.values import frozen

#: Maximum number of waiting calls. At 10 ms a call, 4 threads need less than three seconds for them.
MAX_WAITING: Final = 1000
#: Answers are held decoded while they wait, ten times as large as their replies. So each so many bytes of a reply take
#: one more slot in the queue. A full queue holds 32 MiB of replies.
BYTES_PER_SLOT: Final = 32 * 1024
THREADS: Final = 4
#: Both are asked again after these pauses before a difference counts: a write between the two questions causes one, and
#: a metastore's cache may be stale for its poll interval.
PAUSES_S: Final = (0.2, 1.0)
#: After this number of differences, each further one is checked only once more, without a pause.
MANY_DIFFERENCES: Final = 100
#: How long `finish` waits for each thread to compare the waiting calls.
_FINISH_S: Final = 600.0
#: How long `put` waits for room; longer than a metastore may take to answer.
ROOM_TIMEOUT_S: Final = 900.0


@frozen
class Read:
    """One read: its method, its arguments, and the primary's answer if that is known."""

    method: str
    arguments: Any
    answer: Answer | None = None
    size_bytes: int = 0


class Comparer:
    """Compares one read at a time, over one connection to each metastore. Not thread-safe."""

    def __init__(
        self, primary: Endpoint, other: Endpoint, rules: Rules, report: Report, pause: Callable[[float], object]
    ) -> None:
        self._primary = Metastore(primary, rules)
        self._other = Metastore(other, rules)
        self._report = report
        self._pause = pause

    def compare(self, read: Read) -> None:
        """Asks both metastores, asks again if the answers differ, and reports the outcome. A metastore's failures are
        reported, not raised."""
        try:
            differing, repeats = self._differing(read)
        except NoAnswer as error:
            self._report.count(read.method, "unanswered")
            self._report.note(f"no answer: {error}")
            return
        if differing:
            self._report.differ(read.method, summary(read.arguments), differing)
        else:
            self._report.count(read.method, "transient" if repeats else "equal")

    def _differing(self, read: Read) -> tuple[list[Difference], int]:
        primary = read.answer or self._primary.call(read.method, read.arguments)
        differing = differences(read.method, primary, self._other.call(read.method, read.arguments))
        repeats = 0
        many = self._report.total("different") >= MANY_DIFFERENCES
        for pause_s in (0.0,) if many else PAUSES_S:
            if not differing:
                break
            self._pause(pause_s)
            repeats += 1
            primary = self._primary.call(read.method, read.arguments)
            differing = differences(read.method, primary, self._other.call(read.method, read.arguments))
        return differing, repeats

    def close(self) -> None:
        """Closes both connections."""
        self._primary.close()
        self._other.close()


class Mirror:
    """A bounded queue of reads, and the threads that compare them. Reads that do not fit are counted and dropped."""

    def __init__(self, primary: Endpoint, other: Endpoint, rules: Rules, report: Report) -> None:
        self._report = report
        self._queue: queue.Queue[Read | None] = queue.Queue()
        self._room = threading.Condition()
        self._used_slots = 0  # under `_room`
        self._stopping = threading.Event()
        self._comparers = [Comparer(primary, other, rules, report, self._stopping.wait) for _ in range(THREADS)]
        self._threads = [
            threading.Thread(target=self._work, args=(comparer,), name=f"shadow-{number}", daemon=True)
            for number, comparer in enumerate(self._comparers)
        ]

    def start(self) -> None:
        """Starts the threads."""
        for thread in self._threads:
            thread.start()

    def offer(self, read: Read) -> None:
        """Queues a read and returns at once. One that does not fit is counted as dropped."""
        if not self._put(read, 0.0):
            self._report.count(read.method, "dropped")

    def put(self, read: Read) -> None:
        """Queues a read, and waits for room. Raises `NoAnswer` if there is none in time."""
        if not self._put(read, ROOM_TIMEOUT_S):
            raise NoAnswer(f"no mirrored call was answered within {ROOM_TIMEOUT_S:.0f} s")

    def _put(self, read: Read, timeout_s: float) -> bool:
        slots = _slots_of(read)
        with self._room:
            if not self._room.wait_for(
                lambda: not self._used_slots or self._used_slots + slots <= MAX_WAITING, timeout_s
            ):
                return False
            self._used_slots += slots
        self._queue.put(read)
        return True

    def finish(self) -> None:
        """Compares the waiting calls, for at most ten minutes per thread, and ends the threads."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(_FINISH_S)
        self._stopping.set()

    def abandon(self) -> None:
        """Drops the waiting calls and ends the threads, without waiting for a comparison in progress."""
        self._stopping.set()
        with suppress(queue.Empty):
            while True:
                self._queue.get_nowait()
        for _ in self._threads:
            self._queue.put(None)

    def _work(self, comparer: Comparer) -> None:
        try:
            while (read := self._queue.get()) is not None:
                try:
                    comparer.compare(read)
                finally:
                    with self._room:
                        self._used_slots -= _slots_of(read)
                        self._room.notify_all()
        finally:
            comparer.close()


def _slots_of(read: Read) -> int:
    return 1 + read.size_bytes // BYTES_PER_SLOT
