"""Lists the objects of many directories of one bucket with few requests.

Partitions of a table are adjacent: one page of a listing, a thousand keys, contains the files of hundreds of them. A
listing begins at the first requested directory; directories that it passes are complete; the next listing begins at the
next requested directory. So each request completes at least one directory. A directory in which nothing was found is
listed again separately. At most twice as many requests are needed as with one listing per directory, and for adjacent
directories a hundredth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from hms_cache.store.warehouse.keys import OrderedKeyStore, StoredObject

_LISTING_OBJECTS = 100
"""Parsing this many keys of a page costs as much as listing one directory separately."""

_ALONE_DIRECTORIES = 64
"""After a page with too few requested directories, which are far apart then, this many are listed separately before a
page is tried again."""

_PAGE_OBJECTS = 1_000
"""Maximum number of objects in a page: what stores return at once."""

_MORE_OBJECTS = 8
"""Additional objects in a page, beyond one per requested directory and a quarter more."""


Listed = tuple[str, list[StoredObject] | Exception]
"""A directory by its key, and its objects, or the error of its listing."""


def objects_of(store: OrderedKeyStore, bucket: str, directories: Sequence[str]) -> Iterator[Listed]:
    """The objects of each directory, given by its key without a trailing slash. An object's `suffix` is the rest of its
    key; the directory's own marker may be missing.

    The bucket must be one that `is_in_order`. If the store's listing turns out not to be, each directory is listed
    separately.
    """
    scan = _Scan(store, bucket, sorted({f"{key}/" for key in directories}, key=str.encode))
    yield from scan.run()


class _Scan:
    """State of a scan over directories in the order of their keys."""

    def __init__(self, store: OrderedKeyStore, bucket: str, requested: Sequence[str]) -> None:
        self._store = store
        self._bucket = bucket
        self._requested, self._within = _apart(requested)
        self._number = 0
        """Index of the first directory that is not complete."""

        self._objects: list[StoredObject] = []
        """Its objects found in earlier pages."""

        self._start = ""
        """The key at which its listing continues."""

        self._alone = 0
        """Number of directories to list separately before a page is tried again."""

    def run(self) -> Iterator[Listed]:
        """Runs until all directories are complete."""
        while self._number < len(self._requested):
            if self._alone or self._number == len(self._requested) - 1:
                yield self._by_itself(self._requested[self._number])
                self._next()
                continue
            before = self._number
            prefix = _common_beginning(self._requested[self._number], self._requested[-1])
            try:
                page, is_more = self._page(prefix)
            except Exception:
                # Perhaps only this kind of listing is not permitted. Any other error shows up in each directory's own
                # listing.
                self._alone = len(self._requested)
                continue
            yield from self._take(page)
            if not is_more:
                while self._number < len(self._requested):
                    yield self._done()
            if self._number - before < len(page) // _LISTING_OBJECTS:
                self._alone = _ALONE_DIRECTORIES
        for key in self._within:
            yield self._by_itself(key)

    def _page(self, prefix: str) -> tuple[list[StoredObject], bool]:
        start = self._start or self._requested[self._number]
        left = len(self._requested) - self._number
        # A directory that did not fit into one page is large: pages of maximum size are used.
        requested = _PAGE_OBJECTS if self._start else min(left + left // 4 + _MORE_OBJECTS, _PAGE_OBJECTS)
        page, is_more = self._store.page_from(self._bucket, prefix, start, requested)
        keys = [start.encode(), *(each.suffix.encode() for each in page)]
        if any(one > other for one, other in pairwise(keys)) or (is_more and not page):
            raise OSError("The store does not list its keys in their order")
        # Some stores begin after the key, others with it.
        later = [each for each in page if each.suffix != self._start]
        if is_more and not later:
            # A store may return fewer objects than requested, even one: the next page would be the same.
            raise OSError("The store's page ends at the key at which it begins")
        return later, is_more

    def _take(self, page: Sequence[StoredObject]) -> Iterator[Listed]:
        for each in page:
            yield from self._pass(each.suffix)
            if self._number < len(self._requested) and each.suffix.startswith(here := self._requested[self._number]):
                self._objects.append(each._replace(suffix=each.suffix[len(here) - 1 :]))

    def _pass(self, key: str) -> Iterator[Listed]:
        """Completes all directories before this key."""
        while self._number < len(self._requested):
            here = self._requested[self._number]
            if key.startswith(here):
                self._start = key
                return
            if key.encode() < here.encode():
                return
            yield self._done()

    def _done(self) -> Listed:
        here, objects = self._requested[self._number], self._objects
        self._next()
        # A store on top of a file system may list `a/` before `a-b/`, and the page may have ended between them.
        return (here[:-1], objects) if objects else self._by_itself(here)

    def _by_itself(self, here: str) -> Listed:
        key = here[:-1]
        try:
            return key, [each for page in self._store.below(f"{self._bucket}/{key}") for each in page]
        except Exception as error:
            return key, error

    def _next(self) -> None:
        self._number += 1
        self._objects, self._start = [], ""
        self._alone = max(0, self._alone - 1)


def _apart(requested: Sequence[str]) -> tuple[list[str], list[str]]:
    """Directories that are not inside others of them, and those that are, whose objects belong to two."""
    apart: list[str] = []
    within: list[str] = []
    for key in requested:
        (within if apart and key.startswith(apart[-1]) else apart).append(key)
    return apart, within


def _common_beginning(one: str, other: str) -> str:
    length = next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))
    return one[:length]
