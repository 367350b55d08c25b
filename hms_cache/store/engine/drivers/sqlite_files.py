"""The file of an embedded database."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any
from urllib.parse import quote

_NOT_FOR_OTHERS = 0o660
"""Less what the umask takes away. Delegation tokens stand in it, and the keys that sign them."""


class FileOpener:
    """SQLAlchemy's `do_connect` listener: makes the file of an embedded database at the first connection only.

    A file that is gone later, with its file system or moved by somebody, is an outage: SQLite would make an empty one
    in its place, and delete the journal of the one that comes back.
    """

    def __init__(self) -> None:
        self._found = False
        """Whether a connection has been opened: the file is there from then on."""

    def expect_file(self) -> None:
        """It is not made, not even at the first connection."""
        self._found = True

    def __call__(self, dialect: Any, record: Any, arguments: list[Any], options: dict[str, Any]) -> Any:
        """The driver's connection, or None: the dialect opens it. Raises sqlite3.OperationalError."""
        if options.get("uri"):
            return None
        if self._found:
            return dialect.connect(existing_file(arguments[0]), *arguments[1:], uri=True, **options)
        make_private(arguments[0])
        connection = dialect.connect(*arguments, **options)
        self._found = True
        return connection


def existing_file(path: str) -> str:
    """The URI for SQLite that opens the file, and makes none."""
    return f"file://{quote(os.path.abspath(path))}?mode=rw"


def make_private(path: str) -> None:
    """A file that is new is closed to other users of the machine.

    SQLite would make it for all to read; it gives its journals the mode of the file. What cannot be made is left to it
    to explain.
    """
    with suppress(OSError, ValueError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _NOT_FOR_OTHERS))
