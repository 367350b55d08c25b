"""Directories and files of file systems opened by fsspec.

No path is passed to functions that expand `*`, `?` or `[`, as `rm` and `mv` of fsspec do: they would also affect other
matching paths. If a path contains such characters, its files are handled one by one.

Object stores have no directories. As with Hadoop's drivers, a directory without files is an empty object, its marker,
so that readers find a directory. In fsspec, listings show it as a file or twice, `mv` fails on it or does not wait for
its copies, and `makedirs` and `rmdir` do nothing; so directories of S3, Azure and Google are handled by their keys, see
`keys`.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import takewhile
from typing import Any, Protocol

from fsspec.core import has_magic

from hms_cache.batches import batches
from hms_cache.store.warehouse.key_stores import key_store_of
from hms_cache.store.warehouse.keys import KeyStore, StoredObject, bucket_and_key
from hms_cache.store.warehouse.local_files import ListingTooLong, is_hidden


class BatchOperation(Protocol):
    """An operation on many paths of one file system. Returns the results of as many as were begun before the
    deadline."""

    def __call__(self, file_system: Any, paths: Sequence[str], *, deadline_s: float) -> list[Exception | None]: ...


MARKERS_AT_ONCE = 16
"""Directories that one call creates concurrently on an object store: each takes two or three requests of tens of
milliseconds. Hive uses fifteen threads (`metastore.fshandler.threads`)."""

_KEYS_AT_ONCE = 1000
"""Keys deleted by one request: S3's maximum."""


def is_directory(file_system: Any, path: str) -> bool:
    """Whether a directory exists. On an object store this takes one request, whatever the directory's size."""
    store = key_store_of(file_system)
    if store is None or _is_bucket(path):
        return bool(file_system.isdir(path))
    return store.is_directory(path)


def _is_bucket(path: str) -> bool:
    return "/" not in path.strip("/")


def make_directory(file_system: Any, path: str) -> bool:
    """Creates the directory and its parents. Returns False if it existed, or another call created it meanwhile."""
    if is_directory(file_system, path):
        return False
    store = key_store_of(file_system)
    try:
        if store is not None:
            store.make_marker(path)
        else:
            file_system.makedirs(path, exist_ok=False)
    except FileExistsError:
        if not is_directory(file_system, path):
            raise
        return False
    return True


def make_directories(file_system: Any, paths: Sequence[str]) -> list[bool | Exception]:
    """Like `make_directory` for each, in order; the result is the bool or its error. On object stores several run
    concurrently."""
    if key_store_of(file_system) is None or len(paths) == 1:
        return [_made(file_system, path) for path in paths]
    with ThreadPoolExecutor(MARKERS_AT_ONCE, "hms-markers") as pool:
        return list(pool.map(partial(_made, file_system), paths))


def _made(file_system: Any, path: str) -> bool | Exception:
    try:
        return make_directory(file_system, path)
    except Exception as error:  # drivers raise classes of their own
        return error


def is_vacant(file_system: Any, path: str) -> bool:
    """Whether nothing exists there, or only an empty directory."""
    if not file_system.exists(path):
        return True
    return is_directory(file_system, path) and _is_empty(file_system, path)


def _is_empty(file_system: Any, path: str) -> bool:
    store = key_store_of(file_system)
    return store.is_empty(path) if store is not None else not names(file_system, path)


def remove_empty_directory(file_system: Any, path: str) -> None:
    """Removes an empty directory. If it has contents, or is not a directory, nothing happens."""
    if not is_directory(file_system, path) or not _is_empty(file_system, path):
        return
    store = key_store_of(file_system)
    if store is not None:
        bucket, key = bucket_and_key(path)
        _raise_first(store.delete(bucket, sorted({key + store.marker_suffix, f"{key}/"})))
    else:
        file_system.rmdir(path)


def move(file_system: Any, source: str, destination: str) -> None:
    """Moves a file, or a directory with its contents; on an object store, the objects that a listing shows. Raises
    FileExistsError if the destination exists."""
    if file_system.exists(destination):
        raise FileExistsError(destination)
    store = key_store_of(file_system)
    if store is not None:
        moved = _copy_keys(store, source, destination)
        if "" not in moved and file_system.isfile(source):
            store.copy(source, destination, [StoredObject("", "", 0, is_marker=False)])
            moved.append("")
        # Objects that others have written there meanwhile belong to a new table.
        delete_objects(file_system, source, sorted(moved, key=len, reverse=True))
        return
    file_system.makedirs(posixpath.dirname(destination), exist_ok=True)
    if not has_magic(source) and not has_magic(destination):
        file_system.mv(source, destination, recursive=True)
        return
    for name in file_system.find(source):
        _copy_file(file_system, name, source, destination)
        file_system.rm_file(name)
    delete(file_system, source)


