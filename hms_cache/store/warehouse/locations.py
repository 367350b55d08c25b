"""`Location`: where an object's files are, in the single form that this program checks, compares, stores and opens.

The form is that of Hadoop's `Path` (`Path.initialize`, `Path.normalizePath`, then `URI.normalize`): scheme, authority
and path are split at the first colon before the first slash; repeated and trailing slashes are removed; `.` and `..`
are resolved; nothing is percent-encoded or decoded, so `%2e%2e` is an ordinary name; blanks, colons, `#` and `?` are
ordinary characters. `file:///x`, `file:/x` and (with a local default file system) `/x` are one location, written
`file:/x`. A `..` at the root stays at the root, as in RFC 3986 (`URI.normalize` keeps it, and Hadoop's file systems
then refuse the path). Relative paths are refused, as by `Warehouse.getDnsPath`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from hms_cache.values import frozen

_SCHEME = re.compile(r"\A([A-Za-z][A-Za-z0-9+.\-]*):")


_SCHEMES_OF_ONE_STORE = (("s3a", "s3", "s3n"), ("abfss", "abfs", "wasbs", "wasb"), ("gs", "gcs"))
"""Schemes of Hadoop's drivers for the same store: each reads what the others write, at the same path."""

_DEFAULT_PORTS = {"hdfs": ":8020", "webhdfs": ":9870", "swebhdfs": ":9871"}
"""Default ports of Hadoop 3 for an authority without a port."""

_AZURE_HOSTS = (".dfs.", ".blob.")
"""Parts of a storage account's host name as Data Lake and as Blob Storage: `name.dfs.core.windows.net`."""


def is_relative(text: str) -> bool:
    """Whether a path begins neither with a scheme nor with a slash."""
    return not text.startswith("/") and _SCHEME.match(text) is None


@frozen
class Location:
    """A directory or file: scheme, authority (may be empty) and an absolute, normalized path.

    The path has single slashes, no trailing slash, and no `.` or `..` names. The constructor normalizes in the same way
    as `parse`.
    """

    scheme: str
    authority: str
    path: str

    def __post_init__(self) -> None:
        normal = _normal_path(self.path)
        if normal != self.path:
            object.__setattr__(self, "path", normal)

    @classmethod
    def parse(cls, text: str, default: Location | None = None) -> Location:
        """Parses `text`. A missing scheme or authority is taken from `default`.

        Raises MetaException for an empty text, a NUL character, a relative path, or a missing scheme without a default.
        """
        if not text:
            raise MetaException("Can not create a Path from an empty string")
        if "\0" in text:
            raise MetaException("A location cannot have a NUL character")
        found = _SCHEME.match(text)
        scheme = found.group(1) if found else ""
        rest = text[found.end() :] if found else text
        authority = ""
        if rest.startswith("//"):
            end = rest.find("/", 2)
            authority, rest = (rest[2:], "") if end < 0 else (rest[2:end], rest[end:])
        if rest and not rest.startswith("/"):
            raise MetaException(f"java.net.URISyntaxException: Relative path in absolute URI: {text}")
        if not scheme:
            if default is None:
                raise MetaException(f"No file system in {text}")
            scheme, authority = default.scheme, authority or default.authority
        elif default is not None and not authority and scheme == default.scheme:
            authority = default.authority
        return cls(scheme, authority, rest)

    def __str__(self) -> str:
        authority = f"//{self.authority}" if self.authority else ""
        # Hadoop writes a trailing slash only for a bucket's root.
        return f"{self.scheme}:{authority}{self.path}"

    @property
    def url(self) -> str:
        """The location with `//` even if it has no authority: another spelling that databases contain."""
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def spellings(self) -> list[Location]:
        """All spellings of this directory, including its own: the schemes of an object store, an authority in lower
        case, with or without its default port, and a bucket without an account's keys (`s3a://key:secret@bucket`, as
        before Hadoop 3.2). The first one is the same for all of them."""
        schemes = next((each for each in _SCHEMES_OF_ONE_STORE if self.scheme in each), (self.scheme,))
        authorities = [self.authority.lower(), self.authority]
        port = _DEFAULT_PORTS.get(self.scheme)
        if port is not None and self.authority:
            authorities = [each.removesuffix(port) + end for each in authorities for end in ("", port)]
        if schemes[0] == "s3a" and "@" in self.authority:
            bucket = self.authority.rpartition("@")[2]
            authorities = [bucket.lower(), bucket, *authorities]
        if schemes[0] == "abfss":
            one, other = _AZURE_HOSTS
            authorities = [
                text for each in authorities for text in (each.replace(other, one), each.replace(one, other))
            ]
        return [
            Location(scheme, authority, self.path) for scheme in schemes for authority in dict.fromkeys(authorities)
        ]

    def spelled_as(self, other: Location) -> Location:
        """The same directory with the scheme and authority of `other`, if both are on one file system or store."""
        if self.scheme == other.scheme and self.authority == other.authority:
            return self
        if self.spellings[0].is_same_file_system(other.spellings[0]):
            return Location(other.scheme, other.authority, self.path)
        return self

    def holds(self, other: Location) -> bool:
        """Whether `other` is this directory or below it, in any spelling."""
        same = other.spelled_as(self)
        return same == self or same.is_inside(self)

    @property
    def name(self) -> str:
        """The last part of the path; empty for the root."""
        return posixpath.basename(self.path)

    @property
    def is_root(self) -> bool:
        """Whether it is the root of its file system."""
        return self.path == "/"

    @property
    def parent(self) -> Location:
        """The parent directory; the root is its own parent."""
        return Location(self.scheme, self.authority, posixpath.dirname(self.path) or "/")

    @property
    def ancestors(self) -> Iterator[Location]:
        """The parent directories, the nearest first; none for the root."""
        location = self
        while not location.is_root:
            location = location.parent
            yield location

    def child(self, *names: str) -> Location:
        """The location below this one with these directory names, one after the other.

        Raises MetaException for an invalid name of a directory, which would lead elsewhere.
        """
        for name in names:
            if name in ("", ".", "..") or "/" in name or "\0" in name:
                raise MetaException(f"{name!r} cannot be the name of a directory")
        return Location(self.scheme, self.authority, "/".join([self.path, *names]))

    def resolve(self, relative: str) -> Location:
        """Resolves a relative path as Hadoop's `Path(parent, child)` does. The result may be anywhere, so it has to be
        checked.

        Raises MetaException for a NUL character.
        """
        if "\0" in relative:
            raise MetaException("A location cannot have a NUL character")
        return Location(self.scheme, self.authority, f"{self.path}/{relative}")

    def is_same_file_system(self, other: Location) -> bool:
        """Whether a rename between the two is possible."""
        return self.scheme == other.scheme and self.authority.lower() == other.authority.lower()

    def is_inside(self, other: Location) -> bool:
        """Whether it is strictly below `other`, on the same file system."""
        if not self.is_same_file_system(other):
            return False
        prefix = other.path if other.path.endswith("/") else other.path + "/"
        return self.path.startswith(prefix) and self.path != other.path


def _normal_path(path: str) -> str:
    """An absolute path with single slashes, without a trailing one, and without `.` and `..`."""
    if "//" not in path and "/." not in path and path[-1:] not in ("/", "") and path[0] == "/":
        return path  # nearly all are normal
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            if names:
                names.pop()
        elif name not in ("", "."):
            names.append(name)
    return "/" + "/".join(names)
