"""Bytes to whole messages and back, without sockets.

    MessageReader.feed(bytes) ─► next_message() ─► Message(name, args, …)      messages
    result struct ─► encode_payload ─► encode_reply_from_payload ─► bytes      replies
    encoded pieces ─► splicing ─► encode_reply_from_payload ─► bytes           splicing, replies
    one struct ─► encode_struct ─► bytes ─► decode_struct                      codec

`encodings` knows what may open a connection (unframed or framed; binary, old binary or compact) and the message
headers, `methods` what can be called, `versions` where releases disagree, `streaming` how a long message is decoded
while it arrives, `long_structs` how a long result is encoded, a part at a time. Everything here runs in the caller's
thread and keeps no global state that changes.
"""

from hms_cache.wire.codec import decode_struct, encode_struct
from hms_cache.wire.encodings import CALL, EXCEPTION, ONEWAY, REPLY, Encoding
from hms_cache.wire.errors import (
    MalformedMessage,
    MessageTooDeep,
    MessageTooLarge,
    ServerFull,
    TruncatedMessage,
    UnencodableReply,
    UnsupportedProtocol,
    WireError,
)
from hms_cache.wire.messages import Message, MessageReader
from hms_cache.wire.methods import METHODS, MethodSpec
from hms_cache.wire.replies import (
    ReplyTemplate,
    encode_exception,
    encode_payload,
    encode_payload_parts,
    encode_reply_from_payload,
    reply_header,
    reply_template,
)
from hms_cache.wire.versions import parse_database_name

__all__ = [
    "CALL",
    "EXCEPTION",
    "METHODS",
    "ONEWAY",
    "REPLY",
    "Encoding",
    "MalformedMessage",
    "Message",
    "MessageReader",
    "MessageTooDeep",
    "MessageTooLarge",
    "MethodSpec",
    "ReplyTemplate",
    "ServerFull",
    "TruncatedMessage",
    "UnencodableReply",
    "UnsupportedProtocol",
    "WireError",
    "decode_struct",
    "encode_exception",
    "encode_payload",
    "encode_payload_parts",
    "encode_reply_from_payload",
    "encode_struct",
    "parse_database_name",
    "reply_header",
    "reply_template",
]
