"""Whole replies for results, as the server encodes them (`server/dispatch.py`)."""

from __future__ import annotations

from typing import Any

from hms_cache.wire import METHODS, Message, encode_payload, encode_reply_from_payload


def encode_reply(message: Message, result: Any) -> bytes:
    """The whole reply for a result struct."""
    assert message.method is not None
    return encode_reply_from_payload(message, encode_payload(message.encoding, message.method, result))


def failed(method: str, error: Exception) -> Any:
    """Returns the result struct of a method with an exception that it declares."""
    spec = METHODS[method]
    assert spec.result_class is not None
    result = spec.result_class()
    setattr(result, spec.exceptions[type(error)], error)
    return result
