"""Files of certificates, keys and revocation lists, as the settings name them."""

from __future__ import annotations

import ssl
from pathlib import Path

from hms_cache.errors import StartupError


def content_of(file: Path, setting: str) -> bytes:
    """Of the file that this setting names. Raises StartupError."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise StartupError(
            f"{setting}: {file} cannot be read: {error.strerror}",
            remedy="The account of the server must be able to read it.",
        ) from error


def reason_of(error: Exception) -> str:
    """Why a file could not be used, in a few words."""
    return (error.reason if isinstance(error, ssl.SSLError) else None) or str(error) or type(error).__name__


def trust(context: ssl.SSLContext, file: Path, problem: str, remedy: str) -> None:
    """Has the context take what it checks certificates by from a file. Raises StartupError, of this problem."""
    try:
        context.load_verify_locations(file)
    except (ssl.SSLError, OSError) as error:
        raise StartupError(f"{problem}: {reason_of(error)}", remedy=remedy) from error
