"""How much work is done, counted in instructions of Python: they depend neither on the machine nor on its load.

What a function of C goes through in one step (a copy of a list, a sort) is not counted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


class _Counter:
    def __init__(self) -> None:
        self.count = 0

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        # Python 3.13 notes instructions of frames that have a trace function already.
        frame.f_trace = self.trace
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        self.count += event == "opcode"
        return self.trace


def instructions(work: Callable[[], object]) -> int:
    """Those that `work` takes, on this thread."""
    counter = _Counter()
    before = sys.gettrace()
    # Python 3.12 notes none before some frame has asked for them.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(counter.trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return counter.count


class CountedLock:
    """Replaces a lock that is held only for a moment: counts what its thread does meanwhile. Not thread-safe.

    Tests put it in the place of a cache's lock: `cache._lock`, and `Reading._view` if there is one.
    """

    def __init__(self) -> None:
        self.most = 0
        """Instructions under the lock at once, at most."""
        self._counter = _Counter()
        self._before: Any = None

    def __enter__(self) -> bool:
        caller = sys._getframe(1)
        self._counter, self._before = _Counter(), sys.gettrace()
        caller.f_trace, caller.f_trace_lines, caller.f_trace_opcodes = self._counter.trace, False, True
        sys.settrace(self._counter.trace)
        return True

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)
        sys._getframe(1).f_trace = None
        self.most = max(self.most, self._counter.count)
