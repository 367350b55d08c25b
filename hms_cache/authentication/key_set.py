"""The keys of an issuer of JSON Web Tokens: a JWKS (RFC 7517) at an address or in a file, reloaded at intervals."""

from __future__ import annotations

import json
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hms_cache.authentication.timed_fetch import FetchError, fetched
from hms_cache.clock import elapsed_s
from hms_cache.values import frozen

MAX_BYTES = 1024 * 1024
"""Maximum size of the document: a hundred keys have some 100 kB."""

MAX_KEYS = 1000

_MAX_WAIT_S = 1.0
"""How long threads wait for the thread that reads the document. Threads that need a known key do not wait. Without the
limit, tokens with unknown keys would block all checking threads for as long as an issuer does not answer."""

SCHEMES = ("https", "http", "file")


_KINDS = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
"""Key types, by the first letters of the algorithms."""


class KeySetError(Exception):
    """The keys cannot be loaded."""


@frozen
class KeySetOptions:
    """Location of the keys, and intervals."""

    url: str
    ca_file: str | None
    """Certificate authorities for https addresses; None: those of the system."""
    timeout_s: float
    refresh_interval_s: float
    """Maximum time for which a key removed from the document is still trusted."""
    retry_interval_s: float
    """Minimum time between two attempts, after a failed one or for a token with an unknown key: clients cannot make the
    server ask more often."""


@frozen
class IssuerKey:
    """An entry of the document."""

    entry: dict[str, Any]

    def of(self, algorithm: str) -> Any:
        """The key in PyJWT's form for this algorithm; None if it is not for this algorithm: a token must not decide
        what a key is used for."""
        import jwt

        if self.entry.get("alg", algorithm) != algorithm or self.entry.get("kty") != _KINDS.get(algorithm[:2]):
            return None
        try:
            return jwt.PyJWK.from_dict(self.entry, algorithm).key
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            return None


class KeySet:
    """Keys of an issuer. Thread-safe. While the document is read, one thread blocks for up to `timeout_s`, others for
    up to a second."""

    def __init__(self, options: KeySetOptions, now_s: Callable[[], float] = elapsed_s) -> None:
        self._options = options
        self._now_s = now_s
        self._turns = threading.Condition()
        """Guards `_reading_since_s`; not held while the document is read."""
        self._reading_since_s: float | None = None
        """Start time of the thread that reads the document; others that wait need the same document."""
        self._keys: dict[str | None, list[IssuerKey]] = {}
        """By key id; replaced as a whole."""
        self._read_at_s: float | None = None
        self._tried_at_s: float | None = None
        self.generation = 0
        """Incremented by each new document: results of checks with earlier keys are checked again."""

    def load(self) -> None:
        """Loads the keys at the start. Raises KeySetError."""
        with self._turn():
            self._read()

    @property
    def is_current(self) -> bool:
        """Whether results of these keys may be used without reading the document. Does not block.

        True also after the refresh interval while a thread reads the document or soon after a failed attempt, as in
        `keep_current`.
        """
        if not self._is_due(1):
            return True
        return not self._is_due(2) and (self._reading_since_s is not None or not self._may_try())

    def keep_current(self) -> None:
        """Reads the document again if it is due. Raises KeySetError if the keys may not be trusted any more."""
        if not self._is_due(1) or (self._reading_since_s is not None and not self._is_due(2)):
            return
        try:
            with self._turn():
                if self._is_due(1):
                    if not self._may_try():
                        raise KeySetError("the issuer's keys cannot be read, and those that are held are too old")
                    self._read()
        except KeySetError:
            if self._is_due(2):
                raise

    def candidates(self, key_id: str | None) -> list[IssuerKey]:
        """The keys with this id; all keys for a token without one. An unknown id causes the document to be read again.
        Raises KeySetError."""
        self.keep_current()
        found = self._named(key_id)
        if found:
            return found
        with self._turn():
            found = self._named(key_id)
            if not found and self._may_try():
                self._read()
                found = self._named(key_id)
        return found

    def _named(self, key_id: str | None) -> list[IssuerKey]:
        keys = self._keys
        if key_id is None:
            return [key for named in keys.values() for key in named]
        return keys.get(key_id) or keys.get(None) or []

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Admits one thread at a time. Raises KeySetError if another one takes too long."""
        with self._turns:
            while self._reading_since_s is not None:
                remaining_s = self._reading_since_s + _MAX_WAIT_S - self._now_s()
                if remaining_s <= 0 or not self._turns.wait(remaining_s):
                    raise KeySetError(f"{self._options.url}: no answer for {_MAX_WAIT_S:g} s")
            self._reading_since_s = self._now_s()
        try:
            yield
        finally:
            with self._turns:
                self._reading_since_s = None
                self._turns.notify_all()

    def _is_due(self, times: int) -> bool:
        """Whether the document is older than this many intervals: after one it is read again, after two it is no longer
        trusted."""
        age_limit_s = times * self._options.refresh_interval_s
        return self._read_at_s is None or self._now_s() >= self._read_at_s + age_limit_s

    def _may_try(self) -> bool:
        return self._tried_at_s is None or self._now_s() >= self._tried_at_s + self._options.retry_interval_s

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
            data = fetched(options.url, options.timeout_s, ca_file=options.ca_file, max_bytes=MAX_BYTES)
        if len(data) > MAX_BYTES:
            raise KeySetError(f"{options.url}: more than {MAX_BYTES} bytes")
        return data
