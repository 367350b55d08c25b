"""The buckets of an S3 server and their objects."""

from __future__ import annotations

from typing import Any


class Buckets:
    """An endpoint, and its contents."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self.options: dict[str, Any] = {
            "key": "any",
            "secret": "any",
            "client_kwargs": {"endpoint_url": self.endpoint, "region_name": "us-east-1"},
        }
        import s3fs  # where it is not installed, these tests are skipped

        self._client = s3fs.S3FileSystem(**self.options, skip_instance_cache=True, use_listings_cache=False)

    def make_bucket(self, name: str) -> None:
        self._client.call_s3("create_bucket", Bucket=name)

    def put(self, bucket: str, key: str, storage_class: str = "STANDARD") -> None:
        """Puts an object of five bytes; an empty one if the key ends in a slash."""
        content = b"" if key.endswith("/") else b"12345"
        self._client.call_s3("put_object", Bucket=bucket, Key=key, Body=content, StorageClass=storage_class)

    def write(self, bucket: str, key: str, content: bytes) -> None:
        """An object with this content, replacing an existing one."""
        self._client.call_s3("put_object", Bucket=bucket, Key=key, Body=content)

    def delete(self, bucket: str, key: str) -> None:
        """Deletes an object; does nothing if it does not exist."""
        self._client.call_s3("delete_object", Bucket=bucket, Key=key)

    def keys(self, bucket: str) -> list[str]:
        """All of them."""
        found: list[str] = []
        options: dict[str, Any] = {"Bucket": bucket}
        while True:
            page = self._client.call_s3("list_objects_v2", **options)
            found += [each["Key"] for each in page.get("Contents", ())]
            if not page.get("IsTruncated"):
                return found
            options["ContinuationToken"] = page["NextContinuationToken"]
