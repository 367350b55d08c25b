"""Servers that are separate programs."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from tests.servers import MAX_WAIT_S


@contextmanager
def running(command: Sequence[str], log: Path, port_in: Callable[[str], int | None] = int) -> Iterator[int]:
    """Yields the port of a server that is ready; stops it at the end. `port_in` finds it in an output line; None: not
    printed."""
    with log.open("w") as errors:
        process = subprocess.Popen(command, cwd=log.parent, stdout=subprocess.PIPE, stderr=errors, text=True)
    timer = threading.Timer(MAX_WAIT_S, process.kill)
    timer.start()
    try:
        assert process.stdout is not None
        port = None
        while port is None:
            line = process.stdout.readline()
            assert line, f"{command[0]} has ended"
            port = port_in(line)
        timer.cancel()
        # Its later output must be read, or it waits.
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield port
    finally:
        timer.cancel()
        process.terminate()
        process.wait(30)


@contextmanager
def listening(command_on: Callable[[int], Sequence[str]], log: Path, **environment: str) -> Iterator[int]:
    """Yields the port of a server that cannot choose one, and prints nothing when it is ready; stops it at the end."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port: int = free.getsockname()[1]
    with log.open("w") as output:
        process = subprocess.Popen(
            command_on(port),
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        end_s = time.monotonic() + MAX_WAIT_S
        while not _listens(port):
            assert process.poll() is None, f"{command_on(port)[0]} has ended"
            assert time.monotonic() < end_s, f"{command_on(port)[0]} does not listen"
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(30)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
