"""Directories in Azure Blob Storage by their keys, compatible with Hadoop's drivers.

A marker is an empty blob with the key of the directory and `hdi_isfolder` in its metadata. In an account with a
hierarchical namespace that blob is the directory itself: listings look the same, and it can only be deleted after its
contents. Empty blobs of other programs whose names end in a slash count as markers, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from fsspec.asyn import sync

from hms_cache.store.warehouse.keys import (
    MARKER_TAG,
    KeyStore,
    StoredObject,
    bucket_and_key,
    bucket_and_prefix,
    each_of,
)

_PENDING_S = 0.2
"""Pause between checks of a copy that the store makes in the background."""

_FOLDER = {"hdi_isfolder": "true"}


class AzureKeys(KeyStore):
    """Uses the client of adlfs."""

    marker_suffix = ""

    def below(self, path: str, page_objects: int | None = None) -> Iterator[list[StoredObject]]:
        container, key = bucket_and_key(path)
        if sync(self.file_system.loop, self._has_marker, container, key):
            yield [StoredObject("", MARKER_TAG, 0, True)]
        token: str | None = None
        while True:
            found, token = sync(self.file_system.loop, self._page, container, f"{key}/", page_objects, token)
            if found:
                yield [_described(blob, key) for blob in found]
            if not token:
                return

    async def _has_marker(self, container: str, key: str) -> bool:
        try:
            found = await self._client(container).get_blob_client(key).get_blob_properties()
        except Exception as error:
            if _status(error) == 404:
                return False
            raise
        return _is_folder(found)

    async def _page(
        self, container: str, prefix: str, page_objects: int | None, token: str | None
    ) -> tuple[list[Any], str | None]:
        listing = self._client(container).list_blobs(
            name_starts_with=prefix, include=["metadata"], results_per_page=page_objects
        )
        pages = listing.by_page(continuation_token=token)
        try:
            page = await anext(pages)
            return [blob async for blob in page], pages.continuation_token
        except StopAsyncIteration:
            return [], None
        except Exception as error:
            raise _translated(error, container) from error

    def children(self, path: str) -> list[tuple[str, bool]]:
        container, above = bucket_and_prefix(path)
        found: dict[str, bool] = {}
        for blob in sync(self.file_system.loop, self._walk, container, above):
            is_directory = blob.name.endswith("/") or _is_folder(blob)
            name = blob.name[len(above) :].rstrip("/")
            if name:
                # A directory may have both a marker and a prefix.
                found[name] = found.get(name, False) or is_directory
        return list(found.items())

    async def _walk(self, container: str, prefix: str) -> list[Any]:
        try:
            walked = self._client(container).walk_blobs(name_starts_with=prefix, include=["metadata"], delimiter="/")
            return [blob async for blob in walked]
        except Exception as error:
            raise _translated(error, container) from error

    def make_marker(self, path: str) -> None:
        sync(self.file_system.loop, self._make_marker, *bucket_and_key(path))

    async def _make_marker(self, container: str, key: str) -> None:
        try:
            # An existing file with this key would be lost.
            await self._client(container).upload_blob(key, b"", overwrite=False, metadata=_FOLDER)
        except Exception as error:
            if _status(error) == 409:
                raise FileExistsError(f"{container}/{key}") from error
            raise _translated(error, container) from error

    def copy(self, source: str, destination: str, objects: Sequence[StoredObject]) -> None:
        container, key = bucket_and_key(source)
        goal = bucket_and_key(destination)[1]

        async def copy_one(each: StoredObject) -> None:
            if not each.is_marker:
                await self._copy(container, key + each.suffix, goal + each.suffix)
                return
            try:
                await self._make_marker(container, (goal + each.suffix).rstrip("/"))
            except FileExistsError:
                if not await self._has_marker(container, (goal + each.suffix).rstrip("/")):
                    raise

        failed = sync(self.file_system.loop, each_of, copy_one, objects)
        if failed:
            raise failed[0][1]

    async def _copy(self, container: str, key: str, goal: str) -> None:
        """Returns when the copy is complete: the store may answer earlier, and then the source would be deleted too
        early."""
        client = self._client(container)
        blob = client.get_blob_client(goal)
        answer = await blob.start_copy_from_url(client.get_blob_client(key).url)
        status = answer.get("copy_status")
        while status == "pending":
            await asyncio.sleep(_PENDING_S)
            status = (await blob.get_blob_properties()).copy.status
        if status != "success":
            raise OSError(f"{container}/{key} cannot be copied: {status}")

    def delete(self, bucket: str, keys: Sequence[str]) -> dict[str, Exception]:
        return dict(sync(self.file_system.loop, self._delete, bucket, keys))

    async def _delete(self, container: str, keys: Sequence[str]) -> list[tuple[str, Exception]]:
        client = self._client(container)

        async def delete_one(key: str) -> None:
            try:
                await client.delete_blob(key)
            except Exception as error:
                # If other programs have written into the directory meanwhile, their files and the directory stay.
                if _status(error) != 404 and getattr(error, "error_code", None) != "DirectoryIsNotEmpty":
                    raise

        def depth(key: str) -> int:
            return -key.rstrip("/").count("/")

        failed: list[tuple[str, Exception]] = []
        for _, same in groupby(sorted(keys, key=depth), depth):
            failed += await each_of(delete_one, same)
        return failed

    def _client(self, container: str) -> Any:
        return self.file_system.service_client.get_container_client(container)


def _described(blob: Any, key: str) -> StoredObject:
    suffix = blob.name.removeprefix(key)
    size = int(blob.size or 0)
    is_marker = _is_folder(blob) or (suffix.endswith("/") and not size)
    tag = MARKER_TAG if is_marker else str(blob.etag)
    return StoredObject(suffix, tag, 0 if is_marker else size, is_marker, blob.last_modified)


def _is_folder(blob: Any) -> bool:
    # Prefixes have no metadata. Some accounts capitalize the key.
    metadata = getattr(blob, "metadata", None) or {}
    return any(name.lower() == "hdi_isfolder" and str(text).lower() == "true" for name, text in metadata.items())


def _status(error: Exception) -> int | None:
    status: int | None = getattr(error, "status_code", None)
    return status


def _translated(error: Exception, container: str) -> Exception:
    return FileNotFoundError(f"There is no container {container}") if _status(error) == 404 else error
