"""A file for libraries that read a certificate or a key only from a path."""

from __future__ import annotations

import os
import tempfile
from types import TracebackType
from typing import IO, Final

_MEMORY_PATHS: Final = "/proc/self/fd"
"""Linux: the open files of a process, by number."""


class PrivateFile:
    """A file that only this user can read, and that ends with the process: on Linux it is in memory and has no name, so
    that nothing is left on the disk if the process is killed.

    Processes that are forked afterwards can read it under the same path.
    """

    def __init__(self, content: bytes) -> None:
        """:raises OSError: there is no room."""
        self._file: IO[bytes] = _in_memory() or tempfile.NamedTemporaryFile(prefix="hms-cache-", suffix=".pem")  # noqa: SIM115
        is_named = isinstance(self._file.name, str)
        self.path = str(self._file.name) if is_named else f"{_MEMORY_PATHS}/{self._file.fileno()}"
        """Where to read it. The caller must not open it for writing."""
        try:
            self._file.write(content)
            self._file.flush()
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Deletes the file."""
        self._file.close()

    def __enter__(self) -> PrivateFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _in_memory() -> IO[bytes] | None:
    if not hasattr(os, "memfd_create") or not os.path.exists(_MEMORY_PATHS):
        return None
    try:
        number = os.memfd_create("hms-cache-pem", os.MFD_CLOEXEC)
    except OSError:  # a kernel or a sandbox without it
        return None
    os.fchmod(number, 0o600)  # libpq refuses a key that others could read
    return os.fdopen(number, "wb")
