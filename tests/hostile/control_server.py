"""A server that only waits for sockets: the effect of a crowd on the machine, whatever the server behind the port does.

``python -m tests.hostile.control_server`` prints its port and ends with its input. It answers the calls of honest
clients (`ANSWERS`) with prepared bytes, and discards everything else.
"""

from __future__ import annotations

import selectors
import socket
import struct
import sys

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from hms_cache.thrift_gen.hive_metastore.ttypes import Database
from hms_cache.wire import METHODS

ANSWERS = {"getName": "new db based metaserver", "get_database": Database(name="default", locationUri="file:/w")}

HEADER = b"\x80\x01\x00\x01"

READ_BYTES = 64 * 1024


def _reply(name: str) -> tuple[bytes, bytes]:
    """The bytes before and after the sequence number."""
    result = METHODS[name].result_class(success=ANSWERS[name])
    written = TMemoryBuffer()
    result.write(TBinaryProtocol(written))
    return b"\x80\x01\x00\x02" + struct.pack("!i", len(name)) + name.encode(), written.getvalue()


REPLIES = {name.encode(): _reply(name) for name in ANSWERS}


def answer(data: bytes) -> bytes | None:
    """Returns the answer to one whole request of an honest client, which arrives in one piece; None for anything
    else."""
    if not data.startswith(HEADER) or len(data) < 12:
        return None
    end = 8 + int.from_bytes(data[4:8], "big")
    found = REPLIES.get(data[8:end])
    return found and found[0] + data[end : end + 4] + found[1]


def serve() -> None:
    """Runs until the input ends."""
    chosen = selectors.DefaultSelector()
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    listening.setblocking(False)
    chosen.register(listening, selectors.EVENT_READ)
    chosen.register(sys.stdin, selectors.EVENT_READ)
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    while True:
        for key, _ in chosen.select():
            if key.fileobj is sys.stdin:
                return
            if key.fileobj is listening:
                link, _ = listening.accept()
                link.setblocking(False)
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                chosen.register(link, selectors.EVENT_READ)
                continue
            assert isinstance(key.fileobj, socket.socket)
            try:
                data = key.fileobj.recv(READ_BYTES)
                if data:
                    if reply := answer(data):
                        key.fileobj.send(reply)
                    continue
            except BlockingIOError:
                continue
            except OSError:
                pass
            chosen.unregister(key.fileobj)
            key.fileobj.close()


if __name__ == "__main__":
    serve()
