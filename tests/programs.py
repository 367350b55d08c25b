"""Servers that are programs of their own and print the port that they listen on."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.servers import PATIENCE_S


@contextmanager
def running(command: Sequence[str], log: Path, port_in: Callable[[str], int | None] = int) -> Iterator[int]:
    """The port of a server that is ready, stopped at the end. `port_in`: of a line that it prints; None: none."""
    with log.open("w") as errors:
        process = subprocess.Popen(command, cwd=log.parent, stdout=subprocess.PIPE, stderr=errors, text=True)
    timer = threading.Timer(PATIENCE_S, process.kill)
    timer.start()
    try:
        assert process.stdout is not None
        port = None
        while port is None:
            line = process.stdout.readline()
            assert line, f"{command[0]} has ended"
            port = port_in(line)
        timer.cancel()
        # What it says later has to be read, or it waits.
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield port
    finally:
        timer.cancel()
        process.terminate()
        process.wait(30)
