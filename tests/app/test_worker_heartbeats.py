"""Which workers count as hanging."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from hms_cache.app.worker_heartbeats import HangWatch, Heartbeats, is_stopped

TIMEOUT_S = 60.0
WORKER, OTHER = 11, 12


class Bench:
    """Two workers that a parent observes."""

    def __init__(self) -> None:
        self.stopped: set[int] = set()
        self.watch = HangWatch(TIMEOUT_S, self.stopped.__contains__)
        self.now_s = 1000.0
        self.beats = {WORKER: 1, OTHER: 1}

    def look_for(self, seconds: float, *beating: int, step_s: float | None = None) -> set[int]:
        """Observes for this long, while these workers count. Returns those found to hang."""
        found: set[int] = set()
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.now_s += self.watch.interval_s if step_s is None else step_s
            for one in beating:
                self.beats[one] += 1
            found.update(self.watch.hanging(self.now_s, self.beats))
        return found


def test_who_counts_does_not_hang() -> None:
    bench = Bench()
    assert bench.look_for(10 * TIMEOUT_S, WORKER, OTHER) == set()


def test_who_is_silent_for_the_whole_time_hangs() -> None:
    bench = Bench()
    assert bench.look_for(TIMEOUT_S, WORKER, OTHER) == set()
    assert bench.look_for(0.8 * TIMEOUT_S, OTHER) == set()
    assert bench.look_for(0.5 * TIMEOUT_S, OTHER) == {WORKER}


def test_one_count_is_enough() -> None:
    """A loop that does something now and then is only slow."""
    bench = Bench()
    for _ in range(20):
        assert bench.look_for(0.8 * TIMEOUT_S, OTHER) == set()
        assert bench.look_for(bench.watch.interval_s, WORKER, OTHER) == set()


def test_time_that_the_parent_has_not_had_either_does_not_count() -> None:
    """The machine was suspended, or had no processor time for any process: none could count."""
    bench = Bench()
    bench.look_for(TIMEOUT_S, WORKER, OTHER)
    assert bench.look_for(100 * TIMEOUT_S, step_s=100 * TIMEOUT_S) == set()
    assert bench.look_for(0.5 * TIMEOUT_S) == set()


def test_who_starts_stops_or_is_stopped_is_left_alone() -> None:
    bench = Bench()
    bench.beats[WORKER] = 0
    bench.stopped.add(OTHER)
    assert bench.look_for(3 * TIMEOUT_S) == set()
    bench.stopped.clear()
    assert bench.look_for(0.8 * TIMEOUT_S) == set(), "its time begins anew"
    assert bench.look_for(0.5 * TIMEOUT_S) == {OTHER}


def test_a_successor_begins_anew() -> None:
    beats = Heartbeats(2)
    first, other = beats.slot(0), beats.slot(1)
    for _ in range(3):
        first.beat()
    other.beat()
    assert (beats.beats(0), beats.beats(1)) == (3, 1)
    first.end()
    first.beat()
    assert beats.beats(0) == 0, "it is stopping"
    other.beat()
    successor = beats.slot(1)
    assert beats.beats(1) == 0
    successor.beat()
    assert (beats.beats(0), beats.beats(1)) == (0, 1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the state of processes is Linux's")
def test_a_stopped_process_is_known() -> None:
    child = subprocess.Popen(["/bin/sh", "-c", "printf ready; read line"], stdin=-1, stdout=-1)
    assert child.stdin is not None and child.stdout is not None
    try:
        assert child.stdout.read(5) == b"ready"
        assert not is_stopped(child.pid)
        os.kill(child.pid, signal.SIGSTOP)
        assert os.waitpid(child.pid, os.WUNTRACED)[0] == child.pid
        assert is_stopped(child.pid)
    finally:
        child.kill()
        child.communicate(timeout=120)
    assert not is_stopped(child.pid)
