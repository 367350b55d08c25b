"""Writes what was captured (`capture`) to a file."""

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
"""Of the file. Another one is not read."""

SECTION_BYTES: Final = 1024 * 1024
"""Small entries are gathered up to this; a table's partitions that take more have a section of their own."""


@frozen
class Identity:
    """What a dump must agree with to be read: all of it decides what an answer looks like."""

    build: str
    """The program's own text."""
    settings: str
    """What may be cached, and of which database."""


def write_dump(
    path: Path,
    captured: Capture,
    identity: Identity,
    rest: Callable[[int], None],
    take_name: Callable[[Callable[[], None]], None] = lambda replace: replace(),
) -> int:
    """Replaces the file; how many bytes it has. `rest` is told of each piece that was written, `take_name` calls what
    replaces it. Raises OSError, and what the two raise; then the file is as it was."""
    place = captured.place
    with DumpWriter(path, rest) as writer:
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
        # What was used last comes first: it is read first.
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
        take_name(writer.take_name)
        return writer.bytes


def _is_large(one: CapturedEntry) -> bool:
    """Whether its partitions have a section of their own."""
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
    """None: it has a section of its own."""
    if facet is Facet.TABLE:
        if one.encoded_table is None or one.table_id is None:
            raise NotDumpable("a table without its encoding")
        if one.tag is not None and type(one.tag).parse(one.tag.to_text()) != one.tag:
            raise NotDumpable("a list of write ids that does not come back as it was")
        blobs.append(one.encoded_table)
        return {"struct": "Table", "bytes": len(blobs) - 1}
    if isinstance(value, SetParts):
        return None if _is_large(one) else {"set": encode_set(value, blobs)}
    return encode_value(value, blobs)