def copy(file_system: Any, source: str, destination: str) -> None:
    """Copies a directory with its files. Raises FileExistsError if the destination exists."""
    if file_system.exists(destination):
        raise FileExistsError(destination)
    store = key_store_of(file_system)
    if store is not None:
        _copy_keys(store, source, destination)
        return
    file_system.makedirs(destination)
    for name in file_system.find(source):
        _copy_file(file_system, name, source, destination)


def _copy_file(file_system: Any, name: str, source: str, destination: str) -> None:
    """Copies a file to its place below the destination, and creates directories there."""
    goal = f"{destination}/{posixpath.relpath(name, source)}"
    file_system.makedirs(posixpath.dirname(goal), exist_ok=True)
    file_system.cp_file(name, goal)


def _copy_keys(store: KeyStore, source: str, destination: str) -> list[str]:
    """Copies all objects, and returns the suffixes of their keys. The source is not changed. If copying fails, the
    copies are deleted."""
    copied: list[str] = []
    try:
        for objects in store.below(source):
            copy_objects(store.file_system, source, destination, objects)
            copied += (each.suffix for each in objects)
        return copied
    except BaseException:
        with suppress(Exception):
            _KeyDeletion(store).delete_below(destination)
        raise


def delete_each(file_system: Any, paths: Sequence[str], *, deadline_s: float) -> list[Exception | None]:
    """Deletes each file, or directory with its contents. Missing ones are no error. An error of one does not affect the
    others.

    On S3 this takes one request per directory to list it, and one per thousand objects to delete them. The first is
    always begun, the others not after `deadline_s` of `time.monotonic`; returns results for those that were begun.
    """
    store = key_store_of(file_system)
    if store is not None:
        return _KeyDeletion(store).delete_each(paths, deadline_s)
    return _each(delete, file_system, paths, deadline_s)


def remove_empty_each(file_system: Any, paths: Sequence[str], *, deadline_s: float) -> list[Exception | None]:
    """Like `remove_empty_directory` for as many as `deadline_s` allows."""
    return _each(remove_empty_directory, file_system, paths, deadline_s)


def _each(
    operation: Callable[[Any, str], object], file_system: Any, paths: Sequence[str], deadline_s: float
) -> list[Exception | None]:
    done: list[Exception | None] = []
    for path in paths:
        if done and time.monotonic() > deadline_s:
            break
        try:
            operation(file_system, path)
        except Exception as error:  # drivers raise classes of their own
            done.append(error)
        else:
            done.append(None)
    return done


class _KeyDeletion:
    """Deletes the objects of several directories together."""

    def __init__(self, store: KeyStore) -> None:
        self._store = store
        self._waiting: list[tuple[str, str, int]] = []
        """Bucket, key, and index of the directory to which the object belongs."""

        self._markers: list[tuple[str, str, int]] = []
        """The same for markers, which are deleted after the contents of their directories, as some stores require."""

        self._errors: dict[int, Exception] = {}

    def delete_each(self, paths: Sequence[str], deadline_s: float) -> list[Exception | None]:
        """See `delete_each`."""
        begun = 0
        for number, path in enumerate(paths):
            if number and time.monotonic() > deadline_s:
                break
            begun += 1
            try:
                self._add_all(path, number)
            except Exception as error:
                self._errors[number] = error
        self._end()
        return [self._errors.get(number) for number in range(begun)]

    def delete_below(self, path: str) -> dict[int, Exception]:
        """Deletes one directory; returns its error, if any."""
        self._add_all(path, 0)
        self._end()
        return self._errors

    def _add_all(self, path: str, number: int) -> None:
        bucket, key = bucket_and_key(path)
        self._markers.append((bucket, key, number))  # also if it is a file
        for objects in self._store.below(path):
            for each in objects:
                if each.suffix:
                    to = self._markers if each.is_marker else self._waiting
                    to.append((bucket, key + each.suffix, number))
            while len(self._waiting) >= _KEYS_AT_ONCE:
                self._send()

    def _end(self) -> None:
        # The contents of a directory have longer keys than its marker.
        self._waiting += sorted(self._markers, key=lambda each: len(each[1]), reverse=True)
        while self._waiting:
            self._send()

    def _send(self) -> None:
        some = self._waiting[:_KEYS_AT_ONCE]
        bucket = some[0][0]
        some = list(takewhile(lambda each: each[0] == bucket, some))
        del self._waiting[: len(some)]
        number_of = {key: number for _, key, number in some}
        try:
            errors = self._store.delete(bucket, [key for _, key, _ in some])
        except Exception as error:
            self._errors.update(dict.fromkeys(number_of.values(), error))
            return
        for key, failed in errors.items():
            self._errors.setdefault(number_of.get(key, some[0][2]), failed)


