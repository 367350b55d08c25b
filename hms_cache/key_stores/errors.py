"""Why a key store could not be read."""

from __future__ import annotations


class KeyStoreError(ValueError):
    """The file is damaged, or of an unknown kind, or the password is wrong."""


class CipherMissingError(KeyStoreError):
    """The package cryptography is not installed."""

    def __init__(self) -> None:
        super().__init__("it needs the package cryptography: install hms-cache[tls]")
