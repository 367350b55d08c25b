"""The loop never gets an empty piece to send.

From Python 3.12 on, asyncio's own loop never finishes sending such a piece: it is busy for ever, and the connection
stays.
"""

from __future__ import annotations

import asyncio
from asyncio import selector_events
from collections.abc import Iterable
from typing import Any

import pytest

from tests.server.conftest import Serve, database, request_bytes, table
from tests.server.test_cut_requests import one_way, with_length
from tests.server.test_tls import loop

__all__ = ["loop"]

BINARY = {
    "a whole call": request_bytes("getStatus", 1),
    "an answer from memory": request_bytes("get_table", 1, dbname="d", tbl_name="t"),
    "nothing found": request_bytes("get_all_tables", 1, db_name="none"),
    "no tables": request_bytes("get_table_objects_by_name", 1, dbname="d", tbl_names=[]),
    "tables": request_bytes("get_table_objects_by_name", 1, dbname="d", tbl_names=["t", "t"]),
    "partitions": request_bytes("get_partitions", 1, db_name="d", tbl_name="t", max_parts=-1),
    "a refusal": request_bytes("get_table", 1, dbname="d", tbl_name="none"),
    "an unknown method": request_bytes("getStatus", 1).replace(b"getStatus", b"noMethods"),
}
HTTP = {
    **{name: with_length(call) for name, call in BINARY.items()},
    "a one-way call": with_length(one_way(BINARY["a whole call"])),
    "another method of HTTP": b"GET /metastore HTTP/1.1\r\nhost: a\r\n\r\n",
    "only the head": b"HEAD /metastore HTTP/1.1\r\nhost: a\r\n\r\n",
    "another path": b"POST /none HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n",
}


@pytest.mark.parametrize("loop", ["asyncio"], indirect=True)
@pytest.mark.parametrize("mode", ["binary", "http"])
def test_no_piece_is_empty(serve: Serve, loop: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[int] = []
    transport: Any = selector_events._SelectorSocketTransport  # type: ignore[attr-defined]
    send = transport.writelines

    def noted(self: asyncio.Transport, list_of_data: Iterable[bytes]) -> None:
        some = list(list_of_data)
        pieces.extend(map(len, some))
        send(self, some)

    monkeypatch.setattr(transport, "writelines", noted)
    filled = serve().link()
    filled.call("create_database", database=database("d"))
    filled.call("create_table", tbl=table("d", "t"))
    server = serve(**{"server.transport_mode": mode})
    for name, request in (HTTP if mode == "http" else BINARY).items():
        for _ in range(3):  # from the database, from memory, by its bytes
            with server.connect() as sock:
                sock.sendall(request)
                assert sock.recv(1 << 16), name
    assert pieces or mode == "binary"
    assert all(pieces)
