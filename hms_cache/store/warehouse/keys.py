"""Directories of object stores by their keys: what a store of objects does with them.

A store of objects has keys and no directories. A directory without files is a marker: an empty object. Where it lies
is the store's: S3 and Google append a slash to the directory's key, Azure takes the key itself and says so in the
blob's metadata.
Drivers of fsspec show such objects as files, or lose them: so directories are handled by their keys here.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

T = TypeVar("T")

AT_ONCE = 32
"""Requests on their way at a time, where a store takes one for each object."""


class StoredObject(NamedTuple):
    """An object of a directory."""

    suffix: str
    """What its key has after the key of the directory: empty or `/…`."""

    tag: str
    """What its content is told apart by. Markers have one and the same."""

    size: int
    is_marker: bool
    """Whether it stands for a directory."""

    modified: Any = None

    @property
    def name(self) -> str:
        """Its path below the directory; empty for the directory's own marker."""
        return self.suffix.strip("/") if self.is_marker else self.suffix[1:]


MARKER_TAG = "marker"


class KeyStore(ABC):
    """An object store. Raises what its driver raises; FileNotFoundError for a bucket that is not there."""

    marker_suffix: ClassVar[str]
    """What a marker's key has after the directory's."""

    def __init__(self, file_system: Any) -> None:
        self.file_system = file_system

    @abstractmethod
    def below(self, path: str, page_objects: int | None = None) -> Iterator[list[StoredObject]]:
        """All objects of a directory, markers included, in pages of at most so many, by default as many as the store
        gives; no page is empty. A file at the path itself is none."""

    def is_directory(self, path: str) -> bool:
        """Whether a directory has a marker, or anything in it. Drivers list all of it, or ask for a file first."""
        try:
            return any(self.below(path, page_objects=1))
        except FileNotFoundError:  # the bucket
            return False

    def require_bucket(self, path: str) -> None:
        """Raises OSError, and no FileNotFoundError, if the bucket of a directory is not there: of a bucket that is
        looked for in the wrong store, or was misspelt, nobody knows what is in it."""
        try:
            next(self.below(path, page_objects=1), None)
        except FileNotFoundError as error:
            raise no_bucket(path) from error

    def is_empty(self, path: str) -> bool:
        """Whether nothing is in a directory but its marker."""
        return not any(each.name or not each.is_marker for page in self.below(path, page_objects=2) for each in page)

    @abstractmethod
    def children(self, path: str) -> list[tuple[str, bool]]:
        """Names directly in a directory, and whether each is a directory; empty where nothing is."""

    @abstractmethod
    def make_marker(self, path: str) -> None:
        """Makes the marker of a directory. Raises FileExistsError if its key is taken, where the store can tell."""

    @abstractmethod
    def copy(self, source: str, destination: str, objects: Sequence[StoredObject]) -> None:
        """Copies objects of a directory to another of the same bucket, until done; what is copied by an error stays."""

    @abstractmethod
    def delete(self, bucket: str, keys: Sequence[str]) -> dict[str, Exception]:
        """Deletes objects, at most a thousand; one that is not there is fine. The errors, by key."""


class OrderedKeyStore(KeyStore):
    """An object store that lists keys in the order of their UTF-8, and begins at any of them."""

    def is_in_order(self, bucket: str) -> bool:
        """Whether this bucket is listed so."""
        return True

    @abstractmethod
    def page_from(self, bucket: str, prefix: str, start: str, page_objects: int) -> tuple[list[StoredObject], bool]:
        """Objects whose keys begin with the prefix, from the key `start` on, or after it: so many at most, each with
        its whole key as `suffix`, and whether there are more."""


def no_bucket(path: str) -> OSError:
    """For what lies in a bucket that is not there."""
    return OSError(f"There is no bucket {path.strip('/').partition('/')[0]}")


def bucket_and_key(path: str) -> tuple[str, str]:
    """Of a directory, without a slash at its end."""
    bucket, _, key = path.strip("/").partition("/")
    if not key:
        raise PermissionError(f"A bucket is never changed as a whole: {path}")
    return bucket, key


def bucket_and_prefix(path: str) -> tuple[str, str]:
    """Of what is in a directory, or in a bucket as a whole: to list it changes nothing."""
    bucket, _, key = path.strip("/").partition("/")
    return bucket, f"{key}/" if key else ""


async def each_of(work: Callable[[T], Awaitable[None]], of: Iterable[T]) -> list[tuple[T, Exception]]:
    """Does the work for each, some at a time: those that failed."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(item: T) -> tuple[T, Exception] | None:
        async with turns:
            try:
                await work(item)
            except Exception as error:
                return item, error
        return None

    return [failed for failed in await asyncio.gather(*map(one, of)) if failed is not None]
