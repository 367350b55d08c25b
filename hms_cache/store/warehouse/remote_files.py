"""Directories and files of file systems that fsspec opens.

Nothing here lets a driver expand `*`, `?` or `[` in a path: `rm` and `mv` of fsspec do, and would take along what only
matches. Where a path has such characters, its files are handled one by one.

S3 has objects and no directories. As Hadoop's S3A does, a directory without files is an empty object whose key ends in
a slash: readers that are sent there find a directory. Listings of fsspec show such an object as a file, its `mv` fails
at it, and its `rmdir` knows none; so directories of S3 are handled by their keys.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol

from fsspec.core import has_magic

from hms_cache.store.warehouse.local_files import ListingTooLong, is_hidden


class Each(Protocol):
    """An operation on many paths of one file system: what became of each, of as many as were begun in time."""

    def __call__(self, file_system: Any, paths: Sequence[str], *, deadline_s: float) -> list[Exception | None]: ...


_KEYS_AT_ONCE = 1000
"""Keys in one request to list or to delete: the most that S3 takes."""


def make_directory(file_system: Any, path: str) -> bool:
    """Makes the directory and its parents; False when it was there already, or another call made it meanwhile."""
    if file_system.isdir(path):
        return False
    if is_s3(file_system):
        bucket, key = _bucket_and_key(path)
        file_system.call_s3("put_object", Bucket=bucket, Key=f"{key}/", Body=b"")
        return True
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
    return bool(file_system.isdir(path)) and not names(file_system, path)


def remove_empty_directory(file_system: Any, path: str) -> None:
    """Removes a directory without anything in it; one that has something, or is none, stays as it is."""
    if not file_system.isdir(path) or names(file_system, path):
        return
    if is_s3(file_system):
        bucket, key = _bucket_and_key(path)
        file_system.call_s3("delete_object", Bucket=bucket, Key=f"{key}/")
    else:
        file_system.rmdir(path)


def move(file_system: Any, source: str, destination: str) -> None:
    """Moves a directory with all in it. Raises FileExistsError for a destination that is there."""
    if file_system.exists(destination):
        raise FileExistsError(destination)
    if is_s3(file_system):
        _move_keys(file_system, source, destination)
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
    """Copies a directory with all files in it. Raises FileExistsError for a destination that is there."""
    if file_system.exists(destination):
        raise FileExistsError(destination)
    if is_s3(file_system):
        _copy_keys(file_system, source, destination)
        return
    file_system.makedirs(destination)
    for name in file_system.find(source):
        _copy_file(file_system, name, source, destination)


def _copy_file(file_system: Any, name: str, source: str, destination: str) -> None:
    """To its place below the destination, whose directories are made."""
    goal = f"{destination}/{posixpath.relpath(name, source)}"
    file_system.makedirs(posixpath.dirname(goal), exist_ok=True)
    file_system.cp_file(name, goal)


def _copy_keys(file_system: Any, source: str, destination: str) -> None:
    """Copies all objects. Copies of a failed one go."""
    prefix = key_of(source) + "/"
    try:
        for keys in _keys_below(file_system, source):
            copy_objects(file_system, source, destination, [each.removeprefix(prefix) for each in keys])
    except BaseException:
        with suppress(Exception):
            _delete_keys(file_system, destination)
        raise


def _move_keys(file_system: Any, source: str, destination: str) -> None:
    """Copies all objects, then deletes those of the source: until then it is whole."""
    _copy_keys(file_system, source, destination)
    _delete_keys(file_system, source)


def delete_each(file_system: Any, paths: Sequence[str], *, deadline_s: float) -> list[Exception | None]:
    """Deletes each file or directory with all in it; nothing there is fine. An error of one leaves the others.

    On S3 that is a request to list each, and one to delete for every thousand objects of all of them. None is begun
    after `deadline_s` of `time.monotonic`, but the first: answers those that were begun.
    """
    if is_s3(file_system):
        return _KeyDeletion(file_system).delete_each(paths, deadline_s)
    return _each(delete, file_system, paths, deadline_s)


def remove_empty_each(file_system: Any, paths: Sequence[str], *, deadline_s: float) -> list[Exception | None]:
    """As `remove_empty_directory` of each, as many as `deadline_s` allows."""
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
    """Objects of several directories deleted together."""

    def __init__(self, file_system: Any) -> None:
        self._file_system = file_system
        self._waiting: list[tuple[str, str, int]] = []
        """Bucket, key, and the number of the directory that it belongs to."""

        self._errors: dict[int, Exception] = {}

    def delete_each(self, paths: Sequence[str], deadline_s: float) -> list[Exception | None]:
        """See `delete_each`."""
        begun = 0
        for number, path in enumerate(paths):
            if number and time.monotonic() > deadline_s:
                break
            begun += 1
            try:
                bucket, key = _bucket_and_key(path)
                self._add(bucket, [key], number)  # where it is a file
                for keys in _keys_below(self._file_system, path):
                    self._add(bucket, keys, number)
            except Exception as error:
                self._errors[number] = error
        self._send(len(self._waiting))
        return [self._errors.get(number) for number in range(begun)]

    def _add(self, bucket: str, keys: Sequence[str], number: int) -> None:
        if self._waiting and self._waiting[0][0] != bucket:
            self._send(len(self._waiting))
        self._waiting.extend((bucket, key, number) for key in keys)
        while len(self._waiting) >= _KEYS_AT_ONCE:
            self._send(_KEYS_AT_ONCE)

    def _send(self, count: int) -> None:
        some, self._waiting = self._waiting[:count], self._waiting[count:]
        if not some:
            return
        number_of = {key: number for _, key, number in some}
        try:
            answer = self._file_system.call_s3(
                "delete_objects",
                Bucket=some[0][0],
                Delete={"Objects": [{"Key": key} for _, key, _ in some], "Quiet": True},
            )
        except Exception as error:
            self._errors.update(dict.fromkeys(number_of.values(), error))
            return
        for each in answer.get("Errors") or ():
            failed = OSError(f"{each.get('Key')} cannot be deleted: {each.get('Code')}")
            self._errors.setdefault(number_of.get(each.get("Key"), some[0][2]), failed)


def delete(file_system: Any, path: str) -> None:
    """Deletes a file or a directory with all in it; nothing there is fine. Not for S3, see `delete_each`."""
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
            with suppress(FileNotFoundError):  # an object store's directory goes with the last file in it
                file_system.rmdir(name)
        else:
            file_system.rm_file(name)


def names(file_system: Any, path: str) -> list[str]:
    """What a directory holds; nothing when it is absent."""
    if not file_system.isdir(path):
        return []
    found = (
        posixpath.basename(entry.rstrip("/"))
        for entry in file_system.ls(path, detail=False)
        if entry.strip("/") != path.strip("/")  # the object that stands for the directory itself
    )
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
        for found in file_system.ls(directory, detail=True):
            entries += 1
            if entries > max_entries or time.monotonic() > deadline_s:
                raise ListingTooLong(f"{entries} entries looked at")
            name = str(found["name"]).rstrip("/")
            if found["type"] == "directory":
                if name.strip("/") != directory.strip("/") and not is_hidden(posixpath.basename(name)):
                    directories.append(str(found["name"]))
            elif str(found["name"]).endswith("/"):
                continue  # the object that stands for the directory
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


def is_s3(file_system: Any) -> bool:
    """Whether it is S3, whose directories are handled by their keys."""
    protocol = file_system.protocol
    return "s3" in ((protocol,) if isinstance(protocol, str) else protocol) and hasattr(file_system, "call_s3")


def _bucket_and_key(path: str) -> tuple[str, str]:
    bucket, _, key = path.strip("/").partition("/")
    if not key:
        raise PermissionError(f"A bucket is never changed as a whole: {path}")
    return bucket, key


def key_of(path: str) -> str:
    """The key of a directory of S3, without a slash at its end."""
    return _bucket_and_key(path)[1]


def objects_below(file_system: Any, path: str) -> Iterator[list[dict[str, Any]]]:
    """All objects of a directory of S3, the one that stands for it included, as S3 lists them, in pages."""
    bucket, key = _bucket_and_key(path)
    options: dict[str, Any] = {"Bucket": bucket, "Prefix": f"{key}/", "MaxKeys": _KEYS_AT_ONCE}
    while True:
        page = file_system.call_s3("list_objects_v2", **options)
        if objects := page.get("Contents"):
            yield objects
        if not page.get("IsTruncated"):
            return
        options["ContinuationToken"] = page["NextContinuationToken"]


def _keys_below(file_system: Any, path: str) -> Iterator[list[str]]:
    for objects in objects_below(file_system, path):
        yield [each["Key"] for each in objects]


def copy_objects(file_system: Any, source: str, destination: str, names: Sequence[str]) -> None:
    """Copies these objects of a directory of S3 to another of the same bucket; what is copied by an error stays."""
    bucket, key = _bucket_and_key(source)
    goal = _bucket_and_key(destination)[1]
    files = []
    for name in names:
        if not name or name.endswith("/"):
            file_system.call_s3("put_object", Bucket=bucket, Key=f"{goal}/{name}", Body=b"")
        else:
            files.append(name)
    if files:
        old, new = ([f"{bucket}/{directory}/{name}" for name in files] for directory in (key, goal))
        file_system.copy(old, new, on_error="raise")


def delete_objects(file_system: Any, path: str, names: Sequence[str]) -> None:
    """Deletes these objects of a directory of S3; one that is not there is fine. Raises OSError."""
    bucket, key = _bucket_and_key(path)
    for start in range(0, len(names), _KEYS_AT_ONCE):
        some = names[start : start + _KEYS_AT_ONCE]
        answer = file_system.call_s3(
            "delete_objects",
            Bucket=bucket,
            Delete={"Objects": [{"Key": f"{key}/{name}"} for name in some], "Quiet": True},
        )
        if errors := answer.get("Errors"):
            first = errors[0]
            raise OSError(f"{len(errors)} objects cannot be deleted, the first {first.get('Key')}: {first.get('Code')}")


def _delete_keys(file_system: Any, path: str) -> None:
    prefix = key_of(path) + "/"
    while keys := next(_keys_below(file_system, path), None):
        delete_objects(file_system, path, [each.removeprefix(prefix) for each in keys])
