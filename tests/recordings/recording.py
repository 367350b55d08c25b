"""Recorded calls as a file: one line per call, the connection and the bytes of the request, packed.

Places and names of the machine are replaced by texts of the same length, so that the bytes stay a message.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PLACE = b"/recorded/warehouse/root"
"""What stands in requests for the directory under which all files are."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One request on one of the client's connections."""

    connection: int
    request: bytes

    @property
    def method(self) -> str:
        """The method's name, from the header of a strict binary message."""
        length = int.from_bytes(self.request[4:8], "big")
        return self.request[8 : 8 + length].decode()

    def at(self, directory: str) -> bytes:
        """The request for a warehouse below this directory, whose name has the length of `PLACE`."""
        place = directory.encode()
        assert len(place) == len(PLACE), f"{directory} does not have {len(PLACE)} characters"
        return self.request.replace(PLACE, place)


def write_recording(path: Path, calls: Sequence[tuple[int, bytes]], directory: str, host_names: Sequence[str]) -> None:
    """Packs the calls. `directory` has the length of `PLACE`."""
    assert len(directory) == len(PLACE)
    lines = []
    for connection, request in calls:
        request = request.replace(directory.encode(), PLACE)
        for name in host_names:
            request = request.replace(name.encode(), b"h" * len(name.encode()))
        lines.append(json.dumps([connection, base64.b64encode(request).decode()]))
    with path.open("wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        packed.write("\n".join(lines).encode())


def read_recording(path: Path) -> list[RecordedCall]:
    """The calls in the order in which they were answered."""
    with gzip.open(path, "rt") as file:
        return [RecordedCall(connection, base64.b64decode(text)) for connection, text in map(json.loads, file)]
