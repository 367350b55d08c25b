"""The file of an embedded database."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any
from urllib.parse import quote

_NOT_FOR_OTHERS = 0o660
"""File mode before the umask. The file contains delegation tokens and the keys that sign them."""


class FileOpener:
    """SQLAlchemy's `do_connect` listener: only the first connection creates the file of an embedded database.

    If the file is missing later, because its file system is gone or somebody moved it, that is an outage: SQLite would
    create an empty file in its place, and delete the journal of the original when that comes back.
    """

    def __init__(self) -> None:
        self._found = False
        """Whether a connection has been opened, so that the file must exist from then on."""

    def expect_file(self) -> None:
        """From now on no connection creates the file."""
        self._found = True

    def __call__(self, dialect: Any, record: Any, arguments: list[Any], options: dict[str, Any]) -> Any:
        """The driver's connection; None: the dialect opens it. Raises sqlite3.OperationalError."""
        if options.get("uri"):
            return None
        if self._found:
            return dialect.connect(existing_file(arguments[0]), *arguments[1:], uri=True, **options)
        make_private(arguments[0])
        connection = dialect.connect(*arguments, **options)
        self._found = True
        return connection


def existing_file(path: str) -> str:
    """The URI with which SQLite opens the file but does not create it."""
    return f"file://{quote(os.path.abspath(path))}?mode=rw"


def make_private(path: str) -> None:
    """Creates a new file that other users of the machine cannot read.

    SQLite would make it readable for all; it gives its journals the mode of the file. If the file cannot be created,
    SQLite reports why.
    """
    with suppress(OSError, ValueError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _NOT_FOR_OTHERS))
