"""Hadoop's credential providers: key stores with passwords, to which site files refer.

Facts: `Configuration.getPassword` and `JavaKeyStoreProvider` of Hadoop 3.4. A password in a provider comes before the
text of the same property, under whose name it is kept. Read are key stores in local files (`jceks://file/…`,
`localjceks://file/…`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from hms_cache.config.site_file import SiteProperty
from hms_cache.errors import ConfigurationError
from hms_cache.key_stores.errors import KeyStoreError
from hms_cache.key_stores.java_key_store import SecretKey, read_key_store, secret_key

PATH: Final = "hadoop.security.credential.provider.path"
PASSWORD_FILE: Final = "hadoop.security.credstore.java-keystore-provider.password-file"
TEXT_COUNTS: Final = "hadoop.security.credential.clear-text-fallback"
PASSWORD_VARIABLE: Final = "HADOOP_CREDSTORE_PASSWORD"

_PASSWORD_OF_HADOOP: Final = "none"
"""The password of key stores for which none was given."""

_KINDS: Final = ("jceks", "localjceks")

_REMEDY: Final = (
    "write its passwords into files of their own, and name these by database.password_file,"
    " server.tls_key_password_file and the like"
)


class CredentialProviders:
    """The providers that the site files name. Their files are read once, when a password is looked for."""

    def __init__(self, site: Mapping[str, SiteProperty], environment: Mapping[str, str]) -> None:
        self._site = site
        self._environment = environment
        self._stores: list[tuple[str, Mapping[str, SecretKey]]] | None = None
        """URI, and entries by alias in lower case, in which the key stores keep them."""
        self._unread: list[str] = []
        self._password = ""

    @property
    def unread(self) -> Sequence[str]:
        """The reasons why providers are not used: they are of another kind, or their file does not exist."""
        self._opened()
        return self._unread

    @property
    def secrets(self) -> list[str]:
        """The password of the key stores, unless it is Hadoop's default."""
        return [self._password] if self._password != _PASSWORD_OF_HADOOP else []

    @property
    def text_counts(self) -> bool:
        """Whether the value of a property is used as a password if no provider contains one."""
        found = self._site.get(TEXT_COUNTS)
        return found is None or found.value.strip().lower() != "false"

    def find(self, names: Sequence[str]) -> tuple[str, str] | None:
        """Returns the password under one of these names, which are tried in order, and its origin; None without one.

        :raises ConfigurationError: a key store cannot be read.
        """
        for name in names:
            for uri, entries in self._opened():
                entry = entries.get(name.lower())
                if entry is not None:
                    return self._text_of(entry, uri), f"{uri} ({name})"
        return None

    def _text_of(self, entry: SecretKey, uri: str) -> str:
        try:
            return secret_key(entry, self._password).decode()
        except (KeyStoreError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{uri}: {entry.alias} cannot be read: {error}") from error

    def _opened(self) -> list[tuple[str, Mapping[str, SecretKey]]]:
        if self._stores is None:
            self._stores = []
            path = self._site.get(PATH)
            for uri in (one.strip() for one in path.value.split(",")) if path is not None else ():
                if uri:
                    self._open(uri)
        return self._stores

    def _open(self, uri: str) -> None:
        assert self._stores is not None
        file = _local_file(uri)
        if file is None:
            self._unread.append(f"{uri} is not a key store in a local file (jceks://file/…): {_REMEDY}")
            return
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            self._unread.append(f"the file of {uri} does not exist")
            return
        except OSError as error:
            raise ConfigurationError(f"{uri}: cannot be read: {error.strerror}. {_otherwise()}") from error
        self._password = self._password or self._store_password()
        try:
            store = read_key_store(content, self._password)
        except KeyStoreError as error:
            raise ConfigurationError(
                f"{uri}: {error}. Its password is taken from the environment variable {PASSWORD_VARIABLE}, or else from"
                f" the file that {PASSWORD_FILE} names. {_otherwise()}"
            ) from error
        self._stores.append((uri, {one.alias.lower(): one for one in store.secret_keys}))

    def _store_password(self) -> str:
        """A relative name of the file counts from the directory of the site file: Hadoop looks for it there, too."""
        if self._environment.get(PASSWORD_VARIABLE):
            return self._environment[PASSWORD_VARIABLE]
        named = self._site.get(PASSWORD_FILE)
        if named is None or not named.value:
            return _PASSWORD_OF_HADOOP
        file = Path(named.file).parent / named.value
        try:
            return file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise ConfigurationError(f"{named.file}: {PASSWORD_FILE}: {file} cannot be read: {reason}") from error


def _local_file(uri: str) -> Path | None:
    """Returns the file of a provider; None if it is of another kind, or not local.

    The URI's authority is the scheme of the file's own URI, and `@` and its authority may follow.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    scheme, _, authority = parts.netloc.partition("@")
    is_local = parts.scheme in _KINDS and scheme == "file" and not authority and parts.path
    return Path(unquote(parts.path)) if is_local else None


def local_files(uris: str) -> list[Path]:
    """Returns the local files of the providers with these URIs."""
    found = (_local_file(one.strip()) for one in uris.split(","))
    return [file for file in found if file is not None]


def _otherwise() -> str:
    return f"Or {_REMEDY}; an empty {PATH} in a site file that is read later leaves the provider out."


def password_in(uris: str, alias: str, environment: Mapping[str, str]) -> str | None:
    """Returns the password under this alias in the providers with these URIs, separated by commas; None if no provider
    contains it, or none can be used.

    :raises ConfigurationError: a key store cannot be read.
    """
    found = CredentialProviders({PATH: SiteProperty(PATH, uris, "")}, environment).find([alias])
    return found[0] if found is not None else None
