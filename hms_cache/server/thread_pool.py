"""Bounded thread pools for calls that need the database (`server/method_pools.py` says which call runs in which).

Smaller than `concurrent.futures` on purpose: a call costs one queue hop there and one `call_soon_threadsafe` back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

from hms_cache.computing import turns
from hms_cache.limited_log import LimitedLog
from hms_cache.metrics.thread_pools import ThreadPoolLoad
from hms_cache.values import frozen

_log = logging.getLogger(__name__)
_limited_log = LimitedLog(_log)


CALL_THREADS = "hms-call"
"""How names of their threads begin."""

MAX_REPLACEMENTS = 2
"""Times its threads a pool may start in place of those that stuck calls hold: a bound, since what holds a call for ever
(a file system that does not answer) may hold the next one, too."""


SMALL_GROUP = 8
"""Members that are worth waiting for: more share the cost of a database transaction well enough."""

LINGER_S = 0.0005
"""The longest wait for them. A client on the same network has read its reply and sent its next call by then."""

LINGER_SHARE = 0.3
"""Of what the calls before took: a wait for nothing makes nobody much later."""

MAX_SKIPPED = 64
"""Chances that a group lets pass after waits for nothing, at most: it notices soon that clients keep in step again."""


@frozen
class Group:
    """Calls of one kind that one thread carries out together. Compared by identity of what it runs."""

    name: str
    most: int
    """As many are carried out at once."""
    run: Callable[[Sequence[Any]], bool]
    """Carries members out, two or more; must not raise. False: nothing was done, each is to be run alone."""


class Connections(Protocol):
    """The connections to the database that threads hold."""

    def cut_off(self, thread: int) -> bool:
        """Ends what the thread of this identifier waits for, and keeps it from the database until its call has ended.
        False: it holds no connection."""
        ...

    def call_ended(self, thread: int) -> None:
        """The call of a thread that was cut off has ended."""
        ...


class _Waiting(NamedTuple):
    work: Callable[[], None]
    token: object
    since_s: float
    member: Any = None
    """What a group is given."""

    is_large: bool = False
    """Whether its reply will take much memory, and its thread for long."""


@dataclass(slots=True)
class InStep:
    """How calls of a group follow each other. Clients that each wait for their reply come back together, a moment after
    it; one that came meanwhile would go alone just before them, then they without it, each time at the cost of a
    database transaction of its own. So it waits for them a moment, as PostgreSQL's `commit_delay` lets commits do.
    """

    expected: int = 0
    """So many will have come if all come back."""
    until_s: float = 0.0
    """By then, on `time.monotonic()`."""
    misses: int = 0
    """Waits for nothing since the last that was worth it."""
    skipped: int = 0
    """Chances to wait that passed since the last wait."""
    begun_s: float = 0.0

    def ended(self, done: int, gathered: int, now_s: float) -> None:
        """So many have been carried out since `begun_s`, and so many have come meanwhile."""
        self.expected = done + gathered
        self.until_s = now_s + min(LINGER_S, LINGER_SHARE * (now_s - self.begun_s))

    def wait_s(self, gathered: int, now_s: float) -> float:
        """Seconds to wait for the others where so many have come; 0 or less: none."""
        if not gathered < self.expected <= SMALL_GROUP or now_s >= self.until_s:
            return 0.0
        if self.skipped < min(2**self.misses - 1, MAX_SKIPPED):
            self.skipped += 1
            return 0.0
        self.skipped = 0
        return self.until_s - now_s

    def waited(self, gathered: int) -> None:
        """So many are there at the end of a wait."""
        self.misses = 0 if gathered >= self.expected else self.misses + 1


class ThreadPool:
    """`threads` daemon threads that run submitted work in order of arrival; at most `max_waiting` wait for them.

    A thread is started when work comes and none is idle: most servers, and each of many worker processes, never use all
    of theirs.

    Calls of a group wait for no thread of their own: while one thread carries some out, those that come gather, and
    are carried out together when it is done. Of a group that nobody is using the first runs at once and alone; where
    the calls before had others with them, the next ones wait a moment for those to come back (`InStep`). Groups take
    turns with each other and with single calls in the order in which they began to wait.

    ``_lock`` guards all state. A call that is given up is cut off from its database connection, which ends most of
    them; another thread takes its place meanwhile, and whichever is one too many at the end stops.

    Of calls with large replies some run at a time: those beyond them let others pass, and have the next thread that one
    of their kind leaves.
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
        takes_turns: bool = False,
        max_large: int | None = None,
    ) -> None:
        """`on_thread_start` runs first on each thread. `connections`: those that calls use.
        `observe_wait` is told the name of the pool and the seconds that a call waited for its thread.
        `takes_turns`: the threads compute by turns (`hms_cache.computing`).
        `max_large`: as many calls with large replies run at a time; None: as many as there are threads.
        """
        self.name = name
        self._size = threads
        self._max_waiting = max_waiting
        self._on_thread_start = on_thread_start
        self._connections = connections
        self._observe_wait = observe_wait
        self._takes_turns = takes_turns
        self._lock = threading.Lock()
        self._waiting: deque[_Waiting | Group] = deque()
        """Single calls, and groups of which calls wait and that no thread is carrying out."""
        self._max_large = threads if max_large is None else max_large
        self._large: set[object] = set()
        """Tokens of those that run and are not stuck."""
        self._held_back: deque[_Waiting] = deque()
        """Calls with large replies that had their turn when as many ran as may."""
        self._postponed: deque[_Waiting] = deque()
        """Calls that have a thread when no other waits for one. They take no places of others, and have as many."""
        self._gathering: dict[Group, deque[_Waiting]] = {}
        """Calls that wait, of each group that has any or is being carried out."""
        self._carried_out: dict[Group, int] = {}
        """The identifier of the thread that does."""
        self._in_step: dict[Group, InStep] = {}
        self._lingering: dict[Group, threading.Lock] = {}
        """What wakes the thread that waits for more calls of the group."""
        self._idle: list[threading.Lock] = []
        """What wakes each thread that has nothing to do, when it is released. The last to go idle is the first to be
        woken: its stack, its connection and the database's thread behind that are still in the processor's caches."""
        self._running: dict[object, int] = {}
        """Token of each call that runs: the identifier of its thread."""
        self._stuck: set[object] = set()
        self._stuck_threads: set[int] = set()
        self._threads: set[threading.Thread] = set()
        self._started = 0
        self._closed = False
        self._refused = 0
        self._begun = 0
        self._waited_s = 0.0

    def start(self) -> None:
        """Starts the first thread: a system that has none to give says so now, and what is queued is always run."""
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
        """Queues `work`, which must not raise; it runs on one of the threads. False: too many wait.

        With a `group` it is run only if the call is alone: else the group carries `member` out. `is_large`: its reply
        is; such a call has no group.
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
        """Under the lock: so many idle threads look into the queue. Where there are fewer, others are started for what
        waits."""
        woken = min(count, len(self._idle))
        for _ in range(woken):
            self._idle.pop().release()
        for _ in range(min(count, len(self._waiting) + len(self._postponed)) - woken):
            self._start_missing()

    def _count_waiting(self) -> int:
        single = len(self._waiting) + len(self._held_back)
        if not self._gathering:
            return single
        groups = len(self._gathering) - len(self._carried_out)
        return single - groups + sum(map(len, self._gathering.values()))

    def refusal(self) -> str:
        """What a client is told when `submit` said no."""
        return (
            f"too many calls wait for a thread of the pool {self.name}: {self._max_waiting} "
            "(setting server.max_waiting_per_pool); retry"
        )

    def give_up(self, token: object) -> bool:
        """The call's time is up. True: it had not begun, and never will. Otherwise its thread is freed, or another one
        takes its place for the next call."""
        with self._lock:
            if self._take_back(token) is not None:
                return True
            thread = self._running.get(token)
            if thread is None:
                return False
            self._stuck.add(token)
            self._stuck_threads.add(thread)
            self._large_ended(token)
            self._wake()
            for group in [one for one, by in self._carried_out.items() if by == thread]:
                self._carried_out_no_more(group)
            # Under the lock: the thread cannot go on to another call meanwhile, whose connection would be cut.
            cut = self._connections is not None and self._connections.cut_off(thread)
        _log.warning(
            "a call of the pool %s is stuck; %s", self.name, "its connection is closed" if cut else "it holds none"
        )
        return False

    def withdraw(self, token: object) -> bool:
        """Nobody wants the call any more. True: it had not begun, and never will; otherwise it goes on."""
        with self._lock:
            return self._take_back(token) is not None

    def postpone(self, token: object) -> bool:
        """Hardly anybody wants the call: it lets all others pass. False: it was waiting, and too many do that wait so;
        it waits no more."""
        with self._lock:
            one = self._take_back(token)
            if one is None:
                return True
            if len(self._postponed) >= self._max_waiting:
                self._refused += 1
                return False
            self._postponed.append(one)
            self._wake()
            return True

    def _take_back(self, token: object) -> _Waiting | None:
        """Under the lock: the call if it was waiting; it waits no more."""
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
        """What it does now."""
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
        """Takes no more; what is queued still runs."""
        with self._lock:
            self._closed = True
            self._wake(len(self._idle))

    def join(self, timeout_s: float) -> None:
        """Waits for all threads together at most `timeout_s`, after `close`."""
        end_s = time.monotonic() + timeout_s
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(0.0, end_s - time.monotonic()))

    def _free_threads(self) -> int:
        return len(self._threads) - len(self._stuck_threads)

    def _max_threads(self) -> int:
        """Those that stuck calls hold among them."""
        return self._size * (1 + MAX_REPLACEMENTS)

    def _start_missing(self) -> None:
        """Under the lock: one more thread, if there may be one."""
        if self._free_threads() >= self._size or len(self._threads) >= self._max_threads():
            return
        try:
            self._start_one()
        except RuntimeError as error:  # the system has no more: what waits has a thread when a call has ended
            _limited_log.error("no thread can be started in the pool %s: %s", self.name, error)

    def _start_one(self) -> None:
        thread = threading.Thread(target=self._run, name=f"{CALL_THREADS}-{self.name}-{self._started}", daemon=True)
        thread.start()
        self._started += 1
        self._threads.add(thread)

    def _large_ended(self, token: object) -> None:
        """Under the lock: the next one that was held back is the next of all, if this call's reply was large."""
        if token in self._large:
            self._large.remove(token)
            if self._held_back:
                self._waiting.appendleft(self._held_back.popleft())

    def _carried_out_no_more(self, group: Group, takers: int = 0) -> None:
        """Under the lock: those that gathered meanwhile are next, at the end of the queue.

        `takers`: threads that are about to look into the queue anyway.
        """
        del self._carried_out[group]
        if self._gathering[group]:
            self._waiting.append(group)
            if len(self._waiting) > takers:
                self._wake()
        else:
            del self._gathering[group]

    def _end(self, done: list[_Waiting], group: Group | None) -> bool:
        """Under the lock: what this thread has done is taken out. False: it is to end, another has taken its place."""
        me, count = threading.get_ident(), len(done)
        for one in done:
            self._running.pop(one.token, None)
            self._stuck.discard(one.token)
            self._large_ended(one.token)
        done.clear()  # the requests of calls, not to be kept while this waits
        if group is not None and self._carried_out.get(group) == me:
            self._in_step[group].ended(count, len(self._gathering[group]), time.monotonic())
            self._carried_out_no_more(group, takers=1)
        if me in self._stuck_threads:
            self._stuck_threads.discard(me)
            if self._connections is not None:
                self._connections.call_ended(me)
            if self._free_threads() > self._size:
                self._threads.discard(threading.current_thread())
                self._wake()  # for what it would have taken
                return False
        return True

    def _next(
        self, done: list[_Waiting], group: Group | None, bell: threading.Lock
    ) -> tuple[list[_Waiting], Group | None] | None:
        """The next calls for this thread, which has `done` others and is woken by `bell`; None: it is to end."""
        with self._lock:
            if not self._end(done, group):
                return None
            taken: list[_Waiting] = []
            group = None
            while not taken:
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
                    taken, group = [first], None
                    break
                group, gathering = first, self._gathering[first]
                self._carried_out[group] = threading.get_ident()
                self._linger(group, bell)
                taken = [gathering.popleft() for _ in range(min(len(gathering), group.most))]
                if not taken:  # all were given up
                    del self._carried_out[group]
                    del self._gathering[group]
            me, now_s = threading.get_ident(), time.monotonic()
            for one in taken:
                self._running[one.token] = me
                self._waited_s += now_s - one.since_s
            self._begun += len(taken)
        if self._observe_wait is not None:
            for one in taken:
                self._observe_wait(self.name, now_s - one.since_s)
        return taken, group

    def _linger(self, group: Group, bell: threading.Lock) -> None:
        """Under the lock, which it gives back while it waits: for calls of the group that are about to come."""
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
                bell.acquire()  # the last of them came just after
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
            del found  # a thread that waits would keep the last request and its connection
            try:
                with turns.taken() if self._takes_turns else turns.first():
                    if group is None or len(done) == 1:
                        done[0].work()
                    elif not group.run([one.member for one in done]):
                        self._run_alone(done)
            except Exception:
                # Work reports its own failures to its client; anything here is a defect, and must not end the thread.
                _log.exception("a call failed outside its own error handling")

    def _run_alone(self, calls: list[_Waiting]) -> None:
        """Each runs for itself, before what waits; those that were given up meanwhile have heard of it."""
        with self._lock:
            alone = [one for one in calls if one.token not in self._stuck]
            for one in alone:
                del self._running[one.token]
            calls[:] = [one for one in calls if one.token in self._stuck]
            self._waiting.extendleft(reversed(alone))
            self._wake(len(alone))
