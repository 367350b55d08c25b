"""The keys of an issuer of JSON Web Tokens: a JWKS (RFC 7517) at an address or in a file, read again as it changes."""

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
"""Of the document: a hundred keys have some 100 kB."""

MAX_KEYS = 1000

_PATIENCE_S = 1.0
"""How long others wait for the thread that reads the document. Who needs a key that is held does not wait; tokens that
name unknown keys would otherwise keep all threads that check tokens for as long as a silent issuer may take."""

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
    """Thread-safe. Blocks on the document's server while it reads: one thread for `timeout_s`, others for a second."""

    def __init__(self, options: KeySetOptions, now_s: Callable[[], float] = elapsed_s) -> None:
        self._options = options
        self._now_s = now_s
        self._turns = threading.Condition()
        """Guards `_reading_since_s`; no document is read under it."""
        self._reading_since_s: float | None = None
        """Of the thread whose turn it is to read: who waits for it needs the same document."""
        self._keys: dict[str | None, list[IssuerKey]] = {}
        """By their ids; replaced as a whole."""
        self._read_at_s: float | None = None
        self._tried_at_s: float | None = None
        self.generation = 0
        """Raised by each new document: what was proven by the one before is proven anew."""

    def load(self) -> None:
        """At the start. Raises KeySetError."""
        with self._turn():
            self._read()

    @property
    def is_current(self) -> bool:
        """Whether what these keys have proven counts without a look at the document: asks nobody.

        They do once their time is over, too, while a thread reads the document or it could not be read a moment ago,
        as in `keep_current`.
        """
        if not self._is_due(1):
            return True
        return not self._is_due(2) and (self._reading_since_s is not None or not self._may_try())

    def keep_current(self) -> None:
        """Reads the document again when its time is over. Raises KeySetError when its keys may be trusted no more."""
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
        """Keys with this id; for a token that names none, all. An unknown id makes the document be read again. Raises
        KeySetError.
        """
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
        """One thread at a time. Raises KeySetError when another one takes long."""
        with self._turns:
            while self._reading_since_s is not None:
                left_s = self._reading_since_s + _PATIENCE_S - self._now_s()
                if left_s <= 0 or not self._turns.wait(left_s):
                    raise KeySetError(f"{self._options.url}: no answer for {_PATIENCE_S:g} s")
            self._reading_since_s = self._now_s()
        try:
            yield
        finally:
            with self._turns:
                self._reading_since_s = None
                self._turns.notify_all()

    def _is_due(self, times: int) -> bool:
        """Whether the document is older than so many intervals. After one it is read again, after two not trusted."""
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
