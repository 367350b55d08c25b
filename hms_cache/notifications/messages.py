"""The formats of the MESSAGE column, by the label in MESSAGE_FORMAT.

Hive 3.1 writes plain JSON (``json-0.2``), Hive 4 the same JSON in UTF-8, gzipped, in standard base64
(``gzip(json-2.0)``; it also accepts the short name ``gzip``). A log that has seen an upgrade contains both, so each
row's label decides.
"""

from __future__ import annotations

import binascii
import json
import re
import zlib
from enum import StrEnum
from typing import Any

# A message of 10,000 partitions has about 15 MiB of JSON; one that inflates beyond this is damaged or an attack (P11).
DEFAULT_MAX_JSON_BYTES = 256 * 1024 * 1024
# Java's GZIPOutputStream uses 6; 1 takes a third of the time and a sixth more space.
_COMPRESSION_LEVEL = 1


class MessageFormat(StrEnum):
    """The format to write; the setting's values are Hive's labels."""

    JSON = "json-0.2"
    GZIP_JSON = "gzip(json-2.0)"


_GZIP_LABELS = frozenset({MessageFormat.GZIP_JSON.value, "gzip"})


class MessageError(ValueError):
    """A message cannot be decoded: unknown format, or damaged."""


def encode_message(json_text: str, message_format: MessageFormat) -> str:
    """The value for MESSAGE, in ASCII. Equal texts give equal values (no timestamp in the gzip header).

    Hive's script for MySQL stores MESSAGE in latin1, even if a site has converted the columns of comments, as Hive 4
    permits, whose own messages are in base64. A write must not fail because the log cannot represent a character of a
    comment.
    """
    if message_format is MessageFormat.JSON:
        return json_text if json_text.isascii() else _BEYOND_ASCII.sub(_escaped, json_text)
    return binascii.b2a_base64(_zipped(json_text.encode()), newline=False).decode("ascii")


_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
"""In JSON these occur only in texts."""


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found.group())[1:-1]


_GZIP, _LARGEST_WINDOW = 16, 15
"""zlib constants: write gzip's header, and the logarithm of the default window."""


def _zipped(data: bytes) -> bytes:
    """Compresses with a window as large as the data: allocating zlib's default memory, a quarter of a megabyte, takes
    ten times as long as compressing most messages."""
    window = min(max(9, len(data).bit_length()), _LARGEST_WINDOW)
    packer = zlib.compressobj(_COMPRESSION_LEVEL, zlib.DEFLATED, _GZIP + window, max(3, window - 7))
    return packer.compress(data) + packer.flush()


def decode_message(
    message: str | None, message_format: str | None, max_json_bytes: int = DEFAULT_MAX_JSON_BYTES
) -> dict[str, Any]:
    """The message's JSON object.

    A row without a label is parsed as plain JSON: the column may be null in logs begun by Hive 2. Raises
    ``MessageError``.
    """
    if message is None:
        raise MessageError("no message")
    label = (message_format or MessageFormat.JSON.value).strip().lower()
    if label in _GZIP_LABELS:
        text: str | bytes = _unzip(message, max_json_bytes)
    elif label.startswith("json"):
        text = message
    else:
        raise MessageError(f"unknown message format {message_format!r}")
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        raise MessageError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise MessageError("not a JSON object")
    return value


def _unzip(message: str, max_json_bytes: int) -> bytes:
    try:
        packed = binascii.a2b_base64(message)
        inflater = zlib.decompressobj(wbits=31)
        text = inflater.decompress(packed, max_json_bytes)
    except (ValueError, zlib.error) as error:
        raise MessageError(f"not gzipped text in base64: {error}") from error
    if not inflater.eof:
        too_long = bool(inflater.unconsumed_tail)
        raise MessageError(f"more than {max_json_bytes} bytes of JSON" if too_long else "the gzipped text is truncated")
    return text
