"""The file of an embedded database."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

_NOT_FOR_OTHERS = 0o660
"""Less what the umask takes away. Delegation tokens stand in it, and the keys that sign them."""


def make_private(dialect: Any, record: Any, arguments: list[Any], options: dict[str, Any]) -> None:
    """SQLAlchemy's `do_connect` listener: a file that is new is closed to other users of the machine.

    SQLite would make it for all to read; it gives its journals the mode of the file. What cannot be made is left to it
    to explain.
    """
    path = arguments[0]
    if not options.get("uri"):
        with suppress(OSError, ValueError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _NOT_FOR_OTHERS))
