"""Directories in S3 by their keys, compatible with Hadoop's S3A: a marker's key ends in a slash."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from hms_cache.store.warehouse.keys import MARKER_TAG, OrderedKeyStore, StoredObject, bucket_and_key

_PAGE_OBJECTS = 1000
"""Maximum number of objects in one reply to a listing, set by S3."""

_OF_DIRECTORY_BUCKETS = "--x-s3"
"""Suffix of the names of S3's directory buckets (S3 Express One Zone), whose listings are not sorted."""


class S3Keys(OrderedKeyStore):
    """Uses s3fs."""

    marker_suffix = "/"

    def __init__(self, file_system: Any) -> None:
        super().__init__(file_system)
        _read_times_quickly(getattr(file_system, "session", None))

    def below(self, path: str, page_objects: int | None = None) -> Iterator[list[StoredObject]]:
        bucket, key = bucket_and_key(path)
        options: dict[str, Any] = {"Bucket": bucket, "Prefix": f"{key}/", "MaxKeys": page_objects or _PAGE_OBJECTS}
        while True:
            page = self.file_system.call_s3("list_objects_v2", **options)
            if objects := page.get("Contents"):
                yield [_described(each, key) for each in objects]
            if not page.get("IsTruncated"):
                return
            options["ContinuationToken"] = page["NextContinuationToken"]

    def is_in_order(self, bucket: str) -> bool:
        return not bucket.endswith(_OF_DIRECTORY_BUCKETS)

    def page_from(self, bucket: str, prefix: str, start: str, page_objects: int) -> tuple[list[StoredObject], bool]:
        options = {"Bucket": bucket, "Prefix": prefix, "MaxKeys": min(page_objects, _PAGE_OBJECTS)}
        # S3 begins after a key. Only a marker could have the key of a prefix, and a marker is not a file.
        page = self.file_system.call_s3("list_objects_v2", **options, StartAfter=start)
        return [_described(each, "") for each in page.get("Contents") or ()], bool(page.get("IsTruncated"))

    def children(self, path: str) -> list[tuple[str, bool]]:
        found = (
            (posixpath.basename(str(entry["name"]).rstrip("/")), entry["type"] == "directory")
            for entry in self.file_system.ls(path, detail=True)
            if str(entry["name"]).strip("/") != path.strip("/")  # the marker of the directory itself
        )
        return [(name, is_directory) for name, is_directory in found if name]

    def make_marker(self, path: str) -> None:
        bucket, key = bucket_and_key(path)
        self.file_system.call_s3("put_object", Bucket=bucket, Key=f"{key}/", Body=b"")

    def copy(self, source: str, destination: str, objects: Sequence[StoredObject]) -> None:
        bucket, key = bucket_and_key(source)
        goal = bucket_and_key(destination)[1]
        files = []
        for each in objects:
            if each.is_marker:
                self.file_system.call_s3("put_object", Bucket=bucket, Key=goal + each.suffix, Body=b"")
            else:
                files.append(each.suffix)
        if files:
            old, new = ([f"{bucket}/{directory}{suffix}" for suffix in files] for directory in (key, goal))
            self.file_system.copy(old, new, on_error="raise")

    def delete(self, bucket: str, keys: Sequence[str]) -> dict[str, Exception]:
        answer = self.file_system.call_s3(
            "delete_objects", Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
        )
        return {
            each.get("Key") or keys[0]: OSError(f"{each.get('Key')} cannot be deleted: {each.get('Code')}")
            for each in answer.get("Errors") or ()
        }


def _described(found: dict[str, Any], key: str) -> StoredObject:
    suffix = found["Key"].removeprefix(key)
    is_marker = suffix.endswith("/")
    tag = MARKER_TAG if is_marker else found["ETag"]
    return StoredObject(suffix, tag, found["Size"], is_marker, found["LastModified"])


def _read_times_quickly(session: Any) -> None:
    """Replaces botocore's parser of modification times, which takes ten times as long as everything else in a reply."""
    if session is None:
        return  # no request was made yet; the next listing has a session
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_time)


def _time(value: Any) -> datetime:
    """Parses a time in any format of S3 and compatible stores. Raises ValueError."""
    text = str(value)
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        with suppress(ValueError, TypeError):
            return read(text)
    return datetime.fromtimestamp(float(text), UTC)
