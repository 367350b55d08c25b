"""What a server's process asks of the interpreter."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

from hms_cache.app.process import tune_interpreter


@pytest.fixture
def interpreter() -> Iterator[None]:
    """As it was before, afterwards."""
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval)


class _Node:
    other: _Node | None = None


@pytest.mark.usefixtures("interpreter")
def test_a_large_answer_starts_no_search_for_cycles_and_cycles_are_found_all_the_same() -> None:
    tune_interpreter()
    assert gc.isenabled() and gc.get_freeze_count() > 0
    before = [one["collections"] for one in gc.get_stats()]
    answer = [[number] for number in range(10_000)]
    assert sum(one["collections"] for one in gc.get_stats()) - sum(before) <= 1
    one, other = _Node(), _Node()
    one.other, other.other = other, one
    found = weakref.ref(one)
    del one, other
    answer += [[number] for number in range(3 * gc.get_threshold()[0])]
    assert found() is None


SIGNALLED = """
import signal, sys, threading
from hms_cache.app.process import _Signals

signals = _Signals()
signals.take()
for sent in sys.argv[1:]:
    numbers = [int(number) for number in sent.split("+")]
    threading.Thread(target=lambda: [signal.pthread_kill(threading.get_ident(), number) for number in numbers]).start()
    print(signals.wait().name, flush=True)
"""


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ((signal.SIGHUP, signal.SIGTERM), ["SIGHUP", "SIGTERM"]),
        ((signal.SIGINT,), ["SIGINT"]),
    ],
)
def test_a_signal_is_heard_whichever_thread_the_kernel_interrupts(sent: tuple[int, ...], told: list[str]) -> None:
    """As when one follows another that is on its way to the main thread."""
    command = [sys.executable, "-c", SIGNALLED, *(str(int(number)) for number in sent)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout.split()) == (0, told), ran.stderr


def test_a_stop_comes_before_reloads() -> None:
    both = f"{int(signal.SIGHUP)}+{int(signal.SIGHUP)}+{int(signal.SIGTERM)}"
    program = SIGNALLED.replace(").start()", "); one.start(); one.join()").replace(
        "threading.Thread(", "one = threading.Thread("
    )
    ran = subprocess.run([sys.executable, "-c", program, both], capture_output=True, text=True, timeout=60)
    assert ran.stdout.split() == ["SIGTERM"], ran.stderr
