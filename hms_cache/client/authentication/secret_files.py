"""Passwords and bearer tokens in files, each the first line of its own. No text of an error has a part of one."""

from __future__ import annotations

from pathlib import Path

from hms_cache.client.errors import CredentialsError

MAX_BYTES = 64 * 1024
"""Of such a file: tokens with the groups of a user have some KiB."""


def read_bytes(path: str, what: str, max_bytes: int = MAX_BYTES) -> bytes:
    """All of a file. Raises CredentialsError."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no name of a file"
        raise CredentialsError(f"the file of {what}, {path}, cannot be read: {reason}") from error
    if len(content) > max_bytes:
        raise CredentialsError(f"the file of {what}, {path}, has more than {max_bytes} bytes")
    return content


def read_secret(path: str, what: str) -> str:
    """The first line of a file, without its end. Raises CredentialsError."""
    lines = read_bytes(path, what).split(b"\n", 1)
    try:
        secret = lines[0].rstrip(b"\r").decode()
    except UnicodeDecodeError:
        # Not `from`: the error's text has the bytes that could not be decoded.
        raise CredentialsError(f"the file of {what}, {path}, is not in UTF-8") from None
    if not secret.strip() or "\0" in secret:
        raise CredentialsError(f"the file of {what}, {path}, has nothing in its first line that could be one")
    return secret
