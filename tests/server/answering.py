"""An HTTP server that sends arbitrary answers at its own pace."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

TLS_RECORD = b"\x16\x03\x03\x40\x00" + b"\x02" * 0x4000
"""The first of a handshake, as long as one can be."""


@contextmanager
def answering(data: bytes, *, in_drops: bool) -> Iterator[str]:
    """The address of a server that sends this answer to every client."""
    ended = threading.Event()

    def answer(sock: socket.socket) -> None:
        with sock, suppress(OSError):
            sock.recv(10_000)
            pieces = (data[at : at + 1] for at in range(len(data))) if in_drops else (data,)
            for piece in pieces:
                sock.sendall(piece)
                if in_drops and ended.wait(0.02):
                    return

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/jwks.json"
        finally:
            ended.set()
            listener.shutdown(socket.SHUT_RDWR)
