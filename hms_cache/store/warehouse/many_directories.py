"""The objects of many directories of one bucket, by as few listings as that takes.

Partitions of a table lie beside each other: one page of a listing, a thousand keys, has the files of hundreds of them.
A listing begins at the first directory that is wanted, and what it passes is done; the next begins at the next one that
is wanted. So each request tells of one directory at least. One in which nothing was found is listed once more by
itself: there are twice as many requests as with a listing of each at most, and with neighbours a hundredth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from hms_cache.store.warehouse.keys import OrderedKeyStore, StoredObject

_LISTING_OBJECTS = 100
"""To take so many keys of a page apart is as much work as the listing of a directory by itself."""

_ALONE_DIRECTORIES = 64
"""So many are listed by themselves after a page that had too little of them, which lie far apart: then a page is tried
again."""

_PAGE_OBJECTS = 1_000
"""Objects in a page at most: what stores give at once."""

_MORE_OBJECTS = 8
"""Of a page, beside one for each directory that is wanted and a quarter more."""


Listed = tuple[str, list[StoredObject] | Exception]
"""A directory by its key, and its objects; or why it could not be listed."""


def objects_of(store: OrderedKeyStore, bucket: str, directories: Sequence[str]) -> Iterator[Listed]:
    """The objects of each directory, given by its key without a slash at the end. Each object's `suffix` is what its
    key has after that; the directory's own marker may be left out.

    The bucket has to be one that `is_in_order`. A store that then does not list it so is asked for each directory.
    """
    scan = _Scan(store, bucket, sorted({f"{key}/" for key in directories}, key=str.encode))
    yield from scan.run()


class _Scan:
    """Of directories in the order of their keys."""

    def __init__(self, store: OrderedKeyStore, bucket: str, wanted: Sequence[str]) -> None:
        self._store = store
        self._bucket = bucket
        self._wanted, self._within = _apart(wanted)
        self._number = 0
        """Of the first that is not done."""

        self._objects: list[StoredObject] = []
        """What was found of it, in a page before."""

        self._start = ""
        """The key at which its listing goes on."""

        self._alone = 0
        """How many are listed by themselves, before a page is tried again."""

    def run(self) -> Iterator[Listed]:
        """Until all are done."""
        while self._number < len(self._wanted):
            if self._alone or self._number == len(self._wanted) - 1:
                yield self._by_itself(self._wanted[self._number])
                self._next()
                continue
            before = self._number
            prefix = _common_beginning(self._wanted[self._number], self._wanted[-1])
            try:
                page, is_more = self._page(prefix)
            except Exception:
                # It may be this listing only that is not allowed. What else it is, each will tell.
                self._alone = len(self._wanted)
                continue
            yield from self._take(page)
            if not is_more:
                while self._number < len(self._wanted):
                    yield self._done()
            if self._number - before < len(page) // _LISTING_OBJECTS:
                self._alone = _ALONE_DIRECTORIES
        for key in self._within:
            yield self._by_itself(key)

    def _page(self, prefix: str) -> tuple[list[StoredObject], bool]:
        start = self._start or self._wanted[self._number]
        left = len(self._wanted) - self._number
        # A directory that one page did not hold has many: of these as many as the store gives.
        wanted = _PAGE_OBJECTS if self._start else min(left + left // 4 + _MORE_OBJECTS, _PAGE_OBJECTS)
        page, is_more = self._store.page_from(self._bucket, prefix, start, wanted)
        keys = [start.encode(), *(each.suffix.encode() for each in page)]
        if any(one > other for one, other in pairwise(keys)) or (is_more and not page):
            raise OSError("The store does not list its keys in their order")
        # Some begin after the key, others with it.
        return [each for each in page if each.suffix != self._start], is_more

    def _take(self, page: Sequence[StoredObject]) -> Iterator[Listed]:
        for each in page:
            yield from self._pass(each.suffix)
            if self._number < len(self._wanted) and each.suffix.startswith(here := self._wanted[self._number]):
                self._objects.append(each._replace(suffix=each.suffix[len(here) - 1 :]))

    def _pass(self, key: str) -> Iterator[Listed]:
        """All that comes before this key is done."""
        while self._number < len(self._wanted):
            here = self._wanted[self._number]
            if key.startswith(here):
                self._start = key
                return
            if key.encode() < here.encode():
                return
            yield self._done()

    def _done(self) -> Listed:
        here, objects = self._wanted[self._number], self._objects
        self._next()
        # A store over a file system may list `a/` before `a-b/`, and the page have ended between the two.
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


def _apart(wanted: Sequence[str]) -> tuple[list[str], list[str]]:
    """Directories that lie in no other of them, and those that do, whose objects are of two."""
    apart: list[str] = []
    within: list[str] = []
    for key in wanted:
        (within if apart and key.startswith(apart[-1]) else apart).append(key)
    return apart, within


def _common_beginning(one: str, other: str) -> str:
    length = next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))
    return one[:length]
