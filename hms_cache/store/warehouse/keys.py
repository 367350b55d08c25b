"""Directories of object stores by their keys: the interface of a store.

An object store has keys but no directories. A directory without files is a marker, an empty object. Its key depends on
the store: S3 and Google append a slash to the directory's key, Azure uses the key itself and marks it in the blob's
metadata. Drivers of fsspec show markers as files, or lose them, so this program handles directories by their keys.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

T = TypeVar("T")

AT_ONCE = 32
"""Concurrent requests, if a store needs one request per object."""


class StoredObject(NamedTuple):
    """An object of a directory."""

    suffix: str
    """The part of its key after the directory's key: empty, or `/…`."""

    tag: str
    """Identifies its content. All markers have the same tag."""

    size: int
    is_marker: bool
    """Whether it is the marker of a directory."""

    modified: Any = None

    @property
    def name(self) -> str:
        """Its path below the directory; empty for the directory's own marker."""
        return self.suffix.strip("/") if self.is_marker else self.suffix[1:]


MARKER_TAG = "marker"


class KeyStore(ABC):
    """An object store. Raises its driver's exceptions, and FileNotFoundError for a bucket that does not exist."""

    marker_suffix: ClassVar[str]
    """Suffix that turns a directory's key into its marker's."""

    def __init__(self, file_system: Any) -> None:
        self.file_system = file_system

    @abstractmethod
    def below(self, path: str, page_objects: int | None = None) -> Iterator[list[StoredObject]]:
        """All objects of a directory, including markers, in non-empty pages of at most `page_objects` (default: as many
        as the store returns). A file at the path itself is not included."""

    def is_directory(self, path: str) -> bool:
        """Whether a directory has a marker or contents. Drivers would list everything, or look for a file first."""
        try:
            return any(self.below(path, page_objects=1))
        except FileNotFoundError:  # the bucket
            return False

    def require_bucket(self, path: str) -> None:
        """Raises an OSError other than FileNotFoundError if a directory's bucket does not exist: if it is looked up in
        the wrong store, or misspelt, its contents are unknown rather than absent."""
        try:
            next(self.below(path, page_objects=1), None)
        except FileNotFoundError as error:
            raise no_bucket(path) from error

    def is_empty(self, path: str) -> bool:
        """Whether a directory contains nothing except its marker."""
        return not any(each.name or not each.is_marker for page in self.below(path, page_objects=2) for each in page)

    @abstractmethod
    def children(self, path: str) -> list[tuple[str, bool]]:
        """Names directly in a directory, and whether each is a directory; empty if it does not exist."""

    @abstractmethod
    def make_marker(self, path: str) -> None:
        """Creates the marker of a directory. Raises FileExistsError if its key exists, if the store can check that."""

    @abstractmethod
    def copy(self, source: str, destination: str, objects: Sequence[StoredObject]) -> None:
        """Copies objects of a directory to another one in the same bucket. After an error, objects copied so far
        stay."""

    @abstractmethod
    def delete(self, bucket: str, keys: Sequence[str]) -> dict[str, Exception]:
        """Deletes at most a thousand objects. Missing objects are no error. Returns errors by key."""


class OrderedKeyStore(KeyStore):
    """An object store that lists keys in the order of their UTF-8 bytes, and can begin at any of them."""

    def is_in_order(self, bucket: str) -> bool:
        """Whether listings of this bucket are in that order."""
        return True

    @abstractmethod
    def page_from(self, bucket: str, prefix: str, start: str, page_objects: int) -> tuple[list[StoredObject], bool]:
        """Objects with this key prefix, beginning with (or after) the key `start`: at most `page_objects`, each with
        its whole key as `suffix`, and whether there are more."""


def no_bucket(path: str) -> OSError:
    """The error for a path in a bucket that does not exist."""
    return OSError(f"There is no bucket {path.strip('/').partition('/')[0]}")


def bucket_and_key(path: str) -> tuple[str, str]:
    """Bucket and key of a directory, without a trailing slash."""
    bucket, _, key = path.strip("/").partition("/")
    if not key:
        raise PermissionError(f"A bucket is never changed as a whole: {path}")
    return bucket, key


def bucket_and_prefix(path: str) -> tuple[str, str]:
    """Bucket and prefix of the contents of a directory, or of a whole bucket, which may be listed."""
    bucket, _, key = path.strip("/").partition("/")
    return bucket, f"{key}/" if key else ""


async def each_of(work: Callable[[T], Awaitable[None]], of: Iterable[T]) -> list[tuple[T, Exception]]:
    """Runs the work for each item, some concurrently. Returns the items that failed, with their errors."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(item: T) -> tuple[T, Exception] | None:
        async with turns:
            try:
                await work(item)
            except Exception as error:
                return item, error
        return None

    return [failed for failed in await asyncio.gather(*map(one, of)) if failed is not None]
