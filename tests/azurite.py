"""Azure's Blob Storage as a separate program: Azurite, which holds its blobs in memory."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import downloads
from tests.programs import running

_VERSION = "3.37.0"
_INSTALLED_WITHIN_S = 300  # it takes 80 s here; npm by itself would ask a registry that is silent for an hour
ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Of this account: the one that each Azurite has, by its documentation."""


def find() -> Path:
    """Returns the program; npm installs it at the first use. Raises `downloads.FetchFailed`."""

    def install(path: Path) -> None:
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(path), f"azurite@{_VERSION}"]
        downloads.run(command, limit_s=_INSTALLED_WITHIN_S)

    if found := shutil.which("azurite-blob"):
        return Path(found)
    return downloads.kept(f"azurite-{_VERSION}", install) / "node_modules" / ".bin" / "azurite-blob"


class BlobStore:
    """An endpoint, and its contents."""

    def __init__(self, port: int) -> None:
        self.connection_string = (
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={_KEY};"
            f"BlobEndpoint=http://127.0.0.1:{port}/{ACCOUNT};"
        )
        self.options: dict[str, Any] = {"connection_string": self.connection_string}
        from azure.storage.blob import BlobServiceClient  # where adlfs is not installed, these tests are skipped

        self._client: Any = BlobServiceClient.from_connection_string(self.connection_string)

    def make_bucket(self, name: str) -> None:
        self._client.create_container(name)

    def put(self, bucket: str, key: str) -> None:
        """Puts a blob of five bytes; if the key ends in a slash, an empty one, the marker of a directory."""
        if key.endswith("/"):
            self.write(bucket, key.rstrip("/"), b"", hdi_isfolder="true")
        else:
            self.write(bucket, key, b"12345")

    def write(self, bucket: str, key: str, content: bytes, **metadata: str) -> None:
        """A blob with this content, replacing an existing one."""
        self._client.get_container_client(bucket).upload_blob(key, content, overwrite=True, metadata=metadata)

    def keys(self, bucket: str) -> list[str]:
        """All of them, in order; those of markers with a slash."""
        found = self._client.get_container_client(bucket).list_blobs(include=["metadata"])
        return sorted(f"{blob.name}/" if "hdi_isfolder" in (blob.metadata or {}) else blob.name for blob in found)


@contextmanager
def blob_store(program: Path, directory: Path) -> Iterator[BlobStore]:
    """A server that is ready, stopped at the end."""
    command = [str(program), "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--loose"]
    command += ["--blobHost", "127.0.0.1", "--blobPort", "0"]
    with running(command, directory / "azurite.log", _port_in) as port:
        yield BlobStore(port)


def _port_in(line: str) -> int | None:
    found = re.search(r"listen(?:s|ing) (?:at|on) http://127\.0\.0\.1:(\d+)", line)
    return int(found[1]) if found else None
