"""Processes forked by a Python that has imported what servers import: starting one takes a twentieth of the time.

A third of the processor time of a run was spent on imports of server processes.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

_PROGRAM = Path(__file__).with_name("forking.py").read_text()

_READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "OPENBLAS_", "OMP_", "FAKETIME")
"""How names of variables begin that an interpreter, or what is loaded into it, looks at when it starts."""


class PreparedProcess:
    """A process, as far as tests use `subprocess.Popen`."""

    def __init__(self, status: socket.socket, stdout: IO[str], stderr: IO[str] | None) -> None:
        """`stderr`: None if its errors go to a file."""
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self._status = status
        self.pid = self._number()

    def poll(self) -> int | None:
        """Returns its exit code, below 0 for a signal; None while it runs."""
        if self.returncode is None:
            with suppress(subprocess.TimeoutExpired):
                self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits until it has ended. Raises `subprocess.TimeoutExpired`."""
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._status, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self.returncode = self._number()
            self._status.close()
        return self.returncode

    def communicate(self, *, timeout: float | None = None) -> tuple[str, str | None]:
        """Returns what it and its forked processes write until all have ended. Raises `subprocess.TimeoutExpired`."""
        end_s = None if timeout is None else time.monotonic() + timeout

        def rest_s() -> float | None:
            return None if end_s is None else max(0.0, end_s - time.monotonic())

        written = {stream: bytearray() for stream in (self.stdout, self.stderr) if stream is not None}
        with selectors.DefaultSelector() as selector:
            for stream in written:
                if not stream.closed:
                    selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(rest_s())
                if not ready:
                    raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
                for key, _ in ready:
                    part = os.read(key.fd, 1 << 16)
                    written[key.fileobj] += part  # type: ignore[index]
                    if not part:
                        selector.unregister(key.fileobj)
                        key.fileobj.close()  # type: ignore[union-attr]
        self.wait(rest_s())
        output, *errors = (part.decode(errors="replace") for part in written.values())
        return output, errors[0] if errors else None

    def send_signal(self, number: int) -> None:
        """Nothing if it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended since
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _number(self) -> int:
        data = self._status.recv(4, socket.MSG_WAITALL)
        if len(data) < 4:
            raise RuntimeError("who watches over the process has ended")
        number: int = struct.unpack("i", data)[0]
        return number


class PreparedPython:
    """An interpreter that waits for orders. It ends with this process; processes that it has forked remain."""

    def __init__(self) -> None:
        self._environment = read_at_start(os.environ)
        self._lock = threading.Lock()
        self._orders, theirs = socket.socketpair()
        command = [sys.executable, "-c", _PROGRAM, str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()])

    def is_like(self, environment: Mapping[str, str]) -> bool:
        """Whether an interpreter started with this environment would be equivalent."""
        return read_at_start(environment) == self._environment

    def start(
        self,
        program: str,
        arguments: Sequence[str],
        directory: Path,
        environment: Mapping[str, str],
        errors: IO[str] | None = None,
    ) -> PreparedProcess:
        """As ``python -c PROGRAM ARGUMENTS``. Its errors go to this file; without one they are read like its output."""
        order = {
            "program": program,
            "arguments": list(arguments),
            "directory": str(directory.resolve()),
            "environment": dict(environment),
            "processors": sorted(os.sched_getaffinity(0)),
        }
        text = json.dumps(order).encode()
        with ExitStack() as stack:
            reading, writing = os.pipe()
            output = stack.enter_context(open(writing, "w"))
            reading_errors = None
            if errors is None:
                reading_errors, writing = os.pipe()
                errors = stack.enter_context(open(writing, "w"))
            ours, theirs = socket.socketpair()
            stack.enter_context(theirs)
            with self._lock:
                told = [output.fileno(), errors.fileno(), theirs.fileno()]
                socket.send_fds(self._orders, [struct.pack("i", len(text))], told)
                self._orders.sendall(text)
        return PreparedProcess(ours, open(reading), None if reading_errors is None else open(reading_errors))

    def close(self) -> None:
        """There are no more orders."""
        self._orders.close()
        self._process.wait(30)


def read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that require another interpreter."""
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


class _Interpreters:
    """Two in turn: servers of one test hash texts differently, as those of two machines do."""

    def __init__(self) -> None:
        self._made: deque[PreparedPython] = deque()
        self._lock = threading.Lock()

    def next(self) -> PreparedPython:
        with self._lock:
            if len(self._made) < 2:
                made = PreparedPython()
                atexit.register(made.close)
                self._made.append(made)
            else:
                self._made.rotate()
            return self._made[-1]


_interpreters = _Interpreters()


def prepared_python() -> PreparedPython:
    """One of those of this process, made at its first use."""
    return _interpreters.next()
