"""Directories in Google Cloud Storage by their keys, compatible with Hadoop's driver: a marker's key ends in a
slash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from fsspec.asyn import sync

from hms_cache.store.warehouse.keys import (
    MARKER_TAG,
    OrderedKeyStore,
    StoredObject,
    bucket_and_key,
    bucket_and_prefix,
    each_of,
)

_PAGE_OBJECTS = 1000
"""Maximum number of objects in one reply to a listing, set by Google."""


class GoogleKeys(OrderedKeyStore):
    """Uses the requests of gcsfs."""

    marker_suffix = "/"

    def below(self, path: str, page_objects: int | None = None) -> Iterator[list[StoredObject]]:
        bucket, key = bucket_and_key(path)
        for page in self._pages(bucket, f"{key}/", page_objects or _PAGE_OBJECTS):
            if objects := page.get("items"):
                yield [_described(each, key) for each in objects]

    def children(self, path: str) -> list[tuple[str, bool]]:
        bucket, above = bucket_and_prefix(path)
        found: dict[str, bool] = {}
        for page in self._pages(bucket, above, _PAGE_OBJECTS, delimiter="/"):
            for each in page.get("items") or ():
                found.setdefault(each["name"][len(above) :], False)
            for prefix in page.get("prefixes") or ():
                found[prefix[len(above) :].rstrip("/")] = True
        found.pop("", None)  # the marker of the directory itself
        return list(found.items())

    def page_from(self, bucket: str, prefix: str, start: str, page_objects: int) -> tuple[list[StoredObject], bool]:
        for page in self._pages(bucket, prefix, min(page_objects, _PAGE_OBJECTS), startOffset=start):
            if page.get("items"):  # a page may be empty
                return [_described(each, "") for each in page["items"]], bool(page.get("nextPageToken"))
        return [], False

    def _pages(self, bucket: str, prefix: str, page_objects: int, **options: Any) -> Iterator[dict[str, Any]]:
        token: str | None = None
        while True:
            options["pageToken"] = token
            page: dict[str, Any] = self.file_system.call(
                "GET", "b/{}/o", bucket, json_out=True, prefix=prefix, maxResults=page_objects, **options
            )
            yield page
            token = page.get("nextPageToken")
            if not token:
                return

    def make_marker(self, path: str) -> None:
        bucket, key = bucket_and_key(path)
        self.file_system.pipe_file(f"{bucket}/{key}/", b"")

    def copy(self, source: str, destination: str, objects: Sequence[StoredObject]) -> None:
        bucket, key = bucket_and_key(source)
        goal = bucket_and_key(destination)[1]

        async def copy_one(each: StoredObject) -> None:
            await self.file_system._cp_file(f"{bucket}/{key}{each.suffix}", f"{bucket}/{goal}{each.suffix}")

        failed = sync(self.file_system.loop, each_of, copy_one, objects)
        if failed:
            raise failed[0][1]

    def delete(self, bucket: str, keys: Sequence[str]) -> dict[str, Exception]:
        async def delete_one(key: str) -> None:
            with suppress(FileNotFoundError):
                await self.file_system._call("DELETE", "b/{}/o/{}", bucket, key)

        return dict(sync(self.file_system.loop, each_of, delete_one, keys))


def _described(found: dict[str, Any], key: str) -> StoredObject:
    suffix = found["name"].removeprefix(key)
    size = int(found.get("size") or 0)
    is_marker = suffix.endswith("/") and not size
    tag = MARKER_TAG if is_marker else str(found.get("generation"))
    return StoredObject(suffix, tag, size, is_marker, found.get("updated"))
