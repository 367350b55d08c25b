"""A TCP proxy that delays the database's answers, in a separate process: simulates a distant database."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

CHUNK_BYTES = 1 << 16


class DelayProxy:
    """A proxy in front of a port of this machine. `delay` may only be changed while no call is in progress."""

    def __init__(self, port: int) -> None:
        command = [sys.executable, "-c", "from benchmarks.comparison.delay_proxy import serve; serve()"]
        root = str(Path(__file__).resolve().parent.parent.parent)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root, text=True, bufsize=1
        )
        self.port = int(self._ask(str(port)))

    def delay(self, milliseconds: float) -> None:
        """Delays each answer by this time from now on."""
        self._ask(str(milliseconds))

    def close(self) -> None:
        """Ends the process and all connections."""
        self._process.kill()
        self._process.communicate()

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()


class _Forward:
    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.delay_s = 0.0

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_database, to_database = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(
            self._copy(reader, to_database, delayed=False), self._copy(from_database, writer, delayed=True)
        )

    async def _copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, delayed: bool) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            while data := await source.read(CHUNK_BYTES):
                if delayed and self.delay_s:
                    loop.call_later(self.delay_s, sink.write, data)
                else:
                    sink.write(data)
                    await sink.drain()
        with suppress(OSError):
            sink.close()


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    forward = _Forward(int(await loop.run_in_executor(None, sys.stdin.readline)))
    server = await asyncio.start_server(forward.connected, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        forward.delay_s = float(line) / 1000
        print("ok", flush=True)


def serve() -> None:
    """The process of `DelayProxy`: the first line is the port, each further one a delay in milliseconds."""
    asyncio.run(_serve())
