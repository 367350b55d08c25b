"""The client's side of Thrift's SASL negotiation, as in Java's TSaslClientTransport. Uses no socket itself."""

from __future__ import annotations

from collections.abc import Callable

from thrift.transport.TTransport import TTransportException

from hms_cache.authentication.negotiation import BAD, COMPLETE, ERROR, HEADER, MAX_STEPS, OK, START, TRY_AGAIN
from hms_cache.client.authentication.mechanism import ClientMechanism
from hms_cache.client.errors import AuthenticationRefusedError

MAX_MESSAGE_BYTES = 128 * 1024
"""Maximum size of a server's message: a ticket with the groups of an Active Directory has up to 64 KiB."""

_MAX_TEXT_CHARACTERS = 500
"""Maximum length of a server's reason for a refusal."""

_THRIFT = 0x80
"""The first byte of a reply in Thrift's binary protocol."""


def negotiate(mechanism: ClientMechanism, send: Callable[[bytes], None], receive: Callable[[int], bytes]) -> None:
    """Negotiates until the server has finished. `receive` returns exactly the requested number of bytes.

    Raises AuthenticationRefusedError, and the exceptions of the mechanism, of `send` and of `receive`.
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
    raise AuthenticationRefusedError(f"{mechanism.name}: not finished after {MAX_STEPS} messages of the metastore")


def _message(mechanism: ClientMechanism, response: bytes) -> bytes:
    return HEADER.pack(COMPLETE if mechanism.complete else OK, len(response)) + response


def _received(mechanism: ClientMechanism, receive: Callable[[int], bytes]) -> tuple[int, bytes]:
    """Receives a message that is not a refusal, and returns its status and payload. Raises AuthenticationRefusedError;
    TTransportException for an invalid message."""
    header = receive(HEADER.size)
    status, length = HEADER.unpack(header)
    if header[0] == _THRIFT or (header[0] == 0 and header[4] == _THRIFT):  # possibly after a length
        raise AuthenticationRefusedError(
            f"{mechanism.name}: the metastore answers without SASL: it does not authenticate clients of this port"
        )
    if status not in (OK, BAD, ERROR, COMPLETE) or length > MAX_MESSAGE_BYTES:
        raise TTransportException(TTransportException.UNKNOWN, f"it does not use SASL ({mechanism.name})")
    payload = receive(length)
    if status in (BAD, ERROR):
        text = shown(payload, mechanism.secret)
        raise AuthenticationRefusedError(
            f"{mechanism.name}: the metastore answers: {text or 'no reason given'}; {mechanism.remedy}",
            retriable=text.endswith(TRY_AGAIN),
        )
    return status, payload


def shown(text: bytes, secret: str = "") -> str:
    """Returns a server's text as one line for a log. The secret is masked, because the server may return it."""
    if secret:
        text = text.replace(secret.encode(), b"********")
    printable = (
        one if one.isprintable() else " " for one in text[: 4 * _MAX_TEXT_CHARACTERS].decode("utf-8", "replace")
    )
    return " ".join("".join(printable).split())[:_MAX_TEXT_CHARACTERS]
