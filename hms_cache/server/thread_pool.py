"""Bounded thread pools for calls that need the database (`server/method_pools.py` defines which call runs in which).

Deliberately simpler than `concurrent.futures`: a call is queued once, and one `call_soon_threadsafe` returns its
result.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

from hms_cache.computing import scheduler
from hms_cache.limited_log import LimitedLog
from hms_cache.metrics.thread_pools import ThreadPoolLoad
from hms_cache.values import frozen

_log = logging.getLogger(__name__)
_limited_log = LimitedLog(_log)


CALL_THREADS = "hms-call"
"""Prefix of the names of their threads."""

MAX_REPLACEMENTS = 2
"""Up to this many times its size, a pool starts threads to replace those that stuck calls occupy. There is a limit
because whatever blocks a call for ever (a file system that does not answer) may block the next one, too."""


SMALL_GROUP = 8
"""Up to this many calls it is worth waiting for more: a larger group shares the cost of a database transaction well
enough."""

LINGER_S = 0.0005
"""The longest wait for further calls. Within this time, a client on the same network has read its reply and sent its
next call."""

LINGER_SHARE = 0.3
"""Part of the duration of the previous calls: if nothing comes, the calls that waited are only a little later."""

MAX_SKIPPED = 64
"""Upper limit for the number of times that a group does not wait, after waits in vain: it should notice soon if its
clients follow each other again."""


@frozen
class Group:
    """Calls of one kind that one thread carries out together. Groups are compared by the identity of their function."""

    name: str
    most: int
    """Calls that are carried out together, at most."""
    run: Callable[[Sequence[Any]], bool]
    """Carries out two or more members; must not raise. False: nothing was done, each call is to be run by itself."""


class Connections(Protocol):
    """The database connections that threads use."""

    def interrupt(self, thread: int) -> bool:
        """Aborts what the thread with this identifier waits for in the database, and denies it the database until its
        call has ended. False: it holds no connection."""
        ...

    def call_ended(self, thread: int) -> None:
        """The call of a thread that was interrupted has ended."""
        ...


class _Waiting(NamedTuple):
    work: Callable[[], None]
    token: object
    since_s: float
    member: Any = None
    """What is passed to the group."""

    is_large: bool = False
    """Whether its reply will take much memory, and its thread much time."""


@dataclass(slots=True)
class InStep:
    """Decides whether to wait for further calls of a group.

    Clients that each wait for their reply send their next calls together, shortly after it. A call that arrived in
    between would run alone just before them, and then they without it, each at the cost of a database transaction. So
    it waits for them briefly, as commits wait with PostgreSQL's `commit_delay`.
    """

    expected: int = 0
    """Number of calls, if all clients come back."""
    until_s: float = 0.0
    """Until when to wait, by `time.monotonic()`."""
    misses: int = 0
    """Waits in vain since the last one that was not."""
    skipped: int = 0
    """Opportunities to wait that were skipped since the last wait."""
    begun_s: float = 0.0

    def ended(self, done: int, gathered: int, now_s: float) -> None:
        """`done` calls have been carried out since `begun_s`, during which `gathered` calls arrived."""
        self.expected = done + gathered
        self.until_s = now_s + min(LINGER_S, LINGER_SHARE * (now_s - self.begun_s))

    def wait_s(self, gathered: int, now_s: float) -> float:
        """Seconds to wait for further calls if `gathered` are there; 0 or less: do not wait."""
        if not gathered < self.expected <= SMALL_GROUP or now_s >= self.until_s:
            return 0.0
        if self.skipped < min(2**self.misses - 1, MAX_SKIPPED):
            self.skipped += 1
            return 0.0
        self.skipped = 0
        return self.until_s - now_s

    def waited(self, gathered: int) -> None:
        """At the end of a wait, `gathered` calls are there."""
        self.misses = 0 if gathered >= self.expected else self.misses + 1


class ThreadPool:
    """`threads` daemon threads that run submitted work in order of arrival. At most `max_waiting` calls wait for them.

    A thread is started if there is work and no idle thread: most servers, and each of many worker processes, never use
    all of theirs.

    Calls of a group do not wait for separate threads: while one thread carries some out, further ones gather, and are
    carried out together when it is done. If no call of the group is running, the first one runs at once and alone; if
    earlier calls ran together, the next ones wait briefly for the others (`InStep`). Groups take turns with each other
    and with single calls, in the order in which they began to wait.

    ``_lock`` guards all state. If a call is given up, its database connection is closed, which ends most calls. Another
    thread takes the place of its thread; a thread that is no longer needed afterwards ends.

    The number of running calls with large replies is limited. Further ones let other calls pass, and get the next
    thread that a call with a large reply leaves.
    """

    def __init__(
        self,
        threads: int,
        name: str = "calls",
        *,
        max_waiting: int = 1024,
        on_thread_start: Callable[[], None] | None = None,
        connections: Connections | None = None,
        observe_wait: Callable[[str, float], None] | None = None,
        is_scheduled: bool = False,
        max_large: int | None = None,
    ) -> None:
        """`on_thread_start` runs first on each thread. `connections`: those that calls use. `observe_wait` gets the
        name of the pool and the seconds that a call waited for its thread. `is_scheduled`: the threads compute in turns
        (`hms_cache.computing`). `max_large`: number of calls with large replies that run at a time; None: no limit."""
        self.name = name
        self._size = threads
        self._max_waiting = max_waiting
        self._on_thread_start = on_thread_start
        self._connections = connections
        self._observe_wait = observe_wait
        self._is_scheduled = is_scheduled
        self._lock = threading.Lock()
        self._waiting: deque[_Waiting | Group] = deque()
        """Single calls, and groups that have waiting calls and are not being carried out."""
        self._max_large = threads if max_large is None else max_large
        self._large: set[object] = set()
        """Tokens of calls with large replies that are running and not stuck."""
        self._held_back: deque[_Waiting] = deque()
        """Calls with large replies whose turn came while the maximum was running."""
        self._postponed: deque[_Waiting] = deque()
        """Calls that run only when no other call waits. They do not count towards `max_waiting`, but as many may wait
        besides."""
        self._gathering: dict[Group, deque[_Waiting]] = {}
        """Waiting calls of each group that has any, or that is being carried out."""
        self._executing: dict[Group, int] = {}
        """The identifier of the thread that carries the group out."""
        self._in_step: dict[Group, InStep] = {}
        self._lingering: dict[Group, threading.Lock] = {}
        """The lock whose release wakes the thread that waits for more calls of the group."""
        self._idle: list[threading.Lock] = []
        """A lock for each idle thread, whose release wakes it. The thread that became idle last is woken first: its
        stack, its connection and the database's thread for that connection are still in the processor's caches."""
        self._running: dict[object, int] = {}
        """For the token of each running call, the identifier of its thread."""
        self._stuck: set[object] = set()
        self._stuck_threads: set[int] = set()
        self._threads: set[threading.Thread] = set()
        self._started = 0
        self._closed = False
        self._refused = 0
        self._begun = 0
        self._waited_s = 0.0

    def start(self) -> None:
        """Starts the first thread: if the system has none left, this fails now, and later everything queued is run."""
        with self._lock:
            self._start_one()

    def submit(
        self,
        work: Callable[[], None],
        token: object,
        group: Group | None = None,
        member: Any = None,
        *,
        is_large: bool = False,
    ) -> bool:
        """Queues `work`, which must not raise; it runs on one of the threads. False: too many calls wait.

        With a `group`, it runs only if the call is alone; otherwise the group carries out `member`. `is_large`: its
        reply is large; such a call has no group.
        """
        one = _Waiting(work, token, time.monotonic(), member, is_large)
        woken: threading.Lock | None = None
        with self._lock:
            if self._count_waiting() >= self._max_waiting:
                self._refused += 1
                return False
            if group is None:
                self._waiting.append(one)
            elif (gathering := self._gathering.get(group)) is not None:
                gathering.append(one)
                awaited = self._lingering.get(group)
                if awaited is not None and len(gathering) >= self._in_step[group].expected:
                    del self._lingering[group]
                    awaited.release()
                return True
            else:
                self._gathering[group] = deque((one,))
                self._waiting.append(group)
            if self._idle:
                woken = self._idle.pop()
            else:
                self._start_missing()
        if woken is not None:
            woken.release()  # not before the lock, for which it would wait
        return True

    def _wake(self, count: int = 1) -> None:
        """Under the lock: wakes `count` idle threads. If there are fewer, others are started for what waits."""
        woken = min(count, len(self._idle))
        for _ in range(woken):
            self._idle.pop().release()
        for _ in range(min(count, len(self._waiting) + len(self._postponed)) - woken):
            self._start_missing()

    def _count_waiting(self) -> int:
        single = len(self._waiting) + len(self._held_back)
        if not self._gathering:
            return single
        groups = len(self._gathering) - len(self._executing)
        return single - groups + sum(map(len, self._gathering.values()))

    def refusal(self) -> str:
        """The text for the client if `submit` returned False."""
        return (
            f"too many calls wait for a thread of the pool {self.name}: {self._max_waiting} "
            "(setting server.max_waiting_per_pool); retry"
        )

    def give_up(self, token: object) -> bool:
        """The time of the call is up. True: it had not begun, and never will. Otherwise its thread is freed, or another
        thread takes its place for the next call."""
        with self._lock:
            if self._remove_waiting(token) is not None:
                return True
            thread = self._running.get(token)
            if thread is None:
                return False
            self._stuck.add(token)
            self._stuck_threads.add(thread)
            self._large_ended(token)
            self._wake()
            for group in [one for one, by in self._executing.items() if by == thread]:
                self._end_execution(group)
            # Under the lock, so that the thread cannot begin another call meanwhile, whose connection would be closed.
            cut = self._connections is not None and self._connections.interrupt(thread)
        _log.warning(
            "a call of the pool %s is stuck; %s", self.name, "its connection is closed" if cut else "it holds none"
        )
        return False

    def withdraw(self, token: object) -> bool:
        """The answer is not needed any more. True: the call had not begun, and never will; otherwise it continues."""
        with self._lock:
            return self._remove_waiting(token) is not None

    def postpone(self, token: object) -> bool:
        """The answer is probably not needed any more: the call lets all others pass. False: it was waiting, and too
        many calls wait in this way; it is removed."""
        with self._lock:
            one = self._remove_waiting(token)
            if one is None:
                return True
            if len(self._postponed) >= self._max_waiting:
                self._refused += 1
                return False
            self._postponed.append(one)
            self._wake()
            return True

    def _remove_waiting(self, token: object) -> _Waiting | None:
        """Under the lock: removes a waiting call and returns it; None: it was not waiting."""
        for one in self._calls_waiting():
            if one.token is token:
                for queue in self._queues():
                    if one in queue:
                        queue.remove(one)
                return one
        return None

    def _queues(self) -> list[deque[_Waiting | Group]]:
        queues = [self._waiting, self._held_back, self._postponed, *self._gathering.values()]
        return cast("list[deque[_Waiting | Group]]", queues)

    def _calls_waiting(self) -> list[_Waiting]:
        return [one for queue in self._queues() for one in queue if isinstance(one, _Waiting)]

    def load(self) -> ThreadPoolLoad:
        """The present load."""
        with self._lock:
            since_s = [one.since_s for one in self._calls_waiting()]
            oldest = time.monotonic() - min(since_s) if since_s else 0.0
            return ThreadPoolLoad(
                self.name,
                min(self._size, self._max_threads() - len(self._stuck_threads)),
                len(self._running) - len(self._stuck),
                self._count_waiting() + len(self._postponed),
                self._max_waiting,
                oldest,
                len(self._stuck),
                self._refused,
                self._begun,
                self._waited_s / max(self._begun, 1),
                len(self._held_back),
            )

    def close(self) -> None:
        """Accepts no more calls. Queued ones still run."""
        with self._lock:
            self._closed = True
            self._wake(len(self._idle))

    def join(self, timeout_s: float) -> None:
        """Waits for all threads together, at most `timeout_s`, after `close`."""
        end_s = time.monotonic() + timeout_s
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(0.0, end_s - time.monotonic()))

    def _free_threads(self) -> int:
        return len(self._threads) - len(self._stuck_threads)

    def _max_threads(self) -> int:
        """Including threads that stuck calls occupy."""
        return self._size * (1 + MAX_REPLACEMENTS)

    def _start_missing(self) -> None:
        """Under the lock: starts one more thread, if the limits allow it."""
        if self._free_threads() >= self._size or len(self._threads) >= self._max_threads():
            return
        try:
            self._start_one()
        except RuntimeError as error:  # the system has no more threads: waiting calls run when others have ended
            _limited_log.error("no thread can be started in the pool %s: %s", self.name, error)

    def _start_one(self) -> None:
        thread = threading.Thread(target=self._run, name=f"{CALL_THREADS}-{self.name}-{self._started}", daemon=True)
        thread.start()
        self._started += 1
        self._threads.add(thread)

    def _large_ended(self, token: object) -> None:
        """Under the lock: if this call's reply was large, the next call that was held back becomes the next of all."""
        if token in self._large:
            self._large.remove(token)
            if self._held_back:
                self._waiting.appendleft(self._held_back.popleft())

    def _end_execution(self, group: Group, takers: int = 0) -> None:
        """Under the lock: the calls that gathered meanwhile are queued.

        `takers`: threads that are about to look into the queue anyway.
        """
        del self._executing[group]
        if self._gathering[group]:
            self._waiting.append(group)
            if len(self._waiting) > takers:
                self._wake()
        else:
            del self._gathering[group]

    def _end(self, done: list[_Waiting], group: Group | None) -> bool:
        """Under the lock: removes the calls that this thread has finished. False: the thread is to end, another has
        taken its place."""
        me, count = threading.get_ident(), len(done)
        for one in done:
            self._running.pop(one.token, None)
            self._stuck.discard(one.token)
            self._large_ended(one.token)
        done.clear()  # the requests of calls, not to be kept while this thread waits
        if group is not None and self._executing.get(group) == me:
            self._in_step[group].ended(count, len(self._gathering[group]), time.monotonic())
            self._end_execution(group, takers=1)
        if me in self._stuck_threads:
            self._stuck_threads.discard(me)
            if self._connections is not None:
                self._connections.call_ended(me)
            if self._free_threads() > self._size:
                self._threads.discard(threading.current_thread())
                self._wake()  # for the work that it would have taken
                return False
        return True

    def _next(
        self, done: list[_Waiting], group: Group | None, bell: threading.Lock
    ) -> tuple[list[_Waiting], Group | None] | None:
        """The next calls for this thread, which has finished `done` and is woken by `bell`; None: the thread is to
        end."""
        with self._lock:
            if not self._end(done, group):
                return None
            dequeued: list[_Waiting] = []
            group = None
            while not dequeued:
                while not self._waiting and not self._postponed:
                    if self._closed:
                        return None
                    self._idle.append(bell)
                    self._lock.release()
                    try:
                        bell.acquire()
                    finally:
                        self._lock.acquire()
                first = self._waiting.popleft() if self._waiting else self._postponed.popleft()
                if isinstance(first, _Waiting):
                    if first.is_large and len(self._large) >= self._max_large:
                        self._held_back.append(first)
                        continue
                    if first.is_large:
                        self._large.add(first.token)
                    dequeued, group = [first], None
                    break
                group, gathering = first, self._gathering[first]
                self._executing[group] = threading.get_ident()
                self._linger(group, bell)
                dequeued = [gathering.popleft() for _ in range(min(len(gathering), group.most))]
                if not dequeued:  # all of them were given up
                    del self._executing[group]
                    del self._gathering[group]
            me, now_s = threading.get_ident(), time.monotonic()
            for one in dequeued:
                self._running[one.token] = me
                self._waited_s += now_s - one.since_s
            self._begun += len(dequeued)
        if self._observe_wait is not None:
            for one in dequeued:
                self._observe_wait(self.name, now_s - one.since_s)
        return dequeued, group

    def _linger(self, group: Group, bell: threading.Lock) -> None:
        """Under the lock, which is released during the wait: waits for further calls of the group."""
        in_step = self._in_step.setdefault(group, InStep())
        gathering = self._gathering[group]
        wait_s = 0.0 if self._waiting and not self._idle else in_step.wait_s(len(gathering), time.monotonic())
        if wait_s > 0:
            self._lingering[group] = bell
            self._lock.release()
            try:
                woken = bell.acquire(timeout=wait_s)
            finally:
                self._lock.acquire()
            if self._lingering.pop(group, None) is None and not woken:
                bell.acquire()  # the last one arrived just after the timeout
            in_step.waited(len(gathering))
        in_step.begun_s = time.monotonic()

    def _run(self) -> None:
        if self._on_thread_start is not None:
            self._on_thread_start()
        done: list[_Waiting] = []
        group: Group | None = None
        bell = threading.Lock()
        bell.acquire()
        while (found := self._next(done, group, bell)) is not None:
            done, group = found
            del found  # a waiting thread would keep the last request and its connection
            try:
                with scheduler.slot() if self._is_scheduled else scheduler.first():
                    if group is None or len(done) == 1:
                        done[0].work()
                    elif not group.run([one.member for one in done]):
                        self._run_alone(done)
            except Exception:
                # Work reports its own failures to its client. An exception here is a defect, and must not end the
                # thread.
                _log.exception("a call failed outside its own error handling")

    def _run_alone(self, calls: list[_Waiting]) -> None:
        """Runs each call by itself, before the waiting ones. Calls that were given up meanwhile have been answered."""
        with self._lock:
            alone = [one for one in calls if one.token not in self._stuck]
            for one in alone:
                del self._running[one.token]
            calls[:] = [one for one in calls if one.token in self._stuck]
            self._waiting.extendleft(reversed(alone))
            self._wake(len(alone))
