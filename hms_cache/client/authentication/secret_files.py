"""Reads passwords and bearer tokens from the first lines of files, and passwords from Hadoop's credential providers.

Texts of errors contain no part of a secret.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path

from hms_cache.client.errors import CredentialsError
from hms_cache.config.credential_providers import local_files, password_in
from hms_cache.errors import ConfigurationError

MAX_BYTES = 64 * 1024
"""Maximum size of such a file: tokens with the groups of a user have a few KiB."""


def placed(path: str) -> str:
    """Where the file is. A name without a directory that does not exist here may be of a file that Spark distributes
    (``--files``): Spark has such files beside its executors, and in a directory of its own beside a driver."""
    if not path or Path(path).name != path or Path(path).exists():
        return path
    spark = sys.modules.get("pyspark.core.files")
    try:
        found: str = spark.SparkFiles.get(path)  # type: ignore[union-attr]
    except Exception:
        return path  # no Spark here, or no session yet
    return found if Path(found).exists() else path


def read_bytes(path: str, what: str, max_bytes: int = MAX_BYTES) -> bytes:
    """Returns the contents of a file. Raises CredentialsError."""
    try:
        with Path(placed(path)).open("rb") as file:
            content = file.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "this is not a file name"
        raise CredentialsError(f"{path}, the file with {what}, cannot be read: {reason}") from error
    if len(content) > max_bytes:
        raise CredentialsError(f"{path}, the file with {what}, has more than {max_bytes} bytes")
    return content


def read_secret(path: str, what: str) -> str:
    """Returns the first line of a file, without its line end. Raises CredentialsError."""
    lines = read_bytes(path, what).split(b"\n", 1)
    try:
        secret = lines[0].rstrip(b"\r").decode()
    except UnicodeDecodeError:
        # Not `from`: the text of that error contains the bytes that could not be decoded.
        raise CredentialsError(f"{path}, the file with {what}, is not in UTF-8") from None
    if not secret.strip() or "\0" in secret:
        raise CredentialsError(f"{path}, the file with {what}, has no valid first line")
    return secret


def read_stored_password(uris: str, user: str) -> str:
    """Returns the password that Hadoop's credential providers contain under the name of the user.

    It is kept until a file changes: decrypting takes half a second. Raises CredentialsError.
    """
    return _stored_password(uris, user, tuple(_signature(file) for file in local_files(uris)))


@lru_cache(maxsize=16)
def _stored_password(uris: str, user: str, files: tuple[object, ...]) -> str:
    try:
        found = password_in(uris, user, os.environ)
    except ConfigurationError as error:
        raise CredentialsError(str(error)) from error
    if not found:
        raise CredentialsError(f"no key store in {uris} contains a password of {user}; only local files are read")
    return found


def _signature(file: Path) -> tuple[int, ...]:
    """Returns a value that differs after a change of the file; empty if the file cannot be read."""
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino
