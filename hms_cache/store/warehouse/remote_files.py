"""Directories and files of file systems that fsspec opens.

Nothing here lets a driver expand `*`, `?` or `[` in a path: `rm` and `mv` of fsspec do, and would take along what only
matches. Where a path has such characters, its files are handled one by one.
"""

from __future__ import annotations

import posixpath
import time
from contextlib import suppress
from typing import Any

from fsspec.core import has_magic

from hms_cache.store.warehouse.local_files import ListingTooLong, is_hidden


def make_directory(file_system: Any, path: str) -> bool:
    """Makes the directory and its parents; False when it was there already, or another call made it meanwhile."""
    if file_system.isdir(path):
        return False
    try:
        file_system.makedirs(path, exist_ok=False)
    except FileExistsError:
        if not file_system.isdir(path):
            raise
        return False
    return True


def is_vacant(file_system: Any, path: str) -> bool:
    """Whether nothing is there, or an empty directory."""
    if not file_system.exists(path):
        return True
    return bool(file_system.isdir(path)) and not file_system.ls(path, detail=False)


def remove_empty_directory(file_system: Any, path: str) -> None:
    """Removes a directory without anything in it; one that has something, or is none, stays as it is."""
    if file_system.isdir(path) and not file_system.ls(path, detail=False):
        file_system.rmdir(path)


def move(file_system: Any, source: str, destination: str) -> None:
    """Moves a directory with all in it. Raises FileExistsError for a destination that is there."""
    if file_system.exists(destination):
        raise FileExistsError(destination)
    file_system.makedirs(posixpath.dirname(destination), exist_ok=True)
    if not has_magic(source) and not has_magic(destination):
        file_system.mv(source, destination, recursive=True)
        return
    for name in file_system.find(source):
        goal = f"{destination}/{posixpath.relpath(name, source)}"
        file_system.makedirs(posixpath.dirname(goal), exist_ok=True)
        file_system.cp_file(name, goal)
        file_system.rm_file(name)
    delete(file_system, source)


def delete(file_system: Any, path: str) -> None:
    """Deletes a file or a directory with all in it; nothing there is fine."""
    if not file_system.exists(path):
        return
    if not has_magic(path):
        file_system.rm(path, recursive=True)
        return
    if file_system.isfile(path):
        file_system.rm_file(path)
        return
    found = file_system.find(path, withdirs=True, detail=True)
    for name in sorted((*found, path), key=len, reverse=True):
        if name == path or found[name]["type"] == "directory":
            with suppress(FileNotFoundError):  # an object store's directory goes with the last file in it
                file_system.rmdir(name)
        else:
            file_system.rm_file(name)


def names(file_system: Any, path: str) -> list[str]:
    """What a directory holds; nothing when it is absent."""
    if not file_system.isdir(path):
        return []
    found = (posixpath.basename(entry.rstrip("/")) for entry in file_system.ls(path, detail=False))
    return [name for name in found if name]


def count(file_system: Any, path: str, *, max_entries: int, deadline_s: float) -> tuple[int, int]:
    """Number and size of the visible files below a directory.

    Raises ListingTooLong above so many entries, or after `deadline_s` of `time.monotonic`.
    """
    if not file_system.exists(path):
        return 0, 0
    files = size = entries = 0
    directories = [path]
    while directories:
        directory = directories.pop()
        file_system.invalidate_cache(directory)
        for found in file_system.ls(directory, detail=True):
            entries += 1
            if entries > max_entries or time.monotonic() > deadline_s:
                raise ListingTooLong(f"{entries} entries looked at")
            name = str(found["name"]).rstrip("/")
            if found["type"] == "directory":
                if name.strip("/") != directory.strip("/") and not is_hidden(posixpath.basename(name)):
                    directories.append(str(found["name"]))
            elif name.strip("/") == path.strip("/") or not is_hidden(posixpath.basename(name)):
                files += 1
                size += int(found.get("size") or 0)
    return files, size


def write_file(file_system: Any, path: str, content: bytes) -> bool:
    """Writes a file, replacing one that is there, and makes its directory if need be; whether it made that."""
    is_made = make_directory(file_system, posixpath.dirname(path))
    file_system.pipe_file(path, content)
    return is_made


def delete_file(file_system: Any, path: str) -> None:
    """Deletes one file; nothing there is fine."""
    if file_system.isfile(path):
        file_system.rm_file(path)
