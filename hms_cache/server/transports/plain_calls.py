"""The answer to a client that speaks plain Thrift to a port with TLS or authentication."""

from __future__ import annotations

from thrift.Thrift import TApplicationException

from hms_cache.server.fairness import SLICE_S
from hms_cache.wire import MessageReader, WireError, encode_exception

_LARGEST_REQUEST_BYTES = 64 * 1024
"""A first call (set_ugi, get_database, …) has a few hundred bytes and arrives in one piece."""


TLS_REQUIRED = "this metastore speaks TLS on this port: set hive.metastore.use.SSL=true and a trust store in the client"


def refusal_of_plain_call(data: bytes, text: str = TLS_REQUIRED) -> bytes:
    """A fault for the call that `data` begins with; empty if it is not a whole call that expects an answer.

    Also empty for a call that takes longer to decode than a slice: a client that sends 64 KiB of empty structs, each of
    which is an object, does not do so by mistake.
    """
    reader = MessageReader(_LARGEST_REQUEST_BYTES, slice_s=SLICE_S)
    try:
        reader.feed(data)
        message = reader.next_message()
    except WireError:
        return b""
    finally:
        reader.close()
    if message is None or not message.expects_reply:
        return b""
    return encode_exception(message, TApplicationException(TApplicationException.PROTOCOL_ERROR, text))
