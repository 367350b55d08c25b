"""The shared position check: which reads share a query."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

from hms_cache.cache.position_check import CheckResult, PositionCheck
from hms_cache.clock import SystemClock
from hms_cache.notifications.event_log import UNKNOWN_HISTORY, LogHead
from hms_cache.store.engine.errors import DatabaseUnavailable

LIMIT_S = 20


class Database:
    """Returns the position when the test permits it, and counts checks."""

    def __init__(self) -> None:
        self.position = 1
        self.requested: list[threading.Event] = []
        self.may_answer: list[threading.Event] = []
        self.lock = threading.Lock()
        self.fails = False
        self.new_question = threading.Condition(self.lock)

    def read(self) -> LogHead:
        with self.lock:
            gate = threading.Event()
            self.may_answer.append(gate)
            position = self.position  # the position when the query reaches the database
            self.new_question.notify_all()
        assert gate.wait(LIMIT_S)
        if self.fails:
            raise DatabaseUnavailable("away")
        return LogHead(position, UNKNOWN_HISTORY)

    def wait_for_questions(self, count: int) -> None:
        with self.lock:
            assert self.new_question.wait_for(lambda: len(self.may_answer) >= count, LIMIT_S)


def asking(check: PositionCheck, results: list[CheckResult | Exception]) -> threading.Thread:
    def run() -> None:
        try:
            results.append(check.check())
        except DatabaseUnavailable as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def wait_for_requests(check: PositionCheck, count: int) -> None:
    deadline = threading.Event()
    for _ in range(2000):
        if check.requests >= count:
            return
        deadline.wait(0.005)
    pytest.fail(f"{check.requests} of {count} requests came")


def test_one_who_arrives_while_a_check_is_on_its_way_joins_the_next_one() -> None:
    database = Database()
    check = PositionCheck(database.read, SystemClock())
    first: list[CheckResult | Exception] = []
    late: list[CheckResult | Exception] = []
    threads = [asking(check, first)]
    database.wait_for_questions(1)
    # A write commits after the database answered the first check, but before the answer has arrived.
    database.position = 2
    threads += [asking(check, late) for _ in range(5)]
    wait_for_requests(check, 6)
    database.may_answer[0].set()
    database.wait_for_questions(2)
    database.may_answer[1].set()
    for thread in threads:
        thread.join(LIMIT_S)
    assert [one.position for one in first if isinstance(one, CheckResult)] == [1]
    assert [one.position for one in late if isinstance(one, CheckResult)] == [2] * 5
    assert check.checks == 2


def test_a_failed_check_fails_those_who_shared_it_and_nobody_else() -> None:
    database = Database()
    check = PositionCheck(database.read, SystemClock())
    first: list[CheckResult | Exception] = []
    second: list[CheckResult | Exception] = []
    database.fails = True
    thread = asking(check, first)
    database.wait_for_questions(1)
    other = asking(check, second)
    wait_for_requests(check, 2)
    database.may_answer[0].set()
    thread.join(LIMIT_S)
    database.wait_for_questions(2)
    database.fails = False
    database.may_answer[1].set()
    other.join(LIMIT_S)
    assert isinstance(first[0], DatabaseUnavailable)
    assert isinstance(second[0], CheckResult)


def test_a_thousand_checks_of_eight_threads_end() -> None:
    counter = [0]

    def read() -> LogHead:
        counter[0] += 1
        return LogHead(counter[0], UNKNOWN_HISTORY)

    check = PositionCheck(read, SystemClock())
    seen: list[list[int]] = [[] for _ in range(8)]

    def run(mine: list[int]) -> None:
        mine.extend(check.check().position for _ in range(125))

    threads = [threading.Thread(target=run, args=(one,)) for one in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert [len(one) for one in seen] == [125] * 8
    assert all(one == sorted(one) for one in seen), "a thread's checks never go back"
    assert check.checks <= check.requests == 1000


STOPPED = """
import sys, threading, time
from hms_cache.cache.position_check import PositionCheck
from hms_cache.clock import SystemClock
from hms_cache.notifications.event_log import UNKNOWN_HISTORY, LogHead

def read():
    sys.stdin.readline()  # the database answers
    return LogHead(7, UNKNOWN_HISTORY)

check, found = PositionCheck(read, SystemClock(), timeout_s=1.5), []
threads = [threading.Thread(target=lambda: found.append(check.check().position)) for _ in range(4)]
for thread in threads:
    thread.start()
while check.requests < 4:
    time.sleep(0.001)
print("waiting", flush=True)
for thread in threads:
    thread.join()
print(found, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs signals of POSIX")
def test_the_time_in_which_the_process_is_stopped_does_not_count() -> None:
    child = subprocess.Popen([sys.executable, "-c", STOPPED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdin is not None and child.stdout is not None
        assert child.stdout.readline() == "waiting\n"
        child.send_signal(signal.SIGSTOP)
        time.sleep(2)  # longer than they wait; nothing is asserted on it
        child.send_signal(signal.SIGCONT)
        child.stdin.write("one\n" * 4)
        child.stdin.flush()
        assert child.stdout.readline() == "[7, 7, 7, 7]\n"
    assert child.returncode == 0
