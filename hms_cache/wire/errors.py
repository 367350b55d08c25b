"""Errors of decoding.

    WireError
    ├── MalformedMessage          not a Thrift message, or one whose parts contradict each other
    │   ├── MessageTooDeep        structs and containers nested deeper than the decoder follows
    │   ├── TruncatedMessage      the connection ended in the middle of a message
    │   └── UnsupportedProtocol   the first bytes are those of another protocol (HTTP, TLS, SASL, …)
    ├── MessageTooLarge           more bytes, or more objects in them, than the limits allow
    ├── ServerFull                nothing: the server has no room for the rest of the message
    └── UnencodableReply          a reply holds a value that its field cannot carry

After one of these the reader of the connection is unusable, because the start of the next message is unknown: answer
with a fault if the header could be read, and close.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hms_cache.errors import HmsCacheError

if TYPE_CHECKING:
    from hms_cache.wire.messages import Message


class WireError(HmsCacheError):
    """Base of all errors in this package.

    `message` is the message with the error, without arguments, if its header could be read, so that
    `replies.encode_exception` can answer the client. Otherwise it is None.
    """

    message: Message | None = None


class MalformedMessage(WireError):
    """The bytes are not a Thrift message, or its parts contradict each other."""


class MessageTooDeep(MalformedMessage):
    """Structs and containers are nested deeper than the decoder's limit (64 levels; a metastore call needs 9)."""


class TruncatedMessage(MalformedMessage):
    """The connection ended in the middle of a message."""


class UnsupportedProtocol(MalformedMessage):
    """The first bytes of the connection are those of another protocol."""


class MessageTooLarge(WireError):
    """The message has more bytes, or would create more objects, than allowed."""


class ServerFull(WireError):
    """The bytes are valid, but the server has no memory for the rest of the message."""


class UnencodableReply(WireError):
    """A reply contains a value that does not fit its field: a number out of range, a wrong type, half a surrogate
    pair."""
