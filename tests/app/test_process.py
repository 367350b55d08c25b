"""What a server's process requires from the interpreter."""

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
    """Restored afterwards."""
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    yield
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
from hms_cache.app.signals import Signals

signals = Signals()
signals.install()
for sent in sys.argv[1:]:
    numbers = [int(number) for number in sent.split("+")]
    threading.Thread(target=lambda: [signal.pthread_kill(threading.get_ident(), number) for number in numbers]).start()
    print("stop" if signals.wait() else "reload", flush=True)
"""


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ((signal.SIGHUP, signal.SIGTERM), ["reload", "stop"]),
        ((signal.SIGINT,), ["stop"]),
    ],
)
def test_a_signal_is_heard_whichever_thread_the_kernel_interrupts(sent: tuple[int, ...], told: list[str]) -> None:
    """As when one signal follows another that is being delivered to the main thread."""
    command = [sys.executable, "-c", SIGNALLED, *(str(int(number)) for number in sent)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout.split()) == (0, told), ran.stderr


def test_a_stop_comes_before_reloads() -> None:
    both = f"{int(signal.SIGHUP)}+{int(signal.SIGHUP)}+{int(signal.SIGTERM)}"
    program = SIGNALLED.replace(").start()", "); one.start(); one.join()").replace(
        "threading.Thread(", "one = threading.Thread("
    )
    ran = subprocess.run([sys.executable, "-c", program, both], capture_output=True, text=True, timeout=60)
    assert ran.stdout.split() == ["stop"], ran.stderr


FORKED = """
import os, select, signal
from hms_cache.app.signals import Signals, fork

signals = Signals()
signals.install()
real = os.fork


def fork_and_be_told():
    process = real()
    if not process:  # before the child can have done anything
        for number in (signal.SIGHUP, signal.%s):
            os.kill(os.getpid(), number)
    return process


os.fork = fork_and_be_told
process = fork()
if not process:
    own = Signals()
    own.install()
    print("reload" if not own.wait() else "stop", flush=True)
    os._exit(0)
status = os.waitpid(process, 0)[1]
print(os.waitstatus_to_exitcode(status), sorted(signals.received(0)), flush=True)
"""


@pytest.mark.parametrize(("number", "told"), [("SIGHUP", ["reload", "0", "[]"]), ("SIGTERM", ["-15", "[]"])])
def test_a_signal_to_a_child_is_its_own_from_its_first_moment(number: str, told: list[str]) -> None:
    """A stop ends it, a reload waits until it accepts signals; its parent gets neither."""
    ran = subprocess.run([sys.executable, "-c", FORKED % number], capture_output=True, text=True, timeout=60)
    assert ran.stdout.split() == told, ran.stderr


ORPHAN = """
import os, time
from hms_cache.app.child_processes import end_with_parent

parent = os.getpid()
if os.fork() == 0:
    while os.getppid() == parent:
        time.sleep(0.01)
    end_with_parent(parent)
    print("lives on")
"""


def test_a_child_whose_parent_was_gone_first_ends() -> None:
    """Nobody could send it a signal any more. Its pipes close when it ends."""
    ran = subprocess.run([sys.executable, "-c", ORPHAN], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


CRASHING = """
import os, signal, threading
from hms_cache.app.child_processes import show_crashes

show_crashes()
if os.fork() == 0:
    os.kill(os.getpid(), signal.SIGSEGV)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_crash_shows_where_it_was() -> None:
    ran = subprocess.run([sys.executable, "-c", CRASHING], capture_output=True, text=True, timeout=60)
    assert ran.stdout == f"{-signal.SIGSEGV}\n"
    assert "Segmentation fault" in ran.stderr and 'File "<string>", line 7' in ran.stderr


LEAVING = """
import asyncio, logging, threading
from hms_cache.app.child_processes import exit_process
from hms_cache.app.log_output import set_up_logging
from hms_cache.config import LogSettings

set_up_logging(LogSettings())


async def log() -> None:
    for number in range(1000):
        logging.getLogger("hms_cache").info("line %d", number)


asyncio.run(log())
threading.Thread(target=threading.Event().wait).start()
exit_process(3)
"""


def test_a_process_that_leaves_waits_for_no_thread_and_has_written_its_log() -> None:
    ran = subprocess.run([sys.executable, "-c", LEAVING], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 3
    assert ran.stderr.count("line ") == 1000
