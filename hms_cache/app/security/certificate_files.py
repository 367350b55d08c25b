"""Files of certificates, keys and revocation lists in the settings."""

from __future__ import annotations

import ssl
from pathlib import Path

from hms_cache.errors import StartupError


def content_of(file: Path, setting: str) -> bytes:
    """The content of the file in this setting. Raises StartupError."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise StartupError(
            f"{setting}: {file} cannot be read: {error.strerror}",
            remedy="The account of the server must be able to read it.",
        ) from error


def reason_of(error: Exception) -> str:
    """A short reason why a file could not be used."""
    return (error.reason if isinstance(error, ssl.SSLError) else None) or str(error) or type(error).__name__


def trust(context: ssl.SSLContext, file: Path, problem: str, remedy: str) -> None:
    """Loads trusted certificates or revocation lists from a file into the context. Raises StartupError with
    `problem`."""
    try:
        context.load_verify_locations(file)
    except (ssl.SSLError, OSError) as error:
        raise StartupError(f"{problem}: {reason_of(error)}", remedy=remedy) from error
