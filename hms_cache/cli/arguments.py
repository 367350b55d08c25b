"""Hides secrets in the arguments of this process."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hms_cache.config.database_url import masked, secrets_of
from hms_cache.config.secrets import MASK, is_secret_name, redacted, remember

_URL = re.compile(r"jdbc:.*|[A-Za-z][\w+.-]*://.*", re.DOTALL)
_ASSIGNMENT = re.compile(r"((?:--[\w-]+=)?[\w.-]+)=(.*)", re.DOTALL)

#: Fields of `/proc/self/stat`, counted from the field after the program's name.
_ARGUMENTS_START, _ARGUMENTS_END = 45, 46


def hide_secret_arguments() -> None:
    """Overwrites the secrets among this process's arguments, which `ps` shows to every user of the machine.

    On Linux only, where the kernel reads them from the process's own memory; does nothing elsewhere. `sys.argv` is not
    changed.
    """
    with suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[_ARGUMENTS_START]), int(fields[_ARGUMENTS_END])
        if not 0 < start < end:
            return
        position = start
        for argument in ctypes.string_at(start, end - start).split(b"\0"):
            shown = shown_argument(argument.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
            if shown != argument:
                ctypes.memmove(position, shown[: len(argument)].ljust(len(argument)), len(argument))
            position += len(argument) + 1


def shown_argument(argument: str) -> str:
    """Returns ``argument`` with masked secrets: passwords in URLs, values of secret settings, and all known secrets."""
    assignment = _secret_assignment(argument)
    if assignment is not None:
        return f"{assignment[1]}={MASK}"
    return redacted(_URL.sub(lambda found: masked(found[0]), argument, count=1))


def remember_secret_arguments(arguments: Sequence[str]) -> None:
    """Registers the secrets of a command that reads no settings, so that all output masks them."""
    for argument in arguments:
        assignment, url = _secret_assignment(argument), _URL.search(argument)
        remember([assignment[2]] if assignment is not None else secrets_of(url[0]) if url is not None else [])


def _secret_assignment(argument: str) -> re.Match[str] | None:
    found = _ASSIGNMENT.fullmatch(argument)
    is_secret = found is not None and is_secret_name(found[1]) and not found[1].endswith(("_file", "-file"))
    return found if is_secret else None
