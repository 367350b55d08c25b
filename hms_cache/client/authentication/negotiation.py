"""Thrift's SASL negotiation, the client's side, as Java's TSaslClientTransport has it. Without a socket."""

from __future__ import annotations

from collections.abc import Callable

from thrift.transport.TTransport import TTransportException

from hms_cache.authentication.negotiation import BAD, COMPLETE, ERROR, HEADER, MAX_STEPS, OK, START, TRY_AGAIN
from hms_cache.client.authentication.mechanism import ClientMechanism
from hms_cache.client.errors import AuthenticationRefusedError

MAX_MESSAGE_BYTES = 128 * 1024
"""Of a server's message: a ticket with the groups of an Active Directory takes up to 64 KiB."""

_MAX_TEXT_CHARACTERS = 500
"""Of what a server says when it refuses."""

_THRIFT = 0x80
"""First byte of a reply of Thrift's binary protocol."""


def negotiate(mechanism: ClientMechanism, send: Callable[[bytes], None], receive: Callable[[int], bytes]) -> None:
    """Until the server is done. `receive` takes so many bytes exactly.

    Raises AuthenticationRefusedError, what the mechanism raises, and what `send` and `receive` raise.
    """
    name = mechanism.name.encode()
    response = mechanism.first()
    send(HEADER.pack(START, len(name)) + name + _message(mechanism, response))
    for _ in range(MAX_STEPS):
        status, payload = _received(mechanism, receive)
        if status == COMPLETE:
            mechanism.end(payload)
            return
        response = mechanism.step(payload)
        send(_message(mechanism, response))
    raise AuthenticationRefusedError(f"{mechanism.name}: no end after {MAX_STEPS} messages of the metastore")


def _message(mechanism: ClientMechanism, response: bytes) -> bytes:
    return HEADER.pack(COMPLETE if mechanism.complete else OK, len(response)) + response


def _received(mechanism: ClientMechanism, receive: Callable[[int], bytes]) -> tuple[int, bytes]:
    """Status and payload of a message that goes on. Raises AuthenticationRefusedError; TTransportException for what is
    no message."""
    header = receive(HEADER.size)
    status, length = HEADER.unpack(header)
    if header[0] == _THRIFT or (header[0] == 0 and header[4] == _THRIFT):  # with a length before it, too
        raise AuthenticationRefusedError(
            f"{mechanism.name}: it answers in Thrift, without SASL: the metastore asks nobody who it is on this port"
        )
    if status not in (OK, BAD, ERROR, COMPLETE) or length > MAX_MESSAGE_BYTES:
        raise TTransportException(TTransportException.UNKNOWN, f"it does not speak SASL ({mechanism.name})")
    payload = receive(length)
    if status in (BAD, ERROR):
        text = shown(payload, mechanism.secret)
        raise AuthenticationRefusedError(
            f"{mechanism.name}: the metastore says: {text or 'nothing'}; {mechanism.remedy}",
            retriable=text.endswith(TRY_AGAIN),
        )
    return status, payload


def shown(text: bytes, secret: str = "") -> str:
    """What a server says, as one line that a log can take. It may give back the secret that it was told."""
    if secret:
        text = text.replace(secret.encode(), b"********")
    printable = (
        one if one.isprintable() else " " for one in text[: 4 * _MAX_TEXT_CHARACTERS].decode("utf-8", "replace")
    )
    return " ".join("".join(printable).split())[:_MAX_TEXT_CHARACTERS]
