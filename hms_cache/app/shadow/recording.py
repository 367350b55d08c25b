"""A file of reads that can be replayed: one JSON object a line, with the arguments in Thrift's binary encoding."""

from __future__ import annotations

import base64
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from hms_cache.app.shadow.mirror import Read
from hms_cache.app.shadow.reads import summary
from hms_cache.errors import HmsCacheError, StartupError
from hms_cache.wire import METHODS, WireError
from hms_cache.wire.codec import decode_with
from hms_cache.wire.encodings import BINARY

#: Maximum size of a recording; enough for some millions of calls.
MAX_BYTES: Final = 1024**3


class BadRecording(HmsCacheError):
    """The file cannot be read, or a line is not a recorded read."""


def _for_the_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class Recorder:
    """Appends reads to a file. Thread-safe. If the file cannot be written, clients are not affected."""

    def __init__(self, path: Path, note: Callable[[str], None] = lambda text: None) -> None:
        """Raises StartupError if the file cannot be opened.

        :param note: is called once, with a text for the report, if writing fails later.
        """
        self._lock = threading.Lock()
        self._note = note
        # Requests may contain passwords and tokens.
        try:
            self._file = open(path, "a", encoding="utf-8", opener=_for_the_owner)  # noqa: SIM115 (kept open)
        except OSError as error:
            problem = f"the recording {path} cannot be written: {error.strerror}"
            raise StartupError(problem, remedy="Name a file that this user may write with --record.") from error
        self.is_full = False

    def write(self, method: str, arguments: Any) -> None:
        """Appends one read, unless the file has reached its limit or writing has failed."""
        encoded = BINARY.encode(arguments, METHODS[method].args_table)
        line = {
            "time_s": round(time.time(), 3),
            "method": method,
            "arguments": base64.b64encode(encoded).decode(),
            "summary": summary(arguments),
        }
        with self._lock:
            if not self.is_full and not self._file.closed:
                try:
                    self._file.write(json.dumps(line) + "\n")
                    self.is_full = self._file.tell() >= MAX_BYTES
                except OSError as error:
                    self._end(error)

    def _end(self, error: OSError) -> None:
        """Stops recording and adds a note. The caller holds the lock."""
        if not self.is_full:
            self._note(f"the recording is not complete: {error.strerror or error}")
        self.is_full = True

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *failure: object) -> None:
        with self._lock:
            try:
                self._file.close()
            except OSError as failure:
                self._end(failure)


def recorded_reads(path: Path) -> Iterator[Read]:
    """Yields the reads of a file in their order. Raises BadRecording."""
    try:
        opened = path.open("rb")
    except OSError as error:
        raise BadRecording(f"{path} cannot be read: {error.strerror}") from error
    with opened as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                spec = METHODS[row["method"]]
                data = base64.b64decode(row["arguments"], validate=True)
                arguments = decode_with(spec.args_table, spec.args_class(), data, compact=False)
            except (ValueError, KeyError, TypeError, WireError) as error:
                raise BadRecording(f"{path}:{number}: not a recorded read ({error})") from error
            yield Read(spec.name, arguments)
