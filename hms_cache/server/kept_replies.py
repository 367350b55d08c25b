"""Compares the encoded replies that are kept with what the database answers to the same requests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from hms_cache.authorization.decisions import TAG_BYTES, Authorizer
from hms_cache.cache.answers import Reply
from hms_cache.server.audit import AuditLog
from hms_cache.server.authorization.guard import Guard
from hms_cache.server.calls import Handler
from hms_cache.server.dispatch import Dispatcher
from hms_cache.server.session import Session
from hms_cache.server.stores import Stores
from hms_cache.wire import Message, MessageReader, decode_struct

_SEQUENCE = bytes(4)
_FRAME_BYTES = 4
_STRICT = 0x80
"""First byte of an unframed strict message. A frame begins with its length, and with this byte it would be 2 GiB
long."""


class KeptReplies:
    """Answers requests with the handlers from the store, without the cache. Thread-safe."""

    def __init__(self, handlers: Mapping[str, Handler], stores: Stores, authorizer: Authorizer | None = None) -> None:
        """`stores.raw` is the object store: within its snapshot, all answers show one position. `authorizer`: replies
        are kept by decision class."""
        guard = Guard(authorizer) if authorizer is not None else None
        self._authorizer = authorizer
        self._dispatcher = Dispatcher(handlers, stores, AuditLog("off"), slow_call_s=math.inf, guard=guard)

    def __call__(self, request: bytes) -> Callable[[Reply], str | None]:
        """Sends the request now. Returns how the kept reply differs; None: it does not. `request`:
        `Message.key_bytes`."""
        session = Session("verify")
        if self._authorizer is not None:
            session.given_decisions = self._authorizer.decisions_of(request[-TAG_BYTES:])
            if session.given_decisions is None:
                return lambda kept: None  # kept under an earlier policy: no request finds it
            request = request[:-TAG_BYTES]
        message = _message(request)
        stored = self._dispatcher.execute(session, message) or b""

        def difference(kept: Reply) -> str | None:
            held = kept if isinstance(kept, bytes) else b"".join(kept)
            if held == stored:
                return None
            here, there = _decoded(message, held), _decoded(message, stored)
            # Equal values may have different encodings: maps have no order.
            return None if here == there else f"{message.name}({message.args}): held {here}, database {there}"

        return difference


def _message(request: bytes) -> Message:
    start = 0 if request[0] == _STRICT else _FRAME_BYTES
    name_end = start + 8 + int.from_bytes(request[start + 4 : start + 8], "big")
    reader = MessageReader()
    reader.feed(request[:name_end] + _SEQUENCE + request[name_end:])
    message = reader.next_message()
    assert message is not None and message.method is not None, "a whole request of a known method was kept"
    return message


def _decoded(message: Message, reply: bytes) -> Any:
    """The result struct; the bytes themselves if they are not a result (an undeclared exception)."""
    start = (_FRAME_BYTES if message.encoding.framed else 0) + 8 + len(message.name.encode()) + 4
    header = start - 12 - len(message.name.encode())
    assert message.method is not None
    is_reply = reply[header : header + 4] == b"\x80\x01\x00\x02"
    return decode_struct(type(message.method.result()), reply, start=start) if is_reply else reply
