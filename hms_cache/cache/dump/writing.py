"""Writes captured entries (`capture`) to a file."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from hms_cache.cache.dump.capture import Capture, CapturedEntry
from hms_cache.cache.dump.file import ENTRIES, HEAD, PARTITIONS, DumpWriter
from hms_cache.cache.dump.partitions import encode_set
from hms_cache.cache.dump.values import NotDumpable, encode_value
from hms_cache.cache.entries import Facet, Key
from hms_cache.cache.partitions.partition_set import SetParts
from hms_cache.metadata.object_names import TableName
from hms_cache.values import frozen

FORMAT: Final = 2
"""The file's format; files of other formats are not read."""

SECTION_BYTES: Final = 1024 * 1024
"""Small entries share a section of up to this size; a table's partition set that is larger has its own."""


@frozen
class Identity:
    """What a dump must match to be used: all of it affects how answers look."""

    build: str
    """Identifies the program's source text."""
    settings: str
    """Identifies the settings that decide what may be cached, and the database."""


def write_dump(
    path: Path,
    captured: Capture,
    identity: Identity,
    pause: Callable[[int], None],
    replace_previous: Callable[[Callable[[], None]], None] = lambda replace: replace(),
) -> int:
    """Replaces the file and returns its size in bytes. Raises OSError, and whatever the two callables raise; then the
    previous file remains.

    :param pause: is called after each write with its number of bytes.
    :param replace_previous: calls its argument, which replaces the file.
    """
    place = captured.place
    with DumpWriter(path, pause) as writer:
        large = [one for one in reversed(captured.entries) if _is_large(one)]
        head = {
            "format": FORMAT,
            "build": identity.build,
            "settings": identity.settings,
            "position": [place.event_id, place.row_digest, place.server_identity],
            "written_at_s": int(time.time()),
            "later": [_key(one.key) for one in large],
        }
        writer.write(HEAD, head)
        # The most recently used entries come first, since they are read first.
        trees: list[Any] = []
        blobs: list[bytes] = []
        for one in reversed(captured.entries):
            trees.append(_entry(one, blobs))
            if sum(map(len, blobs)) > SECTION_BYTES or len(trees) >= 1000:
                writer.write(ENTRIES, trees, blobs)
                trees, blobs = [], []
        writer.write(ENTRIES, trees, blobs)
        for one in large:
            blobs = []
            tree = {"key": _key(one.key), "set": encode_set(one.facets[Facet.PARTITIONS], blobs)}
            writer.write(PARTITIONS, tree, blobs)
        writer.finish()
        replace_previous(writer.replace_previous)
        return writer.bytes


def _is_large(one: CapturedEntry) -> bool:
    """Whether its partition set has a section of its own."""
    return one.weights.get(Facet.PARTITIONS, 0) > SECTION_BYTES


def _key(key: Key) -> list[str]:
    return [key] if isinstance(key, str) else list(key)


def _entry(one: CapturedEntry, blobs: list[bytes]) -> Any:
    facets: dict[str, Any] = {}
    for facet, value in one.facets.items():
        kept = len(blobs)
        try:
            tree = _facet(one, facet, value, blobs)
        except NotDumpable:
            del blobs[kept:]
            continue
        if tree is not None:
            facets[facet.value] = [one.weights[facet], tree]
    found: dict[str, Any] = {"key": _key(one.key), "facets": facets, "reads": one.reads}
    if isinstance(one.key, TableName) and Facet.TABLE.value in facets:
        found["table_id"] = one.table_id
        found["tag"] = one.tag.to_text() if one.tag is not None else None
        found["is_transactional"] = one.is_transactional
        found["has_commit_parameters"] = one.has_commit_parameters
    return found


def _facet(one: CapturedEntry, facet: Facet, value: Any, blobs: list[bytes]) -> Any:
    """Returns the facet's tree. None if the facet has a section of its own."""
    if facet is Facet.TABLE:
        if one.encoded_table is None or one.table_id is None:
            raise NotDumpable("a table lacks its encoding")
        if one.tag is not None and type(one.tag).parse(one.tag.to_text()) != one.tag:
            raise NotDumpable("a write-id list changes when it is encoded again")
        blobs.append(one.encoded_table)
        return {"struct": "Table", "bytes": len(blobs) - 1}
    if isinstance(value, SetParts):
        return None if _is_large(one) else {"set": encode_set(value, blobs)}
    return encode_value(value, blobs)
