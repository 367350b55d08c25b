"""The keys of an issuer of JSON Web Tokens: a JWKS (RFC 7517) at an address or in a file, read again as it changes."""

from __future__ import annotations

import json
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hms_cache.authentication.timed_fetch import FetchError, fetched
from hms_cache.clock import elapsed_s
from hms_cache.values import frozen

MAX_BYTES = 1024 * 1024
"""Of the document: a hundred keys have some 100 kB."""

MAX_KEYS = 1000

SCHEMES = ("https", "http", "file")


_KINDS = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
"""Of keys, by the first letters of the algorithms that they are for."""


class KeySetError(Exception):
    """The keys cannot be had."""


@frozen
class KeySetOptions:
    """Where the keys are, and how often they are looked for."""

    url: str
    ca_file: str | None
    """Authorities of https addresses; None: those of the system."""
    timeout_s: float
    refresh_interval_s: float
    """A key that is taken out of the document is trusted this much longer, at most."""
    retry_interval_s: float
    """Between two attempts, whether because the document could not be read or because a token names an unknown key:
    clients cannot make the server ask more often."""


@frozen
class IssuerKey:
    """One entry of the document."""

    entry: dict[str, Any]

    def of(self, algorithm: str) -> Any:
        """What PyJWT checks signatures of this algorithm with; None where it is no key for it: what a key is for is not
        the token's to say.
        """
        import jwt

        if self.entry.get("alg", algorithm) != algorithm or self.entry.get("kty") != _KINDS.get(algorithm[:2]):
            return None
        try:
            return jwt.PyJWK.from_dict(self.entry, algorithm).key
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            return None


class KeySet:
    """Thread-safe. Blocks on the document's server while it reads: at most `timeout_s`, one thread at a time."""

    def __init__(self, options: KeySetOptions, now_s: Callable[[], float] = elapsed_s) -> None:
        self._options = options
        self._now_s = now_s
        self._reading = threading.Lock()
        """Held while the document is read: who waits for it needs the same document."""
        self._keys: dict[str | None, list[IssuerKey]] = {}
        """By their ids; replaced as a whole."""
        self._read_at_s: float | None = None
        self._tried_at_s: float | None = None
        self.generation = 0
        """Raised by each new document: what was proven by the one before is proven anew."""

    def load(self) -> None:
        """At the start. Raises KeySetError."""
        with self._reading:
            self._read()

    def keep_current(self) -> None:
        """Reads the document again when its time is over. Raises KeySetError when its keys may be trusted no more."""
        now_s = self._now_s()
        if self._read_at_s is not None and now_s < self._read_at_s + self._options.refresh_interval_s:
            return
        with self._reading:
            now_s = self._now_s()
            age_s = None if self._read_at_s is None else now_s - self._read_at_s
            if age_s is not None and age_s < self._options.refresh_interval_s:
                return
            if self._may_try(now_s):
                try:
                    self._read()
                    return
                except KeySetError:
                    if age_s is None or age_s >= 2 * self._options.refresh_interval_s:
                        raise
            if age_s is None or age_s >= 2 * self._options.refresh_interval_s:
                raise KeySetError("the issuer's keys cannot be read, and those that are held are too old")

    def candidates(self, key_id: str | None) -> list[IssuerKey]:
        """Keys with this id; for a token that names none, all. An unknown id makes the document be read again. Raises
        KeySetError.
        """
        self.keep_current()
        found = self._named(key_id)
        if found:
            return found
        with self._reading:
            found = self._named(key_id)
            if not found and self._may_try(self._now_s()):
                self._read()
                found = self._named(key_id)
        return found

    def _named(self, key_id: str | None) -> list[IssuerKey]:
        keys = self._keys
        if key_id is None:
            return [key for named in keys.values() for key in named]
        return keys.get(key_id) or keys.get(None) or []

    def _may_try(self, now_s: float) -> bool:
        return self._tried_at_s is None or now_s >= self._tried_at_s + self._options.retry_interval_s

    def _read(self) -> None:
        self._tried_at_s = self._now_s()
        try:
            document = json.loads(self._document())
            entries = document["keys"]
            if not isinstance(entries, list) or len(entries) > MAX_KEYS:
                raise KeySetError(f"{self._options.url}: more than {MAX_KEYS} keys, or no list of keys")
        except (FetchError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise KeySetError(f"{self._options.url}: no keys could be read: {error}") from error
        found: dict[str | None, list[IssuerKey]] = {}
        for entry in entries:
            # A symmetric key would make everybody who can read the document an issuer.
            if isinstance(entry, dict) and entry.get("use", "sig") == "sig" and entry.get("kty") in _KINDS.values():
                key_id = entry.get("kid")
                found.setdefault(key_id if isinstance(key_id, str) else None, []).append(IssuerKey(entry))
        if not found:
            raise KeySetError(f"{self._options.url}: there is no key for signatures in it")
        self._keys = found
        self._read_at_s = self._tried_at_s
        self.generation += 1

    def _document(self) -> bytes:
        options = self._options
        parts = urllib.parse.urlsplit(options.url)
        if parts.scheme == "file":
            data = Path(urllib.request.url2pathname(parts.path)).read_bytes()
        else:
            data = fetched(options.url, options.timeout_s, ca_file=options.ca_file, most_bytes=MAX_BYTES)
        if len(data) > MAX_BYTES:
            raise KeySetError(f"{options.url}: more than {MAX_BYTES} bytes")
        return data