def _raise_first(errors: Mapping[Any, Exception]) -> None:
    for error in errors.values():
        raise error


def delete(file_system: Any, path: str) -> None:
    """Deletes a file, or a directory with its contents. Missing ones are no error. Not for object stores, see
    `delete_each`."""
    if not file_system.exists(path):
        return
    if file_system.isfile(path):
        file_system.rm_file(path)
        return
    if not has_magic(path):
        file_system.rm(path, recursive=True)
        return
    found = file_system.find(path, withdirs=True, detail=True)
    for name in sorted((*found, path), key=len, reverse=True):
        if name == path or found[name]["type"] == "directory":
            with suppress(FileNotFoundError):  # in an object store a directory disappears with its last file
                file_system.rmdir(name)
        else:
            file_system.rm_file(name)


def names(file_system: Any, path: str) -> list[str]:
    """The entries of a directory; empty if it does not exist."""
    if not is_directory(file_system, path):
        return []
    store = key_store_of(file_system)
    if store is not None:
        return [name for name, _ in store.children(path)]
    found = (
        posixpath.basename(entry.rstrip("/"))
        for entry in file_system.ls(path, detail=False)
        if entry.strip("/") != path.strip("/")  # the directory itself
    )
    return [name for name in found if name]


def visible_files(
    file_system: Any, path: str, *, max_entries: int, deadline_s: float
) -> Generator[tuple[str, int], None, None]:
    """Path below the directory, and size, of each visible file.

    Raises ListingTooLong for more than `max_entries` entries, or after `deadline_s` of `time.monotonic`.
    """
    store = key_store_of(file_system)
    if store is not None and not _is_bucket(path):
        yield from _visible_keys(store, path, max_entries, deadline_s)
        return
    if not file_system.exists(path):
        return
    entries = 0
    directories = [path]
    while directories:
        directory = directories.pop()
        for found in file_system.ls(directory, detail=True):
            entries += 1
            if entries > max_entries or time.monotonic() > deadline_s:
                raise ListingTooLong(f"{entries} entries examined")
            name = str(found["name"]).rstrip("/")
            if found["type"] == "directory":
                if name.strip("/") != directory.strip("/") and not is_hidden(posixpath.basename(name)):
                    directories.append(str(found["name"]))
            elif str(found["name"]).endswith("/"):
                continue  # the directory's marker
            elif name.strip("/") == path.strip("/") or not is_hidden(posixpath.basename(name)):
                yield name.strip("/").removeprefix(path.strip("/")).lstrip("/"), int(found.get("size") or 0)


def _visible_keys(
    store: KeyStore, path: str, max_entries: int, deadline_s: float
) -> Generator[tuple[str, int], None, None]:
    # One listing of everything below, with a thousand keys per reply, instead of one listing per directory.
    entries = 0
    for objects in store.below(path):
        entries += len(objects)
        if entries > max_entries or time.monotonic() > deadline_s:
            raise ListingTooLong(f"{entries} entries examined")
        for each in objects:
            if not each.is_marker and not any(is_hidden(name) for name in each.name.split("/")):
                yield each.name, each.size


def write_file(file_system: Any, path: str, content: bytes) -> bool:
    """Writes a file, replacing an existing one, and creates its directory if necessary; returns whether it did."""
    is_made = make_directory(file_system, posixpath.dirname(path))
    file_system.pipe_file(path, content)
    return is_made


def delete_file(file_system: Any, path: str) -> None:
    """Deletes one file, if it exists."""
    if file_system.isfile(path):
        file_system.rm_file(path)


def copy_objects(file_system: Any, source: str, destination: str, objects: Sequence[StoredObject]) -> None:
    """Copies these objects of a directory to another one in the same bucket. After an error, objects copied so far
    stay."""
    _store(file_system).copy(source, destination, objects)


def delete_objects(file_system: Any, path: str, suffixes: Sequence[str]) -> None:
    """Deletes these objects of a directory, in order. Missing ones are no error. Raises OSError."""
    bucket, key = bucket_and_key(path)
    for some in batches(suffixes, _KEYS_AT_ONCE):
        errors = _store(file_system).delete(bucket, [key + suffix for suffix in some])
        for first, error in errors.items():
            raise OSError(f"{len(errors)} objects cannot be deleted, the first {first}: {error}") from error


def objects_below(file_system: Any, path: str) -> Iterator[StoredObject]:
    """All objects of a directory, including markers."""
    for objects in _store(file_system).below(path):
        yield from objects


def marker_suffix(file_system: Any) -> str:
    """Suffix that turns a directory's key into its marker's."""
    return _store(file_system).marker_suffix


def _store(file_system: Any) -> KeyStore:
    store = key_store_of(file_system)
    if store is None:
        raise OSError(f"The driver {type(file_system).__name__} is not that of an object store")
    return store
